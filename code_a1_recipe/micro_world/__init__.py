"""The micro world: a synthetic task suite with which the recipe runs without a GPU.

The first call of ``ensure_assets`` makes the questions and two tiny models. Later calls reuse the questions and models.
"""

from .assets import ensure_assets
from .settings import MicroSettings

__all__ = ["MicroSettings", "ensure_assets"]
