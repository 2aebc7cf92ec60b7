"""Judges as Ray actors. Each holds a runner, by default a pool of confined interpreters. None imports torch."""

import hashlib
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from sandbox import CandidateVerdict, Judge, JudgeRequest, SandboxUnavailableError

from ..algorithm.settings import SandboxSettings
from .runners import cpus_per_judge, make_runner

# Ray restarts a judge that dies and repeats the call. What the judge remembered only saves time, so nothing changes.
_CALL_RETRIES = 2
_CLOSE_SECONDS = 10
_WAITING = 8
"""Open requests of a judge, as a multiple of the programs that it runs at a time. Requests that wait for the reference
of their question must not hold up another question."""


class JudgeWorker:
    """A judge process. Its runner limits the number of programs that run at a time."""

    def __init__(self, settings: SandboxSettings, seed: int) -> None:
        self._runner = make_runner(settings)
        self._judge = Judge(self._runner, limits=settings.limits, seed=seed, reuse_results=True)

    def judge(self, request: JudgeRequest) -> CandidateVerdict:
        return self._judge.judge(request)

    def close(self) -> None:
        """End the runner and what it started; the actor is of no use afterwards."""
        self._runner.close()


@dataclass(frozen=True, eq=False)
class JudgePool:
    """Handles of all judges. A question always goes to the same judge, which keeps its reference answers."""

    workers: list[Any]

    @classmethod
    def start(cls, settings: SandboxSettings, *, seed: int) -> "JudgePool":
        """Start ``settings.num_workers`` actors, spread over the nodes, and wait until they answer."""
        actor_class = ray.remote(JudgeWorker).options(
            max_concurrency=_WAITING * settings.programs_per_worker,
            max_restarts=-1,
            max_task_retries=_CALL_RETRIES,
            num_cpus=cpus_per_judge(settings),
            scheduling_strategy="SPREAD",
        )
        workers: list[Any] = [actor_class.remote(settings, seed) for _ in range(settings.num_workers)]
        ray.get([worker.__ray_ready__.remote() for worker in workers])
        return cls(workers)

    async def judge(self, request: JudgeRequest) -> CandidateVerdict:
        """Judge one candidate.

        Raises:
            SandboxUnavailableError: the sandbox, or the actor around it, could not run the program after retries.
        """
        # Every process must choose the same judge, and Python's own hash of a text differs between processes.
        digest = hashlib.sha256(request.question_id.encode("utf-8", "surrogatepass")).digest()
        worker = self.workers[int.from_bytes(digest[:8], "big") % len(self.workers)]
        try:
            verdict: CandidateVerdict = await worker.judge.remote(request)
        except RayTaskError:
            # The judge itself raised this error: an outage keeps its type, and a bug must not look like an outage.
            raise
        except RayError as error:
            raise SandboxUnavailableError(f"judge process lost: {type(error).__name__}: {error}") from error
        return verdict

    def close(self) -> None:
        """End every judge, even if others do not answer. The interpreters of a lost judge have ended with it."""
        closing = [worker.close.remote() for worker in self.workers]
        # Unlike ``ray.get``, this raises nothing for a judge that failed or does not answer in time.
        ray.wait(closing, num_returns=len(closing), timeout=_CLOSE_SECONDS)
        for worker in self.workers:
            ray.kill(worker)
