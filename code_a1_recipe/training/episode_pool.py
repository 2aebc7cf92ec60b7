"""The pool of all episode workers. The trainer gives it tasks, and gets a report when an episode ends."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import ray
from ray import cloudpickle

from ..algorithm.episode_types import EpisodeTask
from ..config.run_config import RunConfig
from ..verl_plugin.sampler import PolicyEndpoint
from .episode_worker import EpisodeReport, EpisodeWorker
from .judge_worker import JudgePool
from .plan.needs import CPUS_PER_EPISODE_WORKER

# If an actor dies, Ray restarts the actor and repeats its unfinished episodes. A repeated episode overwrites the rows
# of its first try, since the keys are the same.
_EPISODE_RETRIES = 1
_EPISODES_AT_ONCE = 256
"""Largest number of episodes that one worker runs at a time. This number keeps every server busy, and bounds the memory
of a large step."""
_LOOK_SECONDS = 0.5


@dataclass(eq=False)
class EpisodePool:
    """Handles of all episode workers."""

    workers: list[Any]
    _connections: bytes = b""

    @classmethod
    def start(cls, settings: RunConfig) -> Self:
        """Start the workers without waiting. The workers import their packages while the servers start."""
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
        """Give the workers their servers and judges, and wait until they are ready for episodes."""
        # Each episode's call passes the connections again, since a worker may have been restarted by Ray. The
        # connections cannot be arguments of the constructor: Ray would store the arguments in an object that may be
        # gone at the restart.
        self._connections = cloudpickle.dumps((dict(endpoints), judges))
        ray.get([worker.connect.remote(self._connections) for worker in self.workers])

    def run(
        self,
        tasks: Iterable[EpisodeTask],
        *,
        validate: bool,
        while_waiting: Callable[[], None],
    ) -> Iterator[EpisodeReport]:
        """Run all tasks and yield each report as soon as its episode ends, in no fixed order.

        Args:
            tasks: each task is taken when a worker has room for it.
            validate: run the episodes for validation, so that they store no rows and train nothing.
            while_waiting: is called about twice a second. If ``while_waiting`` raises an error, the wait ends, but the
                episodes go on until :meth:`close`.
        """
        waiting = iter(tasks)
        pending: dict[Any, int] = {}
        running = [0] * len(self.workers)
        while True:
            for task in itertools.islice(waiting, _EPISODES_AT_ONCE * len(running) - len(pending)):
                number = running.index(min(running))  # the least busy worker, since episodes differ in length
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
        """End the workers and every episode that they still run."""
        for worker in self.workers:
            ray.kill(worker)
