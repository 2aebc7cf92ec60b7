"""The micro world: a synthetic task suite to try the recipe on without a GPU.

``ensure_assets`` makes its questions and two tiny models on first use, and finds them again later.
"""

from .assets import ensure_assets
from .settings import MicroSettings

__all__ = ["MicroSettings", "ensure_assets"]
