"""Saves the checkpoints of a run, and resumes a run from a checkpoint."""

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
from ...config.run_config import RunConfig
from ...errors import CheckpointError, SettingsError
from ...files import file_fingerprint, write_whole
from ...runs.folder import RunFolder, plain_number, versions_text
from ..lifecycle.failures import explain
from ..policy import Policy
from . import random_states
from .folder import (
    ANOTHER_STEP,
    BOOK_NAME,
    DATA_NAME,
    EXTENSIONS_NAME,
    IDENTITY,
    ORIGIN,
    RANDOM_NAME,
    ROW_NAME,
    Checkpoint,
    announce,
    find_checkpoint,
    keep_newest,
    note_best,
    step_folder,
    write_state,
    writing,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TrainState:
    """State of a run after a step, without the policies and the Mistake Book."""

    step: int
    data: Any
    """Position and order of the questions (``StatefulDataLoader.state_dict``); None before step 1."""
    row: Mapping[str, Any] = field(default_factory=dict)
    """The step's metrics that were known before the save. A resumed run writes these metrics to ``metrics.jsonl`` if
    the file has no row for the step."""
    random_states: dict[str, Any] | None = None
    """Random states of the trainer's process, see ``random_states.capture``; None before step 1."""
    extensions: Mapping[str, Any] = field(default_factory=dict)
    """States of the extensions by name, as JSON values. The states are copies, which the next step does not change."""


@dataclass(eq=False)
class CheckpointKeeper:
    """Saves and loads a run's checkpoints. Each finished step is saved once."""

    config: RunConfig
    run_folder: RunFolder
    identity: Mapping[str, Any] = field(kw_only=True)
    """Values that must be equal in a checkpoint and in the run that resumes it, see ``preflight.run_identity``."""
    saved_step: int = field(default=0, init=False)
    """Newest step that is saved in this run's own folder; 0 if there is none."""
    _origin: str | None = field(default=None, init=False)
    """Checkpoint of another run from which this run started, if any."""

    def __post_init__(self) -> None:
        self._root = Path(self.config.trainer.default_local_dir).resolve()

    def save(self, finished: TrainState, *, policies: Mapping[str, Policy], book: MistakeBook) -> Path:
        """Save the newest finished step, unless it is saved. Policies and book must not have changed since this step.

        Returns:
            The checkpoint's folder.

        Raises:
            DiskFullError: there is no room. Nothing was written.
        """
        target = step_folder(self._root, finished.step)
        if self.saved_step == finished.step:
            return target
        with writing(self._root, finished.step) as folder:
            for name, policy in policies.items():
                policy.save(folder / name, step=finished.step)
            book.save(folder / BOOK_NAME)
            torch.save(finished.data, folder / DATA_NAME)
            torch.save(finished.random_states, folder / RANDOM_NAME)
            row = {name: plain_number(value) for name, value in finished.row.items()}
            (folder / ROW_NAME).write_text(json.dumps(row), encoding="utf-8")
            (folder / EXTENSIONS_NAME).write_text(json.dumps(finished.extensions), encoding="utf-8")
            _check_shards(folder, policies)
            state = {
                "step": finished.step,
                "versions": versions_text(),
                "config": self._made_with(),
                IDENTITY: dict(self.identity),
                ORIGIN: self._origin,
            }
            write_state(folder, state)
        self.saved_step = finished.step
        # The run folder has a copy of the newest book, since a step's folder may be removed later.
        saved_book = target / BOOK_NAME
        write_whole(self.run_folder.mistake_book, saved_book.read_bytes())
        keep_newest(self._root, self.config.trainer.max_actor_ckpt_to_keep)
        return target

    def resume(self, *, policies: Mapping[str, Policy], dataloader: Any) -> tuple[TrainState, MistakeBook] | None:
        """Load the policies and the dataloader from the checkpoint that the configuration asks for.

        Returns:
            The state and the Mistake Book of the checkpoint, or None for a fresh start.

        Raises:
            CheckpointError: the checkpoint is missing, damaged, or belongs to another run.
        """
        checkpoint = find_checkpoint(self.config.trainer)
        if checkpoint is None:
            return None
        folder = checkpoint.folder
        has_same_questions = checkpoint.check_fits(
            self.identity,
            allow_new_questions=self.config.checkpoint.allow_new_questions,
        )
        finished = _load(
            checkpoint,
            policies=policies,
            dataloader=dataloader if has_same_questions else None,
        )
        book = MistakeBook.load(folder / BOOK_NAME)
        if folder.parent == self._root:
            self.saved_step = checkpoint.step
            self._origin = checkpoint.state().get(ORIGIN)
            # Later checkpoints are moved aside before ``continue_records`` removes the records of later steps.
            aside = announce(self._root, checkpoint.step)
            if aside:
                what = f"later checkpoints are now {', '.join(aside)} and the next save removes them"
                self.run_folder.show(f"{what}; rename one to global_step_<n> to keep it")
        else:  # the checkpoint belongs to another run, and this run saves in its own folder
            self._origin = str(folder)
        changes = checkpoint.changed_settings(self._made_with())
        lines = [f"\n  changed since it was saved: {change}" for change in changes]
        self.run_folder.show(f"resumed from {folder}{''.join(lines)}")
        return finished, book

    def continue_records(self, finished: TrainState, book: MistakeBook, *, last_step: int) -> bool:
        """Remove the records of steps after the resumed step. Add the metrics of the resumed step if they are missing.

        Returns:
            Whether the validation of the resumed step is still due. For a fresh start ``trainer.val_before_train``
            decides.
        """
        step, folder, trainer = finished.step, self.run_folder, self.config.trainer
        if not self.saved_step:
            aside = folder.set_aside()
            if aside is not None:
                folder.show(f"an earlier start saved no step in this run_dir; its records are now in {aside}")
        if not step:
            return trainer.val_before_train
        folder.continue_at(step, finished.row)
        book.save(folder.mistake_book)
        is_due = trainer.test_freq > 0 and (step % trainer.test_freq == 0 or step == last_step)
        row = folder.metrics_row(step) or {}
        is_done = any(name.startswith("val/") for name in row)
        return is_due and not is_done

    def keep_best(self, metrics: Mapping[str, float], *, step: int) -> None:
        """Remember the checkpoint of ``step`` if the step has the best value so far of ``checkpoint.keep_best``.

        Raises:
            SettingsError: ``checkpoint.keep_best`` names a metric that validation does not have.
        """
        name = self.config.checkpoint.keep_best
        if name is None:
            return
        if name not in metrics:
            # A single validation may lack a metric, such as a share of events that did not occur.
            if self.run_folder.has_metric(name):
                return
            raise SettingsError(
                f"checkpoint.keep_best={name}: validation has no such metric; it has {', '.join(sorted(metrics))}"
            )
        if note_best(self._root, step=step, metric=name, value=metrics[name]):
            logger.info("step=%d is the best so far, %s=%g", step, name, metrics[name])

    def _made_with(self) -> dict[str, Any]:
        """Return the resolved configuration, with fingerprints of the user's own templates and reward functions."""
        files = {key: file_fingerprint(path) for key, path in self.config.user_files.items()}
        return {**self.config.to_plain(), "user_files": files}


def _check_shards(folder: Path, policies: Mapping[str, Policy]) -> None:
    """Raise CheckpointError if the weights of a rank are missing. The rank may have saved on another node."""
    for name, policy in policies.items():
        found = len(list((folder / name / "actor").glob("model_world_size_*_rank_*.pt")))
        if found != policy.pool.world_size:
            raise CheckpointError(
                f"{folder / name} holds the weights of {found} of {policy.pool.world_size} ranks: run_dir must lie on "
                "a file system that all nodes share"
            )


def _load(checkpoint: Checkpoint, *, policies: Mapping[str, Policy], dataloader: Any) -> TrainState:
    """Restore policies, order of the questions and random states. The caller reads the Mistake Book.

    Raises:
        CheckpointError: a file is missing or damaged.
    """
    checkpoint.check_whole()
    damaged = (ValueError, RuntimeError, EOFError, LookupError, TypeError, AttributeError, pickle.UnpicklingError)
    folder = checkpoint.folder
    try:
        row = json.loads((folder / ROW_NAME).read_bytes())
        extensions = json.loads((folder / EXTENSIONS_NAME).read_bytes())
        data = torch.load(folder / DATA_NAME, weights_only=False)
        states = torch.load(folder / RANDOM_NAME, weights_only=False)
        random_states.restore(states)
    except damaged as error:
        raise CheckpointError(f"{folder} is damaged: {error}; {ANOTHER_STEP}") from error
    for name, policy in policies.items():
        try:
            policy.load(folder / name)
        except RayTaskError as error:
            if explain(error, run_dir=str(folder)) is not None:  # the reason is known, and the files are not damaged
                raise
            last_line = str(error).strip().splitlines()[-1]
            raise CheckpointError(f"{folder / name} cannot be loaded: {last_line}; {ANOTHER_STEP}") from error
    if dataloader is not None:  # None if the questions are new, since the saved position fits other questions
        dataloader.load_state_dict(data)
    logger.info("resumed from %s at step=%d", folder, checkpoint.step)
    return TrainState(step=checkpoint.step, data=data, row=row, random_states=states, extensions=extensions)
