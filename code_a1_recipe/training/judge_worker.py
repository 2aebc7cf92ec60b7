"""Judges as Ray actors: each holds a runner, by default its own pool of confined interpreters; none holds torch."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from sandbox import CandidateVerdict, Judge, JudgeRequest, SandboxUnavailableError

from ..algorithm.settings import SandboxSettings
from .runners import cpus_per_judge, make_runner

# A judge that dies is started again by Ray and the call repeated: what it remembered saves time and changes nothing.
_CALL_RETRIES = 2
_WAITING = 8
"""Requests that a judge takes at a time, as a multiple of the programs it runs: those that wait for one question's
reference must not hold up another question."""


class JudgeWorker:
    """One judge process; its runner bounds how many programs run at a time."""

    def __init__(self, settings: SandboxSettings, seed: int) -> None:
        self._runner = make_runner(settings)
        self._judge = Judge(self._runner, limits=settings.limits, seed=seed, reuse_results=True)

    def judge(self, request: JudgeRequest) -> CandidateVerdict:
        return self._judge.judge(request)

    def close(self) -> None:
        """Ends the runner and what it started; the actor is of no use afterwards."""
        self._runner.close()


@dataclass(frozen=True, eq=False)
class JudgePool:
    """Handles of all judges; a question always meets the same one, which keeps its reference answers."""

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
        digest = hashlib.sha256(request.question_id.encode("utf-8", "surrogatepass")).digest()
        worker = self.workers[int.from_bytes(digest[:8], "big") % len(self.workers)]
        try:
            verdict: CandidateVerdict = await worker.judge.remote(request)
        except RayTaskError:
            # What the judge itself raised: an outage keeps its type, and a bug must not pass for an outage.
            raise
        except RayError as error:
            raise SandboxUnavailableError(f"judge process lost: {type(error).__name__}: {error}") from error
        return verdict

    def close(self) -> None:
        """Close every judge; one that is already gone has taken its interpreters with it."""
        for worker in self.workers:
            with suppress(RayError):
                ray.get(worker.close.remote(), timeout=10)
            ray.kill(worker)
