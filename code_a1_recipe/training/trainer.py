"""CodeA1Trainer: a verl V1 trainer with two policies.

verl's loop (checkpoint, weight sync, validation, logging) is unchanged. Only the step comes from the recipe
(``step.py``).
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..algorithm.mistake_book import MistakeBook
from ..config.run_config import SEPARATE, RunConfig
from ..extensions import extensions_of
from ..extensions.states import restore_states
from ..runs import metrics as measures
from ..runs.console import step_line, time_metrics
from ..runs.folder import RunFolder
from ..verl_plugin.loop import Metrics, marked_timer, register
from ..verl_plugin.row_queue import KVBatchMeta, queue_actors
from .checkpoint import random_states
from .checkpoint.keeper import CheckpointKeeper, TrainState
from .lifecycle.failures import explain
from .lifecycle.signals import InterruptedRunError, LeaveRequestedError, SignalHandler
from .lifecycle.stage_clock import StageClock
from .lifecycle.time_limit import within
from .preflight import run_identity
from .startup import start_parts
from .step import CoTrainingStep


@register
class CodeA1Trainer(CoTrainingStep):
    """Trains a Code LLM and a Test LLM against each other (arXiv 2603.15611), on shared or separate GPUs."""

    def __init__(self, config: RunConfig, *, signals: SignalHandler) -> None:
        self.settings = config
        self.run_folder = RunFolder(Path(config.run_dir))
        self.book = MistakeBook()
        self.extensions = extensions_of(config)
        self.finished = TrainState(step=0, data=None)
        self._has_stepped = False
        self.stages = StageClock(self.run_folder.show)
        self.signals = signals
        super().__init__(config.for_verl())

    def _setup(self) -> None:
        # The dataset needs no tokenizer, since episodes render the questions for each policy.
        self.tokenizer = self.processor = None
        random_states.seed(self.settings.seed)
        self._init_dataloader()
        # verl's loop ends when all its epochs or all its steps are done. Make sure that the steps are done first.
        epochs = math.ceil(self.total_training_steps / self.steps_per_epoch)
        self.config.trainer.total_epochs = max(self.config.trainer.total_epochs, epochs)
        self._init_dump_executor()
        self._init_resource_pool_mgr()
        self.policies, self.judges, self.episodes = start_parts(
            self.settings, manager=self.resource_pool_manager, total_steps=self.total_training_steps, stages=self.stages
        )
        self._load_checkpoint()
        self.use_workers()

    def processes(self) -> dict[str, Any]:
        """Return handles of the processes that the run needs, by names that a user understands."""
        handles = queue_actors()
        for policy in self.policies.values():
            handles |= policy.processes()
        return handles

    def on_init_end(self) -> None:
        self._sync_weights()
        self.signals.can_save = True

    def on_step_end(self) -> None:
        with marked_timer("update_weights", self.timing_raw):
            self._sync_weights()

    def _sync_weights(self) -> None:
        # A policy that did not update is synced too, since its servers slept and hold no weights.
        with self._saving(on_signal=False):
            self._of_each(lambda name: self.policies[name].sync_weights(self.global_steps))

    def close(self) -> None:
        """End episode workers and judges. The confined interpreters end with their judges."""
        if hasattr(self, "episodes"):  # without this attribute the start failed before any worker started
            self.episodes.close()
            self.judges.close()

    @contextmanager
    def _saving(self, *, on_signal: bool = True) -> Iterator[None]:
        """Save the newest finished step if the block fails. The block must change neither policies nor book.

        Args:
            on_signal: look for a signal before and after the block; after a signal, save and end the run.

        Raises:
            InterruptedRunError: a signal came. The newest finished step is saved.
        """
        check = self.signals.check if on_signal else lambda: None
        try:
            check()
            yield
            check()
        except LeaveRequestedError:
            number = self.signals.signal_number
            assert number is not None
            raise InterruptedRunError(number, self._save_and_tell()) from None
        except Exception:  # a server, an engine or an episode failed, but the workers still hold the finished step
            self._save_after_error()
            raise

    def _save_after_error(self) -> None:
        """Save the newest finished step, or show why that fails."""
        limit = self.settings.checkpoint.leave_within_seconds
        try:
            # The limit is needed, since a worker that waits for a stalled server cannot save.
            if not within(limit, lambda: self.run_folder.show(self._save_and_tell()), name="save"):
                self.run_folder.show(f"not saved: no answer within checkpoint.leave_within_seconds={limit:g} s")
        except Exception as error:  # noqa: BLE001  # the caller raises the error that ended the run
            self.run_folder.show(f"not saved: {explain(error, run_dir=self.settings.run_dir) or error}")

    def _save_and_tell(self) -> str:
        """Give up unfinished episodes, save the newest finished step, and return a line that says so."""
        # Episodes end first. Otherwise the episodes would send further requests to servers that ``abandon`` puts to
        # sleep.
        self.episodes.close()
        for policy in self.policies.values():
            policy.abandon()
        if not self.finished.step:
            return "no step was finished, nothing to save"
        folder = self._save_finished()
        self.signals.is_saved = True
        return f"step {self.finished.step} is saved in {folder}"

    def _compute_metrics(
        self,
        batch: KVBatchMeta,
        metrics: Metrics,
        timing_raw: dict[str, float],
        global_steps: int,
        epoch: int,
    ) -> None:
        metrics.update({f"timing_s/{name}": seconds for name, seconds in timing_raw.items()})
        shares = time_metrics(
            metrics,
            timing_raw,
            num_devices=sum(map(sum, self.settings.pool_spec().values())),
            updates_at_once=self.settings.layout == SEPARATE,
        )
        metrics.update(shares)
        metrics["time_frac/exposed_judging"] = metrics["timing_s/exposed_judging"] / timing_raw["step"]
        metrics.update(self._row(metrics))
        self.run_folder.append_metrics(global_steps, metrics)
        if global_steps >= self.total_training_steps:  # a run that saves no checkpoint must write the book here
            self.book.save(self.run_folder.mistake_book)
        self.run_folder.show(step_line(global_steps, self.total_training_steps, metrics))

    def _validate(self) -> dict[str, float]:
        """Run both policies on the held-out questions, and return metrics whose names begin with ``val/``."""
        # verl's data loader is not used here, since it would change the random states of training.
        questions = self.val_dataset.questions
        with self._saving():
            reports = self._reports(questions, validate=True)
        sums = [(questions[report.index].data_source, report.accumulator) for report in reports]
        metrics = measures.validation_metrics(sums)
        if not self._has_stepped:
            self.run_folder.add_to_metrics(self.global_steps, metrics)
        self.checkpoints.keep_best(metrics, step=self.global_steps)
        self.run_folder.show(step_line(self.global_steps, self.total_training_steps, metrics, prefix="val/"))
        return metrics

    def _save_checkpoint(self) -> None:
        folder = self._save_finished()
        self.checkpoint_callback.on_save(
            trainer=self, global_step=self.global_steps, checkpoint_dir=str(folder), async_save=False
        )

    def _save_finished(self) -> Path:
        started = time.monotonic()
        folder = self.checkpoints.save(self.finished, policies=self.policies, book=self.book)
        self.signals.note_save(time.monotonic() - started)
        return folder

    def _load_checkpoint(self) -> None:
        identity = run_identity(self.settings, self.train_dataset.questions)
        self.checkpoints = CheckpointKeeper(self.settings, self.run_folder, identity=identity)
        resumed = self.checkpoints.resume(policies=self.policies, dataloader=self.train_dataloader)
        if resumed is not None:
            self.finished, self.book = resumed
            untaken = restore_states(self.extensions, self.finished.extensions)
            if untaken:
                names = ", ".join(untaken)
                self.run_folder.show(f"the checkpoint has states that no extension of this run takes: {names}")
        self.global_steps = self.finished.step
        self.config.trainer.val_before_train = self.checkpoints.continue_records(
            self.finished, self.book, last_step=self.total_training_steps
        )
