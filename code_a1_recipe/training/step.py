"""One step of the paper, in the order of ``algorithm/README.md``."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeVar

from ..algorithm.hooks import Extension
from ..algorithm.mistake_book import BookChange, MistakeBook
from ..algorithm.question import Question
from ..algorithm.tasks import tasks_of
from ..config.run_config import SEPARATE, RunConfig
from ..extensions import after_step
from ..extensions.states import saved_states
from ..jobs.judge_loop import in_parallel
from ..runs import metrics as measures
from ..runs.folder import RunFolder
from ..verl_plugin.loop import Metrics, TrainingLoop, marked_timer
from ..verl_plugin.row_queue import KVBatchMeta, step_marker
from ..verl_plugin.trajectories import StoredRows, join_rows
from .checkpoint import random_states
from .checkpoint.keeper import TrainState
from .episode_pool import EpisodePool
from .episode_worker import EpisodeReport, seconds_of_exposed_judging
from .lifecycle.signals import SignalHandler
from .policy import Policy
from .refill import give_way, refill

Result = TypeVar("Result")


class CoTrainingStep(TrainingLoop):
    """The step of ``CodeA1Trainer``. The attributes below are set by the trainer."""

    settings: RunConfig
    run_folder: RunFolder
    policies: dict[str, Policy]
    episodes: EpisodePool
    book: MistakeBook
    extensions: Sequence[Extension]
    signals: SignalHandler
    finished: TrainState
    """State after the newest finished step. This state is saved if the run cannot go on."""
    _saving: Callable[..., AbstractContextManager[None]]

    def step(self, metrics: Metrics, timing_raw: dict[str, float]) -> KVBatchMeta:
        """Run one step of the paper. ``algorithm/README.md`` has the rules of a step in the same order.

        Returns:
            A batch that only marks the step. verl's loop removes the returned batch from the queue, but the policies
            have already removed their own rows.

        Raises:
            InterruptedRunError: a signal came while episodes ran. The previous step is saved.
        """
        self._has_stepped = True
        with marked_timer("episodes", timing_raw), self._saving():
            questions = self._next_questions()
            reports = self._run_episodes(questions, metrics)  # replays, candidates, suites, verdicts, rewards
        self.end_rollout_profile()
        self._sleep_servers()
        self._update_mistake_book(reports, metrics)
        metrics.update(after_step(self.extensions, [report.found for report in reports]))
        groups = self._collect_grpo_groups(reports, len(questions))  # all candidates, and suites that TOPVAR selects
        self._alternate_updates(groups, metrics, timing_raw)
        self._finish_step(metrics)
        return step_marker(self.global_steps)

    def _next_questions(self) -> list[Question]:
        if self.train_dataloader_it is None:
            self.train_dataloader_it = iter(self.train_dataloader)
            if self.finished.random_states is not None:
                # A new iterator draws from torch's generator. A run without a resume draws nothing here, so the draw is
                # undone.
                random_states.restore(self.finished.random_states)
        batch = next(self.train_dataloader_it, None)
        if batch is None:
            self.train_dataloader_it = iter(self.train_dataloader)
            batch = next(self.train_dataloader_it)
        return list(batch["question"])

    def _run_episodes(self, questions: Sequence[Question], metrics: Metrics) -> list[EpisodeReport]:
        reports = self._reports(questions, validate=False)
        metrics["episode/refilled_questions"] = len(reports) - len(questions)
        metrics["timing_s/exposed_judging"] = seconds_of_exposed_judging(reports)
        metrics.update(measures.finalize_metrics(report.accumulator for report in reports))
        reasons = [report.outage for report in reports if report.outage]
        measures.check_outages(
            metrics.get("judge/outage_rate", 0.0),
            limit=self.settings.sandbox.max_outage_rate,
            step=self.global_steps,
            reason=reasons[0] if reasons else "",
        )
        return reports

    def _reports(self, questions: Sequence[Question], *, validate: bool) -> list[EpisodeReport]:
        """Run the episodes and write their rollouts.

        Returns:
            The reports of the questions in their order, and then the reports of the questions that refills added.
        """
        trainer, step = self.settings.trainer, self.global_steps
        copy_in = trainer.validation_data_dir if validate else trainer.rollout_data_dir
        max_refills = 0 if validate else self.settings.episode.max_refills
        started_at = time.time()
        reports: list[EpisodeReport] = []
        with self.run_folder.rollout_log(step, validation=validate, copy_in=copy_in) as write:
            asked = questions
            for number in range(1 + max_refills):
                if number:
                    asked = refill(
                        self.train_dataset.questions,
                        reports,
                        wanted=len(questions),
                        seed=self.settings.seed,
                        step=step,
                    )
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
                    reports.append(replace(report, records=b""))  # the trainer keeps no texts of a step
        return sorted(reports, key=lambda report: report.index)

    def _sleep_servers(self) -> None:
        with self._saving(on_signal=False):
            self._of_each(lambda name: self.policies[name].sleep())

    def _update_mistake_book(self, reports: Sequence[EpisodeReport], metrics: Metrics) -> None:
        """Mistake Book: add failed cases or count them up, and count down the replayed cases that passed."""
        change = BookChange()
        if self.settings.mistake_book.enabled:
            for report in reports:
                change += self.book.update(report.question_id, report.book_update)
        metrics.update(measures.book_metrics(self.book, change))

    def _collect_grpo_groups(self, reports: Sequence[EpisodeReport], num_questions: int) -> dict[str, StoredRows]:
        """Return the stored rows that each policy may train on, and discard the rows of replaced questions."""
        kept, replaced = give_way(reports, wanted=num_questions)
        groups = {}
        for name, policy in self.policies.items():
            if replaced:
                policy.discard(join_rows([report.grpo_rows[name] for report in replaced]))
            groups[name] = join_rows([report.grpo_rows[name] for report in kept])
        return groups

    def _alternate_updates(
        self,
        groups: Mapping[str, StoredRows],
        metrics: Metrics,
        timing_raw: dict[str, float],
    ) -> None:
        """Alternation: make a GRPO update of each policy that ``schedule`` names for this step."""
        due = self.settings.schedule.policies_at(self.global_steps)

        def update(name: str) -> dict[str, float]:
            policy, rows = self.policies[name], groups[name]
            if name not in due or not rows.keys:
                updated = policy.leave_out(rows, step=self.global_steps)  # otherwise the rows would fill the queue
            else:
                with marked_timer(f"update_{name}", timing_raw):
                    updated = policy.update(rows, step=self.global_steps, epoch=self._epoch)
            return {f"{name}/{key}": value for key, value in updated.items()}

        for updated in self._of_each(update).values():
            metrics.update(updated)

    def _of_each(self, call: Callable[[str], Result]) -> dict[str, Result]:
        """Call for each policy: at the same time if each policy has its own GPUs, otherwise in turn until an error."""
        if self.settings.layout == SEPARATE:
            return dict(in_parallel(self.policies, call, num_threads=len(self.policies)))
        return {name: call(name) for name in self.policies}

    def _finish_step(self, metrics: Metrics) -> None:
        """Keep the state that a checkpoint of this step needs."""
        # The checkpoint may be saved during the next step, when the order of questions and random states are no longer
        # the same.
        self.finished = TrainState(
            step=self.global_steps,
            data=self.train_dataloader.state_dict(),
            row=self._row(metrics),
            random_states=random_states.capture(),
            extensions=saved_states(self.extensions),
        )

    @property
    def _epoch(self) -> int:
        return int((self.global_steps - 1) // self.steps_per_epoch)

    def _row(self, metrics: Metrics) -> Metrics:
        return {**metrics, "training/global_step": self.global_steps, "training/epoch": self._epoch}
