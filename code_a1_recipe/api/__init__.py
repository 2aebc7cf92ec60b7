"""The Python API. Nothing here imports torch or verl: training runs in a process of its own."""

from reward_fns import AdversarialReward as AdversarialReward

from .mistake_book import MistakeBook as MistakeBook
from .trainer import AdversarialCodeTrainer as AdversarialCodeTrainer
