"""Judge processes as episodes ask them, without Ray."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from sandbox import (
    DEFAULT_QUESTIONS_PER_WORKER,
    CandidateVerdict,
    Closing,
    JudgeProcesses,
    JudgeRequest,
    SandboxUnavailableError,
)

from ..algorithm.settings import SandboxSettings
from .confinement import Confinement


class LocalAsyncJudge(Closing):
    """An ``AsyncJudge`` over judge processes of this machine.

    Raises:
        SandboxConfigError, SandboxUnavailableError: programs cannot be confined here.
    """

    def __init__(self, processes: JudgeProcesses) -> None:
        self._processes = processes
        number = processes.num_workers * DEFAULT_QUESTIONS_PER_WORKER
        self._threads = ThreadPoolExecutor(number, thread_name_prefix="async-judge")

    @classmethod
    def start(cls, settings: SandboxSettings, *, seed: int) -> "LocalAsyncJudge":
        """With the confinement, limits and seed of a run; one process a core."""
        return cls(Confinement.of_run(settings).judges(None, seed=seed))

    async def judge(self, request: JudgeRequest) -> CandidateVerdict:
        """Raises SandboxUnavailableError on an outage, which is never a verdict."""
        loop = asyncio.get_running_loop()
        (result,) = await loop.run_in_executor(self._threads, lambda: list(self._processes.judge_all([request])))
        if isinstance(result, SandboxUnavailableError):
            raise result
        return result

    def close(self) -> None:
        """Idempotent; what is being judged becomes an outage."""
        self._processes.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
