"""CodeA1Trainer: a verl V1 trainer with two policies.

verl's loop (``PPOTrainer.fit``) is used as it is: step, checkpoint, weight sync, validation, logging. This class says
what a step is.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from transfer_queue import KVBatchMeta
from verl.single_controller.ray import RayResourcePool
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils.debug import marked_timer

from . import checkpointing, finished_step, random_states
from .compose import COLOCATED, SEPARATE, policy_view, pool_spec
from .episode_data import EpisodeTask
from .episode_metrics import add_sums, metrics_of, validation_metrics
from .episode_worker import EpisodePool, EpisodeReport, seconds_of_reward_alone
from .errors import OutageError, StalledError, check_outages
from .finished_step import FinishedStep
from .interruption import InterruptedRunError, Interruption, LeaveRequestedError
from .judge_worker import JudgePool
from .mistake_book import BookChange, MistakeBook
from .policy import Policy
from .preflight import run_identity
from .questions import Question
from .run_folder import RunFolder
from .settings import RecipeSettings, SettingsError
from .step_report import running_totals, step_line, time_shares
from .step_tasks import tasks_of
from .time_limit import within
from .trajectories import join_rows
from .verl_compat import SYNC_MODE, TRAINER_NAME, queue_actors, step_marker

logger = logging.getLogger(__name__)


@register_trainer(TRAINER_NAME)
class CodeA1Trainer(PPOTrainerSync):
    """Trains a Code LLM and a Test LLM against each other (arXiv 2603.15611), on the same GPUs or on two pools."""

    def __init__(self, config: DictConfig, *, interruption: Interruption | None = None) -> None:
        raw = OmegaConf.to_container(config, resolve=True)
        assert isinstance(raw, dict)
        self.settings = RecipeSettings.from_mapping({str(key): value for key, value in raw.items()})
        self.run_folder = RunFolder(Path(config.run_dir))
        self.book = MistakeBook()
        self.policies: dict[str, Policy] = {}
        self.finished = FinishedStep(step=0, data=None)
        self._has_stepped = False
        self._saved_step = 0
        self._identity: dict[str, Any] = {}
        self._origin: str | None = None
        self.interruption = interruption or Interruption(leave_within_seconds=math.inf, say=self.run_folder.show)
        super().__init__(config)

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
        pools = self._make_pools()
        # Loading models and engines mostly waits, so on a CPU all of it happens at once. On a GPU a server measures
        # the free memory while it starts, which another one that starts beside it would falsify.
        at_once = None if self.config.trainer.device == "cpu" else 1
        starters = ThreadPoolExecutor(max_workers=at_once)
        try:
            judges = starters.submit(JudgePool.start, self.settings.sandbox, seed=self.settings.seed)
            names = self.settings.policy_names
            policies = {name: starters.submit(self._start_policy, name, pools[name]) for name in names}
            self.policies = {name: started.result() for name, started in policies.items()}
            self.judges = judges.result()
        finally:  # whoever interrupts a start does not wait for its end
            starters.shutdown(wait=False, cancel_futures=True)
        endpoints = {name: policy.endpoint() for name, policy in self.policies.items()}
        self.episodes = EpisodePool.start(self.settings, endpoints=endpoints, judges=self.judges)
        self._load_checkpoint()
        self._continue_records()

    def _make_pools(self) -> dict[str, RayResourcePool]:
        """The GPUs of each policy: the same pool twice, or two."""
        self._init_resource_pool_mgr()
        names = self.settings.policy_names
        self.resource_pool_manager.resource_pool_spec = spec = pool_spec(self.config, names)
        self.resource_pool_manager.create_resource_pool()
        pools = self.resource_pool_manager.resource_pool_dict
        for name in spec:
            # Made once, before two threads ask for it: Ray refuses a second group of the same name.
            pools[name].get_placement_groups(strategy="PACK", device_name=self.config.trainer.device)
        return {name: pools[name if name in spec else COLOCATED] for name in names}

    def _start_policy(self, name: str, pool: RayResourcePool) -> Policy:
        every = {"code": self.settings.schedule.code_every, "test": self.settings.schedule.test_every}[name]
        updates = max(1, self.total_training_steps // every) if every else 1
        policy = Policy.start(name, policy_view(self.config, name), pool=pool, total_updates=updates)
        self.run_folder.show(f"{name} policy: {policy.config.actor_rollout_ref.model.path}")
        return policy

    def processes(self) -> dict[str, Any]:
        """Handles of the processes that the run cannot do without, by what a user would call them."""
        found = queue_actors()
        for policy in self.policies.values():
            found |= policy.processes()
        return found

    def on_init_end(self) -> None:
        self._sync_weights()
        self.interruption.can_save = True

    def on_step_end(self) -> None:
        with marked_timer("update_weights", self.timing_raw):
            self._sync_weights()

    def _sync_weights(self) -> None:
        # Both, also the one that did not update: servers that slept hold no weights.
        with self._saving(on_signal=False):
            for policy in self.policies.values():
                policy.sync_weights(self.global_steps)

    def close(self) -> None:
        """End judges and episode workers; the confined interpreters go with their judges."""
        if hasattr(self, "episodes"):
            self.episodes.close()
        if hasattr(self, "judges"):
            self.judges.close()

    # ------------------------------ one step ------------------------------

    def step(self, metrics: dict[str, Any], timing_raw: dict[str, float]) -> KVBatchMeta:
        """Questions, episodes, Mistake Book, then one update for each policy that is due.

        Returns:
            A marker of the step: verl's loop removes the batch it is handed from the queue, and each policy has
            removed its own rows by then.

        Raises:
            InterruptedRunError: a signal came while episodes ran; the step before is saved.
        """
        started, self._has_stepped = time.time(), True
        with marked_timer("episodes", timing_raw), self._saving():
            questions: list[Question] = list(self._fetch_one_batch()["question"])
            reports = self._run_episodes(questions, metrics)
        with self._saving(on_signal=False):
            for policy in self.policies.values():
                policy.sleep()
        self._update_book(reports, metrics)
        # On GPUs of their own the policies train at the same time.
        at_once = len(self.policies) if self.config.layout == SEPARATE else 1
        with ThreadPoolExecutor(max_workers=at_once) as updaters:
            for updated in list(updaters.map(lambda name: self._update(name, reports, timing_raw), self.policies)):
                metrics.update(updated)
        totals = running_totals(
            self.finished.totals, metrics, num_questions=len(questions), seconds=time.time() - started
        )
        metrics.update({f"progress/{name}": total for name, total in totals.items()})
        data, row, states = self.train_dataloader.state_dict(), self._row(metrics), random_states.capture()
        self.finished = FinishedStep(step=self.global_steps, data=data, row=row, totals=totals, random_states=states)
        return step_marker(self.global_steps)

    def _update(self, name: str, reports: Sequence[EpisodeReport], timing_raw: dict[str, float]) -> dict[str, float]:
        policy, rows = self.policies[name], join_rows([report.rows[name] for report in reports])
        if name not in self.settings.schedule.policies_at(self.global_steps) or not rows.keys:
            policy.discard(rows)
            return {}
        epoch = (self.global_steps - 1) // self.steps_per_epoch
        with marked_timer(f"update_{name}", timing_raw):
            metrics = policy.update(rows, step=self.global_steps, epoch=epoch)
        return {f"{name}/{key}": value for key, value in metrics.items()}

    @contextmanager
    def _saving(self, *, on_signal: bool = True) -> Iterator[None]:
        """Where policies and book are as the finished step left them: it is saved if the block cannot go on.

        Args:
            on_signal: also after a signal, which gives up what is under way.

        Raises:
            InterruptedRunError: after the saving.
        """
        check = self.interruption.check if on_signal else lambda: None
        try:
            check()
            yield
            check()
        except LeaveRequestedError:
            number = self.interruption.signal_number
            assert number is not None
            raise InterruptedRunError(number, self._save_and_tell()) from None
        except (OutageError, StalledError):
            # A worker that waits for a stalled server saves nothing either.
            limit = self.settings.checkpoint.leave_within_seconds
            if not within(limit, lambda: self.run_folder.show(self._save_and_tell()), name="save"):
                self.run_folder.show(f"not saved: no answer within checkpoint.leave_within_seconds={limit:g} s")
            raise

    def _save_and_tell(self) -> str:
        """Give up the episodes under way and save the newest finished step; says so."""
        self.episodes.close()
        for policy in self.policies.values():
            policy.abandon()
        if not self.finished.step:
            return "no step was finished, nothing to save"
        folder = self._save_finished()
        self.interruption.is_saved = True
        return f"step {self.finished.step} is saved in {folder}"

    def _fetch_one_batch(self) -> dict[str, Any]:
        if self.train_dataloader_it is None:
            self.train_dataloader_it = iter(self.train_dataloader)
            if self.finished.random_states is not None:  # a new iterator has drawn from torch's generator
                random_states.restore(self.finished.random_states)
        try:
            return dict(next(self.train_dataloader_it))
        except StopIteration:
            self.train_dataloader_it = iter(self.train_dataloader)
            return dict(next(self.train_dataloader_it))

    def _tasks(self, questions: Sequence[Question], *, validate: bool) -> list[EpisodeTask]:
        return tasks_of(
            questions,
            settings=self.settings,
            book=self.book,
            step=self.global_steps,
            started_at=time.time(),
            validate=validate,
        )

    def _run_episodes(self, questions: Sequence[Question], metrics: dict[str, Any]) -> list[EpisodeReport]:
        tasks = self._tasks(questions, validate=False)
        reports = []
        reason = ""
        with self.run_folder.rollout_log(self.global_steps) as write:
            for report in self.episodes.run(tasks, validate=False, while_waiting=self.interruption.check):
                write(report.index, report.records)
                reason = reason or next((record["outage"] for record in report.records if record["outage"]), "")
                reports.append(report.without_records())
        # Episodes end in any order; everything after this line sees the order of the questions.
        reports.sort(key=lambda report: report.index)
        metrics["timing_s/reward_alone"] = seconds_of_reward_alone(reports)
        metrics.update(metrics_of(add_sums(report.sums for report in reports)))
        share, limit = metrics.get("judge/outage_share", 0.0), self.settings.sandbox.max_outage_share
        check_outages(share, limit=limit, step=self.global_steps, reason=reason)
        return reports

    def _update_book(self, reports: Sequence[EpisodeReport], metrics: dict[str, Any]) -> None:
        change = BookChange()
        if self.settings.mistake_book.enabled:
            for report in reports:
                change += self.book.update(
                    report.question_id, failed=report.lessons.failed, passed_replays=report.lessons.passed_replays
                )
        stats = self.book.stats()
        metrics.update(
            {
                "book/cases": stats.num_cases,
                "book/questions": stats.num_questions,
                "book/added": change.num_added,
                "book/removed": change.num_removed,
            }
        )

    def _compute_metrics(
        self, batch: KVBatchMeta, metrics: dict[str, Any], timing_raw: dict[str, float], global_steps: int, epoch: int
    ) -> None:
        metrics.update({f"timing_s/{name}": seconds for name, seconds in timing_raw.items()})
        metrics.update(time_shares(timing_raw, updates_at_once=self.config.layout == SEPARATE))
        metrics["time_share/reward_alone"] = metrics["timing_s/reward_alone"] / timing_raw["step"]
        metrics.update(self._row(metrics))
        self.run_folder.append_metrics(global_steps, metrics)
        self.book.save(self.run_folder.mistake_book)
        self.run_folder.show(step_line(global_steps, self.total_training_steps, metrics))

    def _row(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        epoch = (self.global_steps - 1) // self.steps_per_epoch
        return {**metrics, "training/global_step": self.global_steps, "training/epoch": epoch}

    # ------------------------------ validation ------------------------------

    def _validate(self) -> dict[str, float]:
        """Both policies on the held-out questions; metrics are prefixed ``val/``."""
        questions = self.val_dataset.questions  # not by their loader, which draws from training's random numbers
        tasks = self._tasks(questions, validate=True)
        reports = []
        with self._saving(), self.run_folder.rollout_log(self.global_steps, validation=True) as write:
            for report in self.episodes.run(tasks, validate=True, while_waiting=self.interruption.check):
                write(report.index, report.records)
                reports.append(report.without_records())
        metrics = validation_metrics([(questions[report.index].data_source, report.sums) for report in reports])
        if not self._has_stepped:
            self.run_folder.add_to_metrics(self.global_steps, metrics)
        self._keep_best(metrics)
        self.run_folder.show(step_line(self.global_steps, self.total_training_steps, metrics, prefix="val/"))
        return metrics

    # ------------------------------ checkpoints ------------------------------

    @property
    def _checkpoints(self) -> Path:
        return Path(self.config.trainer.default_local_dir).resolve()

    def _save_checkpoint(self) -> None:
        folder = self._save_finished()
        self.checkpoint_callback.on_save(
            trainer=self, global_step=self.global_steps, checkpoint_dir=str(folder), async_save=False
        )

    def _save_finished(self) -> Path:
        """Save the newest finished step unless it is saved; policies and book must be as it left them."""
        root = self._checkpoints
        if self._saved_step != self.finished.step:
            config: Any = OmegaConf.to_container(self.config, resolve=True)
            finished_step.save(
                root,
                self.finished,
                policies=self.policies,
                book=self.book,
                identity=self._identity,
                origin=self._origin,
                config=config,
            )
            self._saved_step = self.finished.step
            checkpointing.keep_newest(root, self.config.trainer.max_actor_ckpt_to_keep)
        return checkpointing.step_folder(root, self.finished.step)

    def _keep_best(self, metrics: Mapping[str, float]) -> None:
        name = self.settings.checkpoint.keep_best
        if name is None:
            return
        if name not in metrics:
            # Known before, it is merely undefined this time: the share of something that did not occur.
            if self.run_folder.has_metric(name):
                return
            raise SettingsError(
                f"checkpoint.keep_best={name}: validation has no such metric; it has {', '.join(sorted(metrics))}"
            )
        if checkpointing.note_best(self._checkpoints, step=self.global_steps, metric=name, value=metrics[name]):
            logger.info("step=%d is the best so far, %s=%g", self.global_steps, name, metrics[name])

    def _load_checkpoint(self) -> None:
        self.global_steps = 0
        self._identity = run_identity(self.config, self.settings, self.train_dataset)
        trainer = self.config.trainer
        found = checkpointing.find_checkpoint(
            self._checkpoints, mode=trainer.resume_mode, path=trainer.resume_from_path
        )
        if found is None:
            return
        found.check_fits(self._identity)
        self.finished = finished_step.load(found, policies=self.policies, dataloader=self.train_dataloader)
        self.book = MistakeBook.load(found.book)
        self.global_steps = found.step
        if found.folder.parent == self._checkpoints:
            self._saved_step = found.step
            self._origin = found.state().get(checkpointing.ORIGIN)
            checkpointing.announce(self._checkpoints, found.step)  # before the records of later steps are forgotten
        else:  # a run that goes on elsewhere saves where it is
            self._origin = str(found.folder)
        config: Any = OmegaConf.to_container(self.config, resolve=True)
        changes = [f"\n  changed since it was saved: {change}" for change in found.changed_settings(config)]
        self.run_folder.show(f"resumed from {found.folder}{''.join(changes)}")

    def _continue_records(self) -> None:
        """Rollouts and metrics up to the step that was resumed from; a step cut off after its saving is completed."""
        step, folder, trainer = self.global_steps, self.run_folder, self.config.trainer
        if not self._saved_step and (aside := folder.set_aside()) is not None:
            folder.show(f"no step of an earlier start was saved in this run_dir: its records are in {aside}")
        if not step:
            return
        folder.continue_at(step, self.finished.row)
        self.book.save(folder.mistake_book)
        is_due = trainer.test_freq > 0 and (step % trainer.test_freq == 0 or step == self.total_training_steps)
        row = folder.metrics_row(step) or {}
        trainer.val_before_train = is_due and not any(name.startswith("val/") for name in row)
