"""The loop that judges many items in parallel, with progress, into a store that a repeated command resumes."""

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from sandbox.text import DEFAULT_QUESTIONS_PER_WORKER

from ..errors import OutageError
from .jsonl_store import JsonlStore, Row
from .progress import Progress

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_OUTAGES_IN_A_ROW = 20
"""The sandbox is down when so many items could not be judged one after the other."""


def in_parallel(
    items: Iterable[Item], work: Callable[[Item], Result], *, num_threads: int
) -> Generator[tuple[Item, Result]]:
    """Items with their results as they get ready; only so many are started that every thread has one to continue with.

    Args:
        items: read lazily.
        work: called from ``num_threads`` threads; its first error ends the loop.
        num_threads: at least 1. The work waits for judge processes, so more threads than cores keep them busy.
    """
    waiting = iter(items)
    running: dict[Future[Result], Item] = {}
    threads = ThreadPoolExecutor(num_threads, thread_name_prefix="judge-loop")
    try:
        while True:
            some = itertools.islice(waiting, 2 * num_threads - len(running))
            running |= {threads.submit(work, item): item for item in some}
            if not running:
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), future.result()
    finally:
        # Not waited for: whoever breaks off closes the judges next, which ends what still runs.
        threads.shutdown(wait=False, cancel_futures=True)


def judge_into(
    store: JsonlStore,
    items: Sequence[Item],
    work: Callable[[Item], Sequence[Row]],
    *,
    num_workers: int,
    total: int,
    what: str = "judge",
    unit: str = "question",
) -> None:
    """Append the rows that ``work`` makes of each item, in the order in which they get ready.

    Args:
        store: resumed by the caller, who leaves out of ``items`` what it holds.
        items: what is left.
        work: one item -> its rows; those that the store holds already stay as they are there. A row's ``outage`` is a
            text where the sandbox could not say, else empty or None.
        num_workers: judge processes; each has several items at once.
        total: rows that the store holds at the end.
        what: the work, for the progress.
        unit: what a row is of.

    Raises:
        OutageError: ``MAX_OUTAGES_IN_A_ROW`` items in a row met an outage; what is done is in the store.
    """
    if not items:
        return
    num_outages = in_a_row = 0
    with (
        Progress(what, total=total, done=len(store), unit=unit) as progress,
        contextlib.closing(in_parallel(items, work, num_threads=num_workers * DEFAULT_QUESTIONS_PER_WORKER)) as results,
    ):
        for _, rows in results:
            reason = next((row["outage"] for row in rows if row.get("outage")), "")
            in_a_row = in_a_row + 1 if reason else 0
            if in_a_row == MAX_OUTAGES_IN_A_ROW:
                raise OutageError(
                    f"the sandbox is down: {in_a_row} items in a row were not judged, the last one because of "
                    f"{reason}; try `python -m sandbox check`"
                )
            num_outages += bool(reason)
            progress.advance(sum(store.append(row) for row in rows), outages=num_outages)
