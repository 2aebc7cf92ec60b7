"""Ray actors that run episodes, store trajectories and report compact results to the trainer."""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import ray
from ray import cloudpickle
from verl.utils import hf_tokenizer

from ..algorithm.episode import EpisodeRunner
from ..algorithm.episode_types import Episode, EpisodeTask
from ..algorithm.hooks import Extension
from ..algorithm.mistake_book import BookUpdate
from ..algorithm.replay import collect_book_update
from ..algorithm.sampling import SamplingParameters
from ..algorithm.selection import GROUP_SELECTORS
from ..algorithm.spans import Span, seconds_of
from ..config.run_config import RunConfig
from ..extensions import extensions_of
from ..extensions.scripted_tester import find_scripted_tester
from ..runs.metrics import MetricAccumulator, accumulate_episode, busy_spans
from ..runs.rollout_record import encode_records, episode_records
from ..verl_plugin import row_queue
from .imitation import imitated_response
from .judge_actors import JudgePool
from .plan.needs import CPUS_PER_EPISODE_WORKER
from .sampler import PolicyEndpoint, ServerSampler
from .trajectories import (
    StoredRows,
    Trajectory,
    code_trajectories,
    extra_trajectories,
    group_uid,
    lesson_trajectories,
    store,
    test_trajectories,
)

# An actor that dies is started again and its unfinished episodes are run again; rows already stored are overwritten
# under the same keys.
_EPISODE_RETRIES = 1
_EPISODES_AT_ONCE = 256
"""Of one worker: enough to keep any server busy, and a bound on what workers and trainer hold of a large step."""
_LOOK_SECONDS = 0.5


def load_tokenizer(config: RunConfig, name: str) -> Any:
    """A policy's tokenizer, whose chat prompts are written by the run's template and its arguments."""
    model = config.policy(name).model
    tokenizer = hf_tokenizer(model.tokenizer_path or model.path, trust_remote_code=model.trust_remote_code)
    if model.custom_chat_template is not None:
        tokenizer.chat_template = model.custom_chat_template
    if arguments := config.data.apply_chat_template_kwargs:
        # Bound to the tokenizer, since verl and the servers call the method without arguments of the run.
        tokenizer.apply_chat_template = partial(tokenizer.apply_chat_template, **arguments)
    return tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeReport:
    """What the trainer keeps of an episode."""

    index: int
    """Position of the question in its step."""
    question_id: str
    grpo_rows: Mapping[str, StoredRows]
    """Stored GRPO groups by policy name: the candidates, and the suites of those that TOPVAR selected."""
    book_update: BookUpdate
    found: Mapping[str, Any]
    """What extensions keep of the episode, by name."""
    has_spread: bool
    """The question's programs earned different rewards, without which none has an advantage."""
    accumulator: MetricAccumulator
    busy: Mapping[str, tuple[Span, ...]]
    """When something was generated ("generate") and judged ("judge") for this question; sorted and disjoint."""
    records: bytes
    """Lines for the rollout log."""
    outage: str
    """Why the sandbox could not judge a program of it; empty where it judged all."""


def seconds_of_exposed_judging(reports: Sequence[EpisodeReport]) -> float:
    """Seconds in which programs were judged and nothing was generated: what a step would save without a judge."""
    judging = [span for report in reports for span in report.busy["judge"]]
    generating = [span for report in reports for span in report.busy["generate"]]
    # What judging adds to the seconds that generation covers.
    return seconds_of(judging + generating) - seconds_of(generating)


