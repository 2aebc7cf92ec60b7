"""CodeA1Trainer: a verl V1 trainer with two policies.

verl's loop (``PPOTrainer.fit``) is used as it is: checkpoint, weight sync, validation, logging. The step is ours.
"""

import math
import time
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils.debug import marked_timer

from ..algorithm.mistake_book import BookChange, MistakeBook
from ..algorithm.question import Question
from ..algorithm.tasks import tasks_of
from ..config.run_config import SEPARATE, RunConfig
from ..extensions import after_step, extensions_of, restore_states, saved_states
from ..jobs.judge_loop import in_parallel
from ..runs import metrics as measures
from ..runs.console import step_line, time_metrics
from ..runs.folder import RunFolder
from ..verl_plugin.compat import SYNC_MODE, TRAINER_NAME
from ..verl_plugin.row_queue import KVBatchMeta, queue_actors, step_marker
from .checkpoint import random_states
from .checkpoint.keeper import CheckpointKeeper, TrainState
from .episode_actors import EpisodeReport, seconds_of_exposed_judging
from .lifecycle.failures import explain
from .lifecycle.signals import InterruptedRunError, LeaveRequestedError, SignalHandler
from .lifecycle.stage_clock import StageClock
from .lifecycle.time_limit import within
from .policy import Policy
from .preflight import run_identity
from .refill import give_way, refill
from .reporting import AllWorkers, log_generations
from .startup import start_parts
from .trajectories import StoredRows, join_rows

Result = TypeVar("Result")


