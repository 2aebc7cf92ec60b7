"""The episode worker: a Ray actor that runs episodes, stores their rows and sends the trainer short reports."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ray import cloudpickle

from ..algorithm.book_update import collect_book_update
from ..algorithm.episode import EpisodeRunner
from ..algorithm.episode_types import Episode, EpisodeTask
from ..algorithm.hooks import Extension
from ..algorithm.mistake_book import BookUpdate
from ..algorithm.sampling import SamplingParameters
from ..algorithm.selection import GROUP_SELECTORS
from ..algorithm.spans import Span, seconds_of
from ..algorithm.validation import ValidationRunner
from ..config.run_config import RunConfig
from ..extensions import extensions_of
from ..extensions.scripted_tester import find_scripted_tester
from ..runs.metrics import MetricAccumulator, accumulate_episode, busy_spans
from ..runs.rollout_record import encode_records, episode_records
from ..verl_plugin import row_queue
from ..verl_plugin.sampler import PolicyEndpoint, ServerSampler, load_tokenizer
from ..verl_plugin.trajectories import (
    GroupId,
    StoredRows,
    Trajectory,
    code_trajectories,
    extra_trajectories,
    lesson_trajectories,
    store,
    test_trajectories,
)
from .imitation import imitated_response
from .judge_worker import JudgePool


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeReport:
    """An episode's results for the trainer."""

    index: int
    """Position of the question in its step."""
    question_id: str
    grpo_rows: Mapping[str, StoredRows]
    """Stored rows of the GRPO groups by policy name: all candidates, and the suites of the candidates that TOPVAR
    selected."""
    book_update: BookUpdate
    found: Mapping[str, Any]
    """Results of extensions, by the extension's name."""
    has_spread: bool
    """Whether the rewards of the question's programs differ. If all rewards are equal, no program has an advantage."""
    accumulator: MetricAccumulator
    busy: Mapping[str, tuple[Span, ...]]
    """Sorted and disjoint spans of time in which responses were generated ("generate") or programs were judged
    ("judge")."""
    records: bytes
    """The episode's lines of the rollout log."""
    outage: str
    """First reason why the sandbox could not judge a program; empty if it judged all."""


def seconds_of_exposed_judging(reports: Sequence[EpisodeReport]) -> float:
    """Return the seconds in which programs were judged while no response was generated.

    If the judge took no time, the step would be shorter by these seconds.
    """
    judging = [span for report in reports for span in report.busy["judge"]]
    generating = [span for report in reports for span in report.busy["generate"]]
    # Spans of different episodes overlap, so their lengths cannot be added.
    return seconds_of(judging + generating) - seconds_of(generating)


