"""The Python API. This package imports neither torch nor verl, because training runs in a separate process."""

from reward_fns import AdversarialReward as AdversarialReward

from .mistake_book import MistakeBook as MistakeBook
from .trainer import AdversarialCodeTrainer as AdversarialCodeTrainer
