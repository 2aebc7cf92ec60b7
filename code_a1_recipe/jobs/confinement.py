"""How the programs of a command are confined, and judging many questions so."""

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
"""``JudgeProcesses.judge_all``: results in the order of the requests."""
Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """What programs may use, and how they are kept in."""

    limits: Limits = field(default_factory=Limits)
    tier: int = 0
    allow_missing: tuple[str, ...] = ()
    """Protections to do without; decides no verdict."""

    @classmethod
    def of_run(cls, sandbox: SandboxSettings, *, allow_missing: Sequence[str] = ()) -> "Confinement":
        """That of a recorded run's block ``sandbox``, for what is not given here."""
        return cls(
            limits=sandbox.limits,
            tier=sandbox.tier,
            allow_missing=tuple(allow_missing) or sandbox.allow_missing,
        )

    def described(self) -> dict[str, Any]:
        """Plain values for a settings file."""
        return {"limits": asdict(self.limits), "tier": self.tier}

    def judges(self, num_workers: int | None, *, seed: int = 0) -> JudgeProcesses:
        """Judge processes, to be used in a ``with`` statement; one a core where no number is given."""
        return JudgeProcesses(num_workers, settings=WorkerSettings(seed=seed, runner=dict(vars(self))))


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
            num_workers=num_workers,
            total=len(items),
            what=what,
            unit=unit,
        )
