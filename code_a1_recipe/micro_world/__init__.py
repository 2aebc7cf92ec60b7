"""The micro world: a synthetic task suite with which the recipe runs without a GPU.

Two tiny models are shipped with the package, and the first call of ``ensure_assets`` draws the questions. For other
settings than the default ones it also trains two models. Later calls reuse the questions and models.
"""

from .assets import ensure_assets
from .settings import MicroSettings

__all__ = ["MicroSettings", "ensure_assets"]
