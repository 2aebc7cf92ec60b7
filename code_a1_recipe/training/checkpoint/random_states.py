"""The trainer's own random states.

Those of its workers are in verl's checkpoints; servers, episodes and judges are seeded for each request.
"""

import random
from typing import Any

import numpy as np
import torch


def seed(number: int) -> None:
    """Start the generators of this process from ``number``, at least 0."""
    random.seed(number)
    np.random.seed(number % 2**32)
    torch.manual_seed(number)


def capture() -> dict[str, Any]:
    """The states of Python's, NumPy's and torch's generators of this process."""
    return {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}


def restore(states: dict[str, Any]) -> None:
    """Set the generators of this process to what was captured."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
