"""The random states of the trainer's process.

verl's checkpoints hold the random states of the workers. Servers, episodes and judges get a seed with each request.
"""

import random
from typing import Any

import numpy as np
import torch


def seed(number: int) -> None:
    """Seed the generators of this process with ``number``, at least 0."""
    random.seed(number)
    np.random.seed(number % 2**32)
    torch.manual_seed(number)


def capture() -> dict[str, Any]:
    """Return the states of Python's, NumPy's and torch's generators in this process."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }


def restore(states: dict[str, Any]) -> None:
    """Set the generators of this process to captured states."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
