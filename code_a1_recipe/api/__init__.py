"""The Python API. It imports neither torch nor verl, since training runs in a process of its own."""

from reward_fns import AdversarialReward as AdversarialReward

from .mistake_book import MistakeBook as MistakeBook
from .trainer import AdversarialCodeTrainer as AdversarialCodeTrainer
