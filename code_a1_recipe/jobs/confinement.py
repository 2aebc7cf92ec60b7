"""The confinement under which a command runs programs, and a loop that judges many items under it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from sandbox import (
    CandidateVerdict,
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
"""Type of ``JudgeProcesses.judge_all``. The results come in the order of the requests."""
Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """Limits and confinement of the programs of a command."""

    limits: Limits = field(default_factory=Limits)
    tier: int = 0
    allow_missing: tuple[str, ...] = ()
    """Names of protections that the kernel may lack. A missing protection changes no verdict."""

    @classmethod
    def of_run(cls, sandbox: SandboxSettings, *, allow_missing: tuple[str, ...] = ()) -> "Confinement":
        """Return the confinement that a run's ``sandbox`` block describes.

        A given ``allow_missing`` replaces the run's.
        """
        return cls(
            limits=sandbox.limits,
            tier=sandbox.tier,
            allow_missing=allow_missing or sandbox.allow_missing,
        )

    def described(self) -> dict[str, Any]:
        """Return the settings that decide verdicts, as plain values for a settings file."""
        return {"limits": asdict(self.limits), "tier": self.tier}

    def judges(self, num_workers: int | None, *, seed: int = 0) -> JudgeProcesses:
        """Start judge processes, for a ``with`` statement. The default is one process for each core."""
        runner = dict(vars(self))
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
        store: receives the rows.
        items: all items, including those that are stored.
        work: makes the row of an item, in any of several threads. After an outage the row's column ``outage`` has the
            reason.
        key: returns the key of an item in ``store``.
        confinement: confinement of the programs.
        num_workers: number of judge processes, at least 1.
        what: name of the work in the progress bar.
        unit: name of an item in the progress bar.

    Raises:
        SandboxConfigError: this machine cannot confine programs with these settings.
        OutageError: too many consecutive items could not be judged.
    """
    left = [item for item in items if key(item) not in store]
    if not left:
        return
    with confinement.judges(num_workers) as judges:
        judge_into(
            store,
            left,
            lambda item: [work(item, judges.judge_all)],
            num_workers=num_workers,
            total=len(items),
            what=what,
            unit=unit,
        )
