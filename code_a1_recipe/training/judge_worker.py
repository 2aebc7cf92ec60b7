"""Judges as Ray actors without torch. Each judge has a runner, by default a pool of confined interpreters."""

import hashlib
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from sandbox import CandidateVerdict, Judge, JudgeRequest, SandboxUnavailableError

from ..algorithm.settings import SandboxSettings
from .runners import cpus_per_judge, make_runner

# If a judge dies, Ray restarts the judge and repeats the call. Only the judge's caches are lost, so the verdict is the
# same.
_CALL_RETRIES = 2
_CLOSE_SECONDS = 10
_WAITING = 8
"""Largest number of open requests of a judge, as a multiple of the programs that the judge runs at a time. With a
smaller multiple, requests that wait for the reference of their question could block requests of other questions."""


class JudgeWorker:
    """A judge process. The judge's runner limits the number of programs that run at a time."""

    def __init__(self, settings: SandboxSettings, seed: int) -> None:
        self._runner = make_runner(settings)
        self._judge = Judge(self._runner, limits=settings.limits, seed=seed, reuse_results=True)

    def judge(self, request: JudgeRequest) -> CandidateVerdict:
        return self._judge.judge(request)

    def close(self) -> None:
        """End the runner and its processes. Afterwards the actor cannot judge."""
        self._runner.close()


@dataclass(frozen=True, eq=False)
class JudgePool:
    """Handles of all judges. A question always goes to the same judge, which caches the answers of the reference."""

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
            SandboxUnavailableError: even after retries, the sandbox or the judge's actor could not run the program.
        """
        # Every process must choose the same judge, but Python's own hash of a text differs between processes.
        question_id = request.question_id.encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(question_id).digest()
        number = int.from_bytes(digest[:8], "big") % len(self.workers)
        worker = self.workers[number]
        try:
            verdict: CandidateVerdict = await worker.judge.remote(request)
        except RayTaskError:
            # The judge's own code raised this error. The error may be a bug, which must not look like an outage.
            raise
        except RayError as error:
            raise SandboxUnavailableError(f"judge process lost: {type(error).__name__}: {error}") from error
        return verdict

    def close(self) -> None:
        """End every judge, even if some do not answer. The interpreters of a lost judge have ended with it."""
        closing = [worker.close.remote() for worker in self.workers]
        # Unlike ``ray.get``, ``ray.wait`` raises no error for a judge that failed or does not answer in time.
        ray.wait(closing, num_returns=len(closing), timeout=_CLOSE_SECONDS)
        for worker in self.workers:
            ray.kill(worker)
