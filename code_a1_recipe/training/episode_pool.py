"""All episode workers, as the trainer sees them: it hands out tasks and gets reports as they end."""

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

# An actor that dies is started again and its unfinished episodes are run again; rows already stored are overwritten
# under the same keys.
_EPISODE_RETRIES = 1
_EPISODES_AT_ONCE = 256
"""Of one worker: enough to keep any server busy, and a bound on what workers and trainer hold of a large step."""
_LOOK_SECONDS = 0.5


@dataclass(eq=False)
class EpisodePool:
    """All episode workers, seen from the trainer."""

    workers: list[Any]
    _connections: bytes = b""

    @classmethod
    def start(cls, settings: RunConfig) -> Self:
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