@register_trainer(TRAINER_NAME)
class CodeA1Trainer(PPOTrainerSync):
    """Trains a Code LLM and a Test LLM against each other (arXiv 2603.15611), on the same GPUs or on two pools."""

    def __init__(self, config: RunConfig, *, signals: SignalHandler | None = None) -> None:
        self.settings = config
        self.run_folder = RunFolder(Path(config.run_dir))
        self.book = MistakeBook()
        self.extensions = extensions_of(config)
        self.policies: dict[str, Policy] = {}
        self.finished = TrainState(step=0, data=None)
        self._has_stepped = False
        self.stages = StageClock(self.run_folder.show)
        self.signals = signals or SignalHandler(leave_within_seconds=math.inf, show=self.run_folder.show)
        super().__init__(config.for_verl())

    def _build_replay_buffer(self) -> None:
        """Episodes are awaited, not sampled from a buffer; verl's other branches follow its own sync trainer."""
        self.trainer_mode = SYNC_MODE

    # ------------------------------ start and end ------------------------------

    def _setup(self) -> None:
        # Questions are rendered per policy inside the episode; the dataset needs no tokenizer.
        self.tokenizer = self.processor = None
        random_states.seed(self.settings.seed)
        self._init_dataloader()
        # verl's loop ends at whichever comes first; a number of steps that was asked for is what counts.
        epochs = math.ceil(self.total_training_steps / self.steps_per_epoch)
        self.config.trainer.total_epochs = max(self.config.trainer.total_epochs, epochs)
        self._init_dump_executor()
        self._init_resource_pool_mgr()
        self.policies, self.judges, self.episodes = start_parts(
            self.settings, manager=self.resource_pool_manager, total_steps=self.total_training_steps, stages=self.stages
        )
        self._load_checkpoint()
        self.actor_rollout_wg = self.ref_policy_wg = AllWorkers(one.actor_rollout_wg for one in self.policies.values())

    def processes(self) -> dict[str, Any]:
        """Handles of the processes that the run cannot do without, by what a user would call them."""
        of_policies = (policy.processes() for policy in self.policies.values())
        return dict(ChainMap(*of_policies, queue_actors()))

    def on_init_end(self) -> None:
        self._sync_weights()
        self.signals.can_save = True

    def on_step_end(self) -> None:
        with marked_timer("update_weights", self.timing_raw):
            self._sync_weights()

    def _sync_weights(self) -> None:
        # Both, also the one that did not update: servers that slept hold no weights.
        with self._saving(on_signal=False):
            self._of_each(lambda name: self.policies[name].sync_weights(self.global_steps))

    def _of_each(self, call: Callable[[str], Result]) -> dict[str, Result]:
        """Call for both policies: at the same time on GPUs of their own, else in turn; none follows an error."""
        if self.settings.layout == SEPARATE:
            return dict(in_parallel(self.policies, call, num_threads=len(self.policies)))
        return {name: call(name) for name in self.policies}

    def close(self) -> None:
        """End judges and episode workers; the confined interpreters go with their judges."""
        if hasattr(self, "episodes"):
            self.episodes.close()
        if hasattr(self, "judges"):
            self.judges.close()

    # ------------------------------ one step ------------------------------

    def step(self, metrics: dict[str, Any], timing_raw: dict[str, float]) -> KVBatchMeta:
        """One step of the paper; ``algorithm/README.md`` has its rules in the same order.

        Returns:
            A marker of the step: verl's loop removes the batch it is handed from the queue, and each policy has
            removed its own rows by then.

        Raises:
            InterruptedRunError: a signal came while episodes ran; the step before is saved.
        """
        self._has_stepped = True
        with marked_timer("episodes", timing_raw), self._saving():
            questions = self._next_questions()
            reports = self._run_episodes(questions, metrics)  # replays, candidates, suites, verdicts, rewards
        if self.curr_step_profile:
            self._stop_rollout_profiling()
        self._sleep_servers()
        self._update_mistake_book(reports, metrics)
        metrics.update(after_step(self.extensions, [report.found for report in reports]))
        groups = self._collect_grpo_groups(reports, len(questions))  # of suites those that TOPVAR selected
        self._alternate_updates(groups, metrics, timing_raw)
        self._finish_step(metrics)
        return step_marker(self.global_steps)

    def prepare_step(self) -> dict[str, Any]:
        """Nothing: ``step`` takes its own batch. verl's would submit another one, whenever its loop calls this."""
        return {}

    def _next_questions(self) -> list[Question]:
        if self.train_dataloader_it is None:
            self.train_dataloader_it = iter(self.train_dataloader)
            if self.finished.random_states is not None:  # a new iterator has drawn from torch's generator
                random_states.restore(self.finished.random_states)
        batch = next(self.train_dataloader_it, None)
        if batch is None:
            self.train_dataloader_it = iter(self.train_dataloader)
            batch = next(self.train_dataloader_it)
        return list(batch["question"])

    def _run_episodes(self, questions: Sequence[Question], metrics: dict[str, Any]) -> list[EpisodeReport]:
        reports = self._reports(questions, validate=False)
        metrics["episode/refilled_questions"] = len(reports) - len(questions)
        metrics["timing_s/exposed_judging"] = seconds_of_exposed_judging(reports)
        metrics.update(measures.finalize_metrics(report.accumulator for report in reports))
        share, limit = metrics.get("judge/outage_rate", 0.0), self.settings.sandbox.max_outage_rate
        reason = next((report.outage for report in reports if report.outage), "")
        measures.check_outages(share, limit=limit, step=self.global_steps, reason=reason)
        return reports

    def _reports(self, questions: Sequence[Question], *, validate: bool) -> list[EpisodeReport]:
        """Run the episodes and write their rollouts; reports in the order of the questions, then of refills."""
        trainer, episode = self.settings.trainer, self.settings.episode
        copy_in = trainer.validation_data_dir if validate else trainer.rollout_data_dir
        step, seed = self.global_steps, self.settings.seed
        started_at = time.time()
        reports: list[EpisodeReport] = []
        with self.run_folder.rollout_log(step, validation=validate, copy_in=copy_in) as write:
            asked = questions
            for number in range(1 if validate else 1 + episode.max_refills):
                if number:
                    asked = refill(self.train_dataset.questions, reports, wanted=len(questions), seed=seed, step=step)
                tasks = tasks_of(
                    asked,
                    settings=self.settings,
                    book=self.book,
                    step=step,
                    started_at=started_at,
                    validate=validate,
                    first_index=len(reports),
                    extensions=self.extensions,
                )
                for report in self.episodes.run(tasks, validate=validate, while_waiting=self.signals.check):
                    write(report.records)
                    reports.append(replace(report, records=b""))  # small enough to keep for a whole step
        return sorted(reports, key=lambda report: report.index)

    def _sleep_servers(self) -> None:
        with self._saving(on_signal=False):
            self._of_each(lambda name: self.policies[name].sleep())

    def _update_mistake_book(self, reports: Sequence[EpisodeReport], metrics: dict[str, Any]) -> None:
        """Mistake Book: failed new cases gain, passed replays lose."""
        change, settings = BookChange(), self.settings.mistake_book
        if settings.enabled:
            for report in reports:
                change += self.book.update(report.question_id, report.book_update)
        metrics.update(measures.book_metrics(self.book, change))

    def _collect_grpo_groups(self, reports: Sequence[EpisodeReport], num_questions: int) -> dict[str, StoredRows]:
        """Keys of the rows that each policy may train on, which episode workers selected (TOPVAR) and stored."""
        kept, left_out = give_way(reports, wanted=num_questions)
        for name, policy in self.policies.items() if left_out else ():
            policy.discard(join_rows([report.grpo_rows[name] for report in left_out]))
        return {name: join_rows([report.grpo_rows[name] for report in kept]) for name in self.policies}

    def _alternate_updates(
        self, groups: Mapping[str, StoredRows], metrics: dict[str, Any], timing_raw: dict[str, float]
    ) -> None:
        """Alternation: a GRPO update for each policy that ``schedule`` names, on GPUs of their own at the same time."""
        due = self.settings.schedule.policies_at(self.global_steps)

        def update(name: str) -> dict[str, float]:
            policy, rows = self.policies[name], groups[name]
            if name not in due or not rows.keys:
                policy.discard(rows)
                return {}
            with marked_timer(f"update_{name}", timing_raw):
                updated = policy.update(rows, step=self.global_steps, epoch=self._epoch)
            return {f"{name}/{key}": value for key, value in updated.items()}

        for updated in self._of_each(update).values():
            metrics.update(updated)

    def _finish_step(self, metrics: dict[str, Any]) -> None:
        """Note the state that a checkpoint of this step holds."""
        self.finished = TrainState(
            step=self.global_steps,
            data=self.train_dataloader.state_dict(),
            row=self._row(metrics),
            random_states=random_states.capture(),
            extensions=saved_states(self.extensions),
        )

    @contextmanager
    def _saving(self, *, on_signal: bool = True) -> Iterator[None]:
        """Where policies and book are as the finished step left them: it is saved if the block cannot go on.

        Args:
            on_signal: also after a signal, which gives up what is under way.

        Raises:
            InterruptedRunError: after the saving.
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
        except Exception:  # a server, an engine or an episode is lost; the workers hold the finished step
            limit = self.settings.checkpoint.leave_within_seconds
            try:  # within a limit: a worker that waits for a stalled server saves nothing either
                if not within(limit, lambda: self.run_folder.show(self._save_and_tell()), name="save"):
                    self.run_folder.show(f"not saved: no answer within checkpoint.leave_within_seconds={limit:g} s")
            except Exception as error:  # noqa: BLE001  # whatever it is, the first error ended the run and is raised
                self.run_folder.show(f"not saved: {explain(error, run_dir=self.settings.run_dir) or error}")
            raise

    def _save_and_tell(self) -> str:
        """Give up the episodes under way and save the newest finished step; says so."""
        self.episodes.close()
        for policy in self.policies.values():
            policy.abandon()
        if not self.finished.step:
            return "no step was finished, nothing to save"
        folder = self._save_finished()
        self.signals.is_saved = True
        return f"step {self.finished.step} is saved in {folder}"

    def _compute_metrics(
        self, batch: KVBatchMeta, metrics: dict[str, Any], timing_raw: dict[str, float], global_steps: int, epoch: int
    ) -> None:
        metrics.update({f"timing_s/{name}": seconds for name, seconds in timing_raw.items()})
        at_once = self.settings.layout == SEPARATE
        devices = sum(map(sum, self.settings.pool_spec().values()))
        metrics.update(time_metrics(metrics, timing_raw, num_devices=devices, updates_at_once=at_once))
        metrics["time_frac/exposed_judging"] = metrics["timing_s/exposed_judging"] / timing_raw["step"]
        metrics.update(self._row(metrics))
        self.run_folder.append_metrics(global_steps, metrics)
        if global_steps >= self.total_training_steps:  # where no checkpoint is saved
            self.book.save(self.run_folder.mistake_book)
        self.run_folder.show(step_line(global_steps, self.total_training_steps, metrics))

    @property
    def _epoch(self) -> int:
        return int((self.global_steps - 1) // self.steps_per_epoch)

    def _row(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        return {**metrics, "training/global_step": self.global_steps, "training/epoch": self._epoch}

    # ------------------------------ validation and checkpoints ------------------------------

    def _validate(self) -> dict[str, float]:
        """Both policies on the held-out questions; metrics are prefixed ``val/``."""
        questions = self.val_dataset.questions  # not by their loader, which draws from training's random numbers
        with self._saving():
            reports = self._reports(questions, validate=True)
        log_generations(self, self.run_folder.rollout_file(self.global_steps, validation=True), questions)
        found = [(questions[report.index].data_source, report.accumulator) for report in reports]
        metrics = measures.validation_metrics(found)
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
            restore_states(self.extensions, self.finished.extensions)
        self.global_steps = self.finished.step
        self.config.trainer.val_before_train = self.checkpoints.continue_records(
            self.finished, self.book, last_step=self.total_training_steps
        )

    def _log_rollout_data(self, *_: Any) -> None:
        """Nothing: rollouts were copied to ``trainer.rollout_data_dir`` while they came. verl would read the batch."""

    def _rollout_server_managers(self) -> list[Any]:
        """Of both policies, for verl's profiler."""
        return [policy.llm_server_manager for policy in self.policies.values()]
