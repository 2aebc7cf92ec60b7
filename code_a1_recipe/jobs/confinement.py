"""How the programs of a command are confined, and judging so confined: of many questions, or as episodes ask."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from sandbox import (
    DEFAULT_QUESTIONS_PER_WORKER,
    CandidateVerdict,
    Closing,
    JudgeProcesses,
    JudgeRequest,
    Limits,
    SandboxUnavailableError,
    WorkerSettings,
)

from ..algorithm.settings import SandboxSettings
from .jsonl_store import JsonlStore, Key, Row
from .judge_loop import judge_into

JudgeAll = Callable[[Iterable[JudgeRequest]], Iterable[CandidateVerdict | SandboxUnavailableError]]
"""``JudgeProcesses.judge_all``: results in the order of the requests."""
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What programs may use, and how they are kept in."""

    limits: Limits = field(default_factory=Limits)
    tier: int = 0
    allow_missing: tuple[str, ...] = ()
    """Protections to do without; decides no verdict."""

    @classmethod
    def of_run(
        cls, sandbox: SandboxSettings, *, tier: int | None = None, allow_missing: Sequence[str] = ()
    ) -> "Confinement":
        """That of a recorded run's block ``sandbox``, for what is not given here."""
        return cls(
            limits=sandbox.limits,
            tier=sandbox.tier if tier is None else tier,
            allow_missing=tuple(allow_missing) or sandbox.allow_missing,
        )

    def described(self) -> dict[str, Any]:
        """Plain values for a settings file."""
        return {"limits": asdict(self.limits), "tier": self.tier}

    def judges(self, num_workers: int | None, *, seed: int = 0) -> JudgeProcesses:
        """Judge processes, to be used in a ``with`` statement; one a core where no number is given."""
        runner = {"limits": self.limits, "tier": self.tier, "allow_missing": self.allow_missing}
        return JudgeProcesses(num_workers, settings=WorkerSettings(seed=seed, runner=runner))


def judge_confined(
    store: JsonlStore,
    items: Sequence[Item],
    work: Callable[[Item, JudgeAll], Row],
    *,
    key: Callable[[Item], Key],
    confinement: Confinement,
    num_workers: int,
    what: str = "judge",
    unit: str = "question",
) -> None:
    """Append the row of each item that ``store`` lacks; see ``judge_into``.

    Args:
        store: gets the rows.
        items: all of them.
        work: makes an item's row, from several threads; its ``outage`` is a text where the sandbox could not say.
        key: an item's key in ``store``.
        confinement: of the programs.
        num_workers: judge processes, at least 1.
        what: the work, for the progress.
        unit: what an item is.

    Raises:
        SandboxConfigError: programs cannot be confined as asked for.
        OutageError: too many items in a row could not be judged.
    """
    left = [item for item in items if key(item) not in store]
    if not left:
        return
    with confinement.judges(num_workers) as judges:
        judge_into(
            store,
            left,
            lambda item: [work(item, judges.judge_all)],
            num_threads=num_workers * DEFAULT_QUESTIONS_PER_WORKER,
            total=len(items),
            what=what,
            unit=unit,
        )


class LocalAsyncJudge(Closing):
    """An ``AsyncJudge`` over judge processes of this machine, without Ray.

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
