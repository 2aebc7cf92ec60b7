"""The loop that judges many items in parallel and puts their rows into a resumable store."""

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
"""Number of items in a row that meet an outage before the sandbox counts as down."""


def in_parallel(
    items: Iterable[Item], work: Callable[[Item], Result], *, num_threads: int
) -> Generator[tuple[Item, Result]]:
    """Yield items with their results in the order in which they are finished.

    Args:
        items: read lazily; two items per thread are under way, so that a free thread always has a next one.
        work: called from ``num_threads`` threads; its first error ends the loop.
        num_threads: at least 1. The threads wait for judge processes, so more threads than cores keep those busy.
    """
    waiting = iter(items)
    running: dict[Future[Result], Item] = {}
    threads = ThreadPoolExecutor(num_threads, thread_name_prefix="judge-loop")
    try:
        while True:
            started = itertools.islice(waiting, 2 * num_threads - len(running))
            running |= {threads.submit(work, item): item for item in started}
            if not running:
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), future.result()
    finally:
        # Do not wait for running work: a caller that breaks off closes the judges next, and that ends it.
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
    """Append the rows that ``work`` makes of each item, in the order in which they are finished.

    Args:
        store: receives the rows.
        items: the items that the store lacks.
        work: makes the rows of an item; rows that the store already has stay unchanged. A row's ``outage`` is the
            reason of an outage, else empty or None.
        num_workers: number of judge processes; each gets several items at once.
        total: number of rows that the store has at the end.
        what: name of the work in the progress bar.
        unit: name of a row in the progress bar.

    Raises:
        OutageError: ``MAX_OUTAGES_IN_A_ROW`` items in a row met an outage; finished rows are in the store.
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
