"""The loop that judges many items in parallel and writes their rows into a resumable store."""

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
"""Number of consecutive items with an outage after which the sandbox counts as down."""


def in_parallel(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    *,
    num_threads: int,
) -> Generator[tuple[Item, Result]]:
    """Yield each item with its result, in the order in which results are finished.

    Args:
        items: read lazily. Two items per thread are taken at a time, so that a free thread always has a next item.
        work: computes the result of an item in one of ``num_threads`` threads. The first error in ``work`` ends the
            loop.
        num_threads: at least 1. Threads only wait for judge processes, so more threads than cores keep the cores busy.
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
        # Do not wait for running work. A caller that breaks off closes the judges next, which ends the running work.
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
    """Append the rows of each item in the order in which items are finished.

    Args:
        store: receives the rows.
        items: the items that the store lacks.
        work: makes the rows of an item. Rows that the store has already are not replaced. After an outage the row's
            column ``outage`` has the reason. Without an outage, the column ``outage`` is empty or None.
        num_workers: number of judge processes. Each process gets several items at once.
        total: number of rows in the finished store.
        what: name of the work in the progress bar.
        unit: name of a row in the progress bar.

    Raises:
        OutageError: ``MAX_OUTAGES_IN_A_ROW`` consecutive items met an outage. Finished rows are in the store.
    """
    if not items:
        return
    num_outages = in_a_row = 0
    num_threads = num_workers * DEFAULT_QUESTIONS_PER_WORKER
    with (
        Progress(what, total=total, done=len(store), unit=unit) as progress,
        contextlib.closing(in_parallel(items, work, num_threads=num_threads)) as results,
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
