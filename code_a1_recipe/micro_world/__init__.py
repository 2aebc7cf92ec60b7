"""A micro world to try the recipe on without a GPU: small questions and two tiny models made from them.

``ensure_assets`` makes both on first use and finds them again later.
"""

from ..errors import CodeA1Error
from .assets import MicroAssets, default_cache_dir, ensure_assets
from .settings import MicroSettings, ModelSettings, NoiseSettings

__all__ = [
    "MicroAssets",
    "CodeA1Error",
    "MicroSettings",
    "ModelSettings",
    "NoiseSettings",
    "default_cache_dir",
    "ensure_assets",
]
