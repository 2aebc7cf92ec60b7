"""The checkpoints of one run: what it resumes from, saves, and keeps as the best."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...algorithm.mistake_book import MistakeBook
from ...config.run_config import RunConfig
from ...errors import SettingsError
from ...files import file_fingerprint
from ...runs.folder import RunFolder
from ..policy import Policy
from . import folder as checkpointing
from . import train_state
from .train_state import TrainState

logger = logging.getLogger(__name__)


class CheckpointKeeper:
    """Saves finished steps of a run below its folder, each once."""

    def __init__(self, config: RunConfig, run_folder: RunFolder, *, identity: Mapping[str, Any]) -> None:
        """``identity``: what a run that resumes must share, see ``preflight.run_identity``."""
        self._config = config
        self._run_folder = run_folder
        self._identity = identity
        self._root = Path(config.trainer.default_local_dir).resolve()
        self._origin: str | None = None
        self.saved_step = 0
        """Newest finished step that is saved in this run's own folder."""

    def save(self, finished: TrainState, *, policies: Mapping[str, Policy], book: MistakeBook) -> Path:
        """Save the newest finished step unless it is saved; policies and book must be as it left them."""
        if self.saved_step != finished.step:
            train_state.save(
                self._root,
                finished,
                policies=policies,
                book=book,
                identity=self._identity,
                origin=self._origin,
                config=self._made_with(),
            )
            self.saved_step = finished.step
            checkpointing.keep_newest(self._root, self._config.trainer.max_actor_ckpt_to_keep)
        return checkpointing.step_folder(self._root, finished.step)

    def resume(self, *, policies: Mapping[str, Policy], dataloader: Any) -> tuple[TrainState, MistakeBook] | None:
        """Load the checkpoint that the configuration asks for into policies and dataloader; None to start afresh.

        Raises:
            CheckpointError: it is missing, damaged, or belongs to another run.
        """
        trainer = self._config.trainer
        found = checkpointing.find_checkpoint(self._root, mode=trainer.resume_mode, path=trainer.resume_from_path)
        if found is None:
            return None
        found.check_fits(self._identity)
        finished = train_state.load(found, policies=policies, dataloader=dataloader)
        book = MistakeBook.load(found.folder / checkpointing.BOOK_NAME)
        if found.folder.parent == self._root:
            self.saved_step = found.step
            self._origin = found.state().get(checkpointing.ORIGIN)
            checkpointing.announce(self._root, found.step)  # before the records of later steps are forgotten
        else:  # a run that continues elsewhere saves where it is
            self._origin = str(found.folder)
        changes = [f"\n  changed since it was saved: {change}" for change in found.changed_settings(self._made_with())]
        self._run_folder.show(f"resumed from {found.folder}{''.join(changes)}")
        return finished, book

    def keep_best(self, metrics: Mapping[str, float], *, step: int) -> None:
        """Remember the checkpoint of ``step`` if its validation is the best so far, where that is asked for.

        Raises:
            SettingsError: ``checkpoint.keep_best`` names a metric that validation does not have.
        """
        name = self._config.checkpoint.keep_best
        if name is None:
            return
        if name not in metrics:
            # Known before, it is merely undefined this time: the share of something that did not occur.
            if self._run_folder.has_metric(name):
                return
            raise SettingsError(
                f"checkpoint.keep_best={name}: validation has no such metric; it has {', '.join(sorted(metrics))}"
            )
        if checkpointing.note_best(self._root, step=step, metric=name, value=metrics[name]):
            logger.info("step=%d is the best so far, %s=%g", step, name, metrics[name])

    def _made_with(self) -> dict[str, Any]:
        """The resolved configuration, and what is in the user's own templates and reward functions."""
        files = {key: file_fingerprint(path) for key, path in self._config.user_files.items()}
        return {**self._config.to_plain(), "user_files": files}
