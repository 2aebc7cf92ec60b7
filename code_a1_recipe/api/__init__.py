"""The Python API. It imports neither torch nor verl, because training runs in its own process."""

from reward_fns import AdversarialReward as AdversarialReward

from .mistake_book import MistakeBook as MistakeBook
from .trainer import AdversarialCodeTrainer as AdversarialCodeTrainer
