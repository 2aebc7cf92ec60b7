"""Code-A1 on verl: a Code LLM and a Test LLM trained against each other (arXiv 2603.15611)."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import AdversarialCodeTrainer, AdversarialReward, MistakeBook

__all__ = ["AdversarialCodeTrainer", "AdversarialReward", "MistakeBook"]


def __getattr__(name: str) -> Any:
    # Every worker of a run imports this package, but no worker needs the API.
    if name in __all__:
        return getattr(importlib.import_module(".api", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
