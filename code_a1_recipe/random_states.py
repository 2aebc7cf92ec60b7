"""The trainer's own random states.

Those of its workers are in verl's checkpoints; servers, episodes and judges are seeded for each request.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import torch


def seed(number: int) -> None:
    """Start the generators of this process from ``number``, at least 0."""
    random.seed(number)
    np.random.seed(number % 2**32)
    torch.manual_seed(number)


def save(path: Path) -> None:
    """Write the states of Python's, NumPy's and torch's generators of this process."""
    torch.save({"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}, path)


def load(path: Path) -> None:
    """Set the generators of this process to what was saved.

    Raises:
        OSError: the file is missing.
    """
    states = torch.load(path, weights_only=False)
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