class EpisodeWorker:
    """Actor that runs any number of episodes at the same time, on one event loop."""

    def __init__(self, settings: RunConfig) -> None:
        self._settings = settings
        self._connections = b""
        self._extensions = extensions_of(settings)
        # Loading takes seconds, so the tokenizers are loaded while the servers start.
        self._tokenizers = {name: load_tokenizer(settings, name) for name in settings.policy_names}

    def connect(self, connections: bytes) -> None:
        """Connect to servers and judges if the worker is not connected, for example after Ray has restarted the worker.

        Args:
            connections: pickled ``(endpoints, judges)``, see :meth:`EpisodePool.connect`.
        """
        if connections == self._connections:
            return
        endpoints, judges = cloudpickle.loads(connections)
        row_queue.init()
        self._endpoints: Mapping[str, PolicyEndpoint] = endpoints
        self._runners = {validate: self._runner(judges, validate=validate) for validate in (False, True)}
        self._connections = connections

    def _runner(self, judges: JudgePool, *, validate: bool) -> EpisodeRunner:
        settings = self._settings
        # In self-play the Code LLM writes the suites. In other runs without a Test LLM no model is asked for suites.
        tester = "test" if "test" in self._endpoints else "code"
        code, test = self._endpoints["code"], self._endpoints[tester]
        common: dict[str, Any] = {
            "judge": judges,
            "settings": settings.episode,
            "rewards": settings.rewards,
            "prompts": settings.prompts,
            "judge_timeout_seconds": settings.sandbox.judge_timeout_seconds,
            "scripted_tester": find_scripted_tester(settings.episode.tester),
            "extensions": self._extensions,
        }
        if not validate:
            return EpisodeRunner(
                code_llm=self._sampler("code", code.training),
                test_llm=self._sampler(tester, test.training),
                **common,
            )
        return ValidationRunner(
            code_llm=self._sampler("code", code.validation),
            test_llm=self._sampler(tester, test.validation),
            greedy=self._sampler("code", code.validation.greedy()),
            **common,
        )

    def _sampler(self, name: str, parameters: SamplingParameters) -> ServerSampler:
        return ServerSampler(
            endpoint=self._endpoints[name],
            tokenizer=self._tokenizers[name],
            parameters=parameters,
            timeout_seconds=self._settings.episode.generation_timeout_seconds,
        )

    async def train(self, task: EpisodeTask, connections: bytes) -> EpisodeReport:
        """Run an episode, select suites for training (TOPVAR), and store the GRPO groups of both policies."""
        self.connect(connections)
        episode = await self._runners[False].run(task)
        selection = self._settings.selection
        selected = GROUP_SELECTORS[selection.name](episode.suite_rewards_CS(), update_n=selection.update_n)
        group = GroupId(task.step, task.index)
        extra = [added for extension in self._extensions for added in extension.extra_groups(episode)]
        programs = code_trajectories(episode, group=group) + extra_trajectories(extra, "code", group=group)
        suites = (
            test_trajectories(episode, selected=selected, group=group)
            + extra_trajectories(extra, "test", group=group)
            + self._lessons(task, group=group)
        )
        trajectories = {"code": programs, "test": suites}
        if self._settings.self_play:
            trajectories = {"code": programs + suites}
        stored = await asyncio.gather(*(store(name, rows) for name, rows in trajectories.items()))
        grpo_rows = dict(zip(trajectories, stored, strict=True))
        return _report(episode, self._extensions, grpo_rows=grpo_rows, selected=selected)

    def _lessons(self, task: EpisodeTask, *, group: GroupId) -> list[Trajectory]:
        """Return rows of the suites that the Test LLM shall imitate. Suites that are too long get no row."""
        lessons = []
        for extension in self._extensions:
            for imitated in extension.imitated(task):
                response = imitated_response(
                    imitated,
                    settings=self._settings,
                    tokenizer=self._tokenizers["test"],
                    room=self._endpoints["test"].training,
                    step=task.step,
                )
                if response is not None:
                    lessons.append((response, imitated.weight))
        return lesson_trajectories(lessons, group=group)

    async def validate(self, task: EpisodeTask, connections: bytes) -> EpisodeReport:
        """Run an episode on a held-out question. No rows are stored."""
        self.connect(connections)
        episode = await self._runners[True].run(task)
        return _report(episode, self._extensions, grpo_rows={}, selected=())


def _report(
    episode: Episode,
    extensions: Sequence[Extension],
    *,
    grpo_rows: Mapping[str, StoredRows],
    selected: Sequence[int],
) -> EpisodeReport:
    candidates = episode.candidates
    verdicts = [candidate.verdict for candidate in candidates if candidate.verdict is not None]
    rewards = {round(candidate.reward.total, 9) for candidate in candidates if candidate.reward is not None}
    return EpisodeReport(
        index=episode.task.index,
        question_id=episode.task.question.id,
        grpo_rows=grpo_rows,
        book_update=collect_book_update(verdicts),
        found=episode.found,
        has_spread=len(rewards) > 1,
        accumulator=accumulate_episode(episode, extensions),
        busy=busy_spans(episode),
        records=encode_records(episode_records(episode, selected=selected)),
        outage=next((program.outage for program in episode.judged_programs if program.outage), ""),
    )
