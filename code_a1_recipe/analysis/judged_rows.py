"""One row for each question, made by judge processes, in a file that a repeated command takes up again."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from tqdm import tqdm

from sandbox import CandidateVerdict, JudgeRequest, Limits, SandboxConfigError, SandboxUnavailableError
from sandbox.judge_processes import DEFAULT_QUESTIONS_PER_WORKER, JudgeProcesses, WorkerSettings

from ..score_file import Row, ScoreFile

DONE, BROKE_OFF, REFUSED, INTERRUPTED = 0, 1, 2, 130

MAX_OUTAGES_IN_A_ROW = 20
"""The sandbox is down when so many questions could not be judged one after the other."""

JudgeAll = Callable[[Iterable[JudgeRequest]], Iterator[CandidateVerdict | SandboxUnavailableError]]
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
        cls, config: Mapping[str, Any], *, tier: int | None = None, allow_missing: Sequence[str] = ()
    ) -> Confinement:
        """That of a recorded run, for what is not said here.

        Raises:
            SandboxConfigError: its limits are out of range.
        """
        block = config.get("sandbox") or {}
        return cls(
            limits=Limits.from_mapping(block.get("limits") or {}, where="sandbox.limits"),
            tier=int(block.get("tier") or 0) if tier is None else tier,
            allow_missing=tuple(allow_missing or block.get("allow_missing") or ()),
        )

    def described(self) -> dict[str, Any]:
        """Plain values for a settings file."""
        return {"limits": asdict(self.limits), "tier": self.tier}

    def judges(self, num_workers: int) -> contextlib.AbstractContextManager[Any]:
        """Judge processes, to be used in a ``with`` statement."""
        runner = {"limits": self.limits, "tier": self.tier, "allow_missing": self.allow_missing}
        return JudgeProcesses(num_workers, settings=WorkerSettings(runner=runner))


def judge_rows(
    items: Sequence[Item],
    work: Callable[[Item, JudgeAll], Row],
    output: ScoreFile,
    *,
    key: Callable[[Item], str],
    confinement: Confinement,
    num_workers: int,
    what: str,
) -> None:
    """Append the rows that are missing, with a progress bar on stderr.

    Args:
        items: one for each question.
        work: makes an item's row; its ``outage`` is a text where the sandbox could not say, else None. Called from
            several threads.
        output: taken up where it is.
        key: an item's key in ``output``.
        confinement: of the programs.
        num_workers: judge processes, at least 1.
        what: shown before the bar.

    Raises:
        SandboxConfigError: programs cannot be confined as asked for.
        SandboxUnavailableError: ``MAX_OUTAGES_IN_A_ROW`` questions could not be judged.
    """
    done = output.done
    left = [item for item in items if key(item) not in done]
    if output.num_repaired:
        tqdm.write("the last row had been cut off; its question is judged again", file=sys.stderr)
    if not left:
        return
    with (
        confinement.judges(num_workers) as judges,
        tqdm(total=len(items), initial=len(items) - len(left), unit="question", desc=what, file=sys.stderr) as bar,
        contextlib.closing(
            _in_threads(
                left, lambda item: work(item, judges.judge_all), num_threads=num_workers * DEFAULT_QUESTIONS_PER_WORKER
            )
        ) as rows,
    ):
        num_outages = in_a_row = 0
        for row in rows:
            output.append(row)
            in_a_row = in_a_row + 1 if row["outage"] else 0
            num_outages += bool(row["outage"])
            if in_a_row == MAX_OUTAGES_IN_A_ROW:
                raise SandboxUnavailableError(f"{in_a_row} questions in a row were not judged: {row['outage']}")
            bar.set_postfix(outages=num_outages, refresh=False)
            bar.update()


def _in_threads(items: Iterable[Item], work: Callable[[Item], Row], *, num_threads: int) -> Generator[Row]:
    """Rows as they get ready; only so many items are begun that every thread has one to go on with."""
    waiting = iter(items)
    running: set[Future[Row]] = set()
    threads = ThreadPoolExecutor(num_threads, thread_name_prefix="question")
    try:
        while True:
            some = itertools.islice(waiting, 2 * num_threads - len(running))
            running |= {threads.submit(work, item) for item in some}
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()
    finally:
        # Not waited for: whoever breaks off closes the judges next, which ends what still runs.
        threads.shutdown(wait=False, cancel_futures=True)


def exit_status(work: Callable[[], int], *, output: ScoreFile, num_items: int) -> int:
    """Run a command's long part; what breaks it off becomes a message on stderr and an exit status.

    Args:
        work: returns the exit status.
        output: where what is done is kept; it is closed afterwards.
        num_items: of which ``output`` holds some.
    """
    with output:
        try:
            return work()
        except SandboxConfigError as error:
            sys.stderr.write(f"error: {error}\n")
            return REFUSED
        except SandboxUnavailableError as error:
            sys.stderr.write(
                f"error: the sandbox is down: {error}. What was judged is in {output.path}; try `python -m sandbox "
                "check`, then repeat the command to go on\n"
            )
            return BROKE_OFF
        except OSError as error:
            sys.stderr.write(f"error: {error}. Make room or make it writable, then repeat the command to go on\n")
            return BROKE_OFF
        except KeyboardInterrupt:
            num_done = len(output.done)
            sys.stderr.write(f"\ninterrupted; repeat the command to go on ({num_done} of {num_items} questions done)\n")
            return INTERRUPTED


def remove_work_file(output: ScoreFile) -> None:
    """Delete what a finished command need not take up again."""
    output.path.unlink(missing_ok=True)
    output.settings_path.unlink(missing_ok=True)
