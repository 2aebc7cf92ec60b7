"""A micro world to try the recipe on without a GPU: small questions and two tiny models made from them.

``ensure_assets`` makes both on first use and finds them again later.
"""

from .assets import ensure_assets
from .settings import MicroSettings

__all__ = ["MicroSettings", "ensure_assets"]