class EpisodeWorker:
    """Runs any number of episodes at a time on one event loop."""

    def __init__(self, settings: RunConfig) -> None:
        self._settings = settings
        self._connections = b""
        self._extensions = extensions_of(settings)
        # It takes seconds, and the servers that come next take longer.
        self._tokenizers = {name: load_tokenizer(settings, name) for name in settings.policy_names}

    def connect(self, connections: bytes) -> None:
        """Get to know servers and judges once; a worker that Ray has started again does so with its next episode.

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
        # Whoever writes the suites: the Test LLM, or in self-play the one model. No suites are written without either.
        tester = "test" if "test" in self._endpoints else "code"
        code, test = (self._endpoints[name] for name in ("code", tester))
        return EpisodeRunner(
            code=self._sampler("code", code.validation if validate else code.training),
            test=self._sampler(tester, test.validation if validate else test.training),
            greedy=self._sampler("code", code.validation.greedy()),
            judge=judges,
            episode=settings.episode,
            rewards=settings.rewards,
            prompts=settings.prompts,
            judge_timeout_seconds=settings.sandbox.judge_timeout_seconds,
            tester=find_scripted_tester(settings.episode.tester),
            extensions=self._extensions,
        )

    def _sampler(self, name: str, parameters: SamplingParameters) -> ServerSampler:
        return ServerSampler(
            endpoint=self._endpoints[name],
            tokenizer=self._tokenizers[name],
            parameters=parameters,
            timeout_seconds=self._settings.episode.generation_timeout_seconds,
        )

    async def train(self, task: EpisodeTask, connections: bytes) -> EpisodeReport:
        """Run an episode, select the suites that train (TOPVAR), store the groups of both policies."""
        self.connect(connections)
        episode = await self._runners[False].run(task)
        selection = self._settings.selection
        select_groups = GROUP_SELECTORS[selection.name]
        selected = select_groups(episode.suite_rewards_CS(), update_n=selection.update_n)
        group = group_uid(task.step, task.index)
        extra = [one for extension in self._extensions for one in extension.extra_groups(episode)]
        trajectories = {
            "code": code_trajectories(episode, group=group) + extra_trajectories(extra, "code", group=group)
        }
        suites = test_trajectories(episode, selected=selected, group=group)
        suites += extra_trajectories(extra, "test", group=group) + self._lessons(task, group=group)
        if self._settings.self_play:
            trajectories["code"] += suites
        else:
            trajectories["test"] = suites
        stored = await asyncio.gather(*[store(name, rows, step=task.step) for name, rows in trajectories.items()])
        return _report(
            episode,
            extensions=self._extensions,
            grpo_rows=dict(zip(trajectories, stored, strict=True)),
            selected=selected,
        )

    def _lessons(self, task: EpisodeTask, *, group: str) -> list[Trajectory]:
        """Rows of the suites that extensions let the Test LLM imitate, but of those that do not fit."""
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
        """Run an episode on a held-out question; nothing is stored, nothing is learned."""
        self.connect(connections)
        episode = await self._runners[True].run(task)
        return _report(episode, extensions=self._extensions, grpo_rows={}, selected=())


def _report(
    episode: Episode,
    *,
    extensions: Sequence[Extension],
    grpo_rows: Mapping[str, StoredRows],
    selected: Sequence[int],
) -> EpisodeReport:
    verdicts = [candidate.verdict for candidate in episode.candidates if candidate.verdict is not None]
    return EpisodeReport(
        index=episode.task.index,
        question_id=episode.task.question.id,
        grpo_rows=grpo_rows,
        book_update=collect_book_update(verdicts),
        found=episode.found,
        has_spread=len({one.reward.total for one in episode.candidates if one.reward is not None}) > 1,
        accumulator=accumulate_episode(episode, extensions),
        busy=busy_spans(episode),
        records=encode_records(episode_records(episode, selected=selected)),
        outage=next((one.outage for one in episode.written if one.outage), ""),
    )


@dataclass(eq=False)
class EpisodePool:
    """All episode workers, seen from the trainer."""

    workers: list[Any]
    _connections: bytes = b""

    @classmethod
    def start(cls, settings: RunConfig) -> "EpisodePool":
        """Start the workers, and do not wait: they import what they need while the servers start."""
        actor_class = ray.remote(EpisodeWorker).options(
            max_restarts=-1,
            max_task_retries=_EPISODE_RETRIES,
            max_concurrency=_EPISODES_AT_ONCE,
            num_cpus=CPUS_PER_EPISODE_WORKER,
            scheduling_strategy="SPREAD",
        )
        workers = [actor_class.remote(settings) for _ in range(settings.episode.num_workers)]
        return cls(workers)

    def connect(self, *, endpoints: Mapping[str, PolicyEndpoint], judges: JudgePool) -> None:
        """Tell the workers where servers and judges are, and wait until they are ready for episodes."""
        # With every call, so that one that Ray starts again knows it too: a handle among the arguments of a
        # constructor counts as an object that may be gone by then.
        self._connections = cloudpickle.dumps((dict(endpoints), judges))
        ray.get([worker.connect.remote(self._connections) for worker in self.workers])

    def run(
        self, tasks: Iterable[EpisodeTask], *, validate: bool, while_waiting: Callable[[], None] = lambda: None
    ) -> Iterator[EpisodeReport]:
        """Run all tasks, yielding each report as soon as its episode ends, in no fixed order.

        Args:
            tasks: taken one by one as workers have room.
            validate: nothing is stored, nothing is learned.
            while_waiting: called about twice a second; what it raises ends the wait, and :meth:`close` the episodes.
        """
        waiting = iter(tasks)
        pending: dict[Any, int] = {}
        running = [0] * len(self.workers)
        while True:
            for task in itertools.islice(waiting, _EPISODES_AT_ONCE * len(running) - len(pending)):
                number = running.index(min(running))
                worker = self.workers[number]
                run = worker.validate if validate else worker.train
                pending[run.remote(task, self._connections)] = number
                running[number] += 1
            if not pending:
                return
            done, _ = ray.wait(list(pending), num_returns=1, timeout=_LOOK_SECONDS)
            while_waiting()
            for reference in done:
                running[pending.pop(reference)] -= 1
                yield ray.get(reference)

    def close(self) -> None:
        """End the workers, and with them every episode that is under way."""
        for worker in self.workers:
            ray.kill(worker)
