"""The state of a run between two steps, to a checkpoint and back."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from ray.exceptions import RayTaskError

from ...algorithm.mistake_book import MistakeBook
from ...errors import CheckpointError
from ...runs.folder import plain_number, versions_text
from ..lifecycle.failures import explain
from ..policy import Policy
from . import folder as checkpointing
from . import random_states
from .folder import Checkpoint

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainState:
    """The state of a run after a step, beside the policies and the Mistake Book."""

    step: int
    data: Any
    """Position and order of the questions after it (``StatefulDataLoader.state_dict``); None before step 1."""
    row: Mapping[str, Any] = field(default_factory=dict)
    """Its metrics as far as they were known; the end of a step may be cut off after its checkpoint."""
    totals: Mapping[str, float] = field(default_factory=dict)
    """Counters over the whole run: questions, programs, suites, cases, seconds."""
    random_states: dict[str, Any] | None = None
    """The trainer's own after it, see ``random_states.capture``; None before step 1."""


def save(
    root: Path,
    finished: TrainState,
    *,
    policies: Mapping[str, Policy],
    book: MistakeBook,
    identity: Mapping[str, Any],
    origin: str | None,
    config: Mapping[str, Any],
) -> Path:
    """Write the checkpoint of a finished step; policies and book may not have changed since.

    Args:
        root: folder of all checkpoints.
        identity: what a run that resumes must share, see ``preflight.run_identity``.
        origin: the checkpoint of another run that this one began from.
        config: the resolved configuration.

    Returns:
        The checkpoint's folder.

    Raises:
        DiskFullError: no room; nothing was written.
    """
    with checkpointing.writing(root, finished.step) as folder:
        for name, policy in policies.items():
            policy.save(folder / name, step=finished.step)
        book.save(folder / checkpointing.BOOK_NAME)
        torch.save(finished.data, folder / checkpointing.DATA_NAME)
        torch.save(finished.random_states, folder / checkpointing.RANDOM_NAME)
        row = {name: plain_number(value) for name, value in finished.row.items()}
        (folder / checkpointing.ROW_NAME).write_text(json.dumps(row), encoding="utf-8")
        state: dict[str, Any] = {"step": finished.step, "versions": versions_text(), "totals": dict(finished.totals)}
        state |= {checkpointing.IDENTITY: dict(identity), checkpointing.ORIGIN: origin, "config": config}
        _check_shards(folder, policies)
        checkpointing.write_state(folder, state)
    return checkpointing.step_folder(root, finished.step)


def _check_shards(folder: Path, policies: Mapping[str, Policy]) -> None:
    """Every rank's weights are here, also those of other nodes."""
    for name, policy in policies.items():
        found = len(list((folder / name / "actor").glob("model_world_size_*_rank_*.pt")))
        if found != policy.pool.world_size:
            raise CheckpointError(
                f"{folder / name} holds the weights of {found} of {policy.pool.world_size} ranks: run_dir must lie on "
                "a file system that all nodes share"
            )


def load(checkpoint: Checkpoint, *, policies: Mapping[str, Policy], dataloader: Any) -> TrainState:
    """Put policies, data order and random states back; the book is read by the caller.

    Raises:
        CheckpointError: a file is missing or damaged.
    """
    checkpoint.check_whole()
    state = checkpoint.state()
    damaged = (ValueError, RuntimeError, EOFError, LookupError, TypeError, AttributeError, pickle.UnpicklingError)
    try:
        row = json.loads((checkpoint.folder / checkpointing.ROW_NAME).read_text(encoding="utf-8"))
        totals = dict(state["totals"])
        data = torch.load(checkpoint.folder / checkpointing.DATA_NAME, weights_only=False)
        states = torch.load(checkpoint.folder / checkpointing.RANDOM_NAME, weights_only=False)
        random_states.restore(states)
    except damaged as error:
        raise CheckpointError(f"{checkpoint.folder} is damaged: {error}; {checkpointing.ANOTHER_STEP}") from error
    for name, policy in policies.items():
        try:
            policy.load(checkpoint.folder / name)
        except RayTaskError as error:
            if explain(error, run_dir=str(checkpoint.folder)) is not None:  # too little memory, say
                raise
            raise CheckpointError(
                f"{checkpoint.folder / name} cannot be loaded: {str(error).strip().splitlines()[-1]}; "
                f"{checkpointing.ANOTHER_STEP}"
            ) from error
    dataloader.load_state_dict(data)
    logger.info("resumed from %s at step=%d", checkpoint.folder, checkpoint.step)
    return TrainState(step=checkpoint.step, data=data, row=row, totals=totals, random_states=states)
