"""Progress of a long command on stderr: a bar in a terminal that can draw one, else a line every 30 seconds."""

import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress as RichProgress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 30.0


class Progress:
    """Counts what is done and shows it; used in a ``with`` statement, by one thread.

    Args:
        what: the work, as one or two words ("judge").
        total: items in all; None where nobody knows.
        done: of which were there before, for instance of an earlier run of the command.
        unit: what is counted ("question").
    """

    def __init__(self, what: str, *, total: int | None, done: int = 0, unit: str = "item") -> None:
        self._what, self._unit, self._total = what, unit, total
        self._done = self._done_before = done
        self._counts: dict[str, int] = {}
        self._started = time.monotonic()
        self._console = Console(stderr=True, highlight=False)
        self._bar: RichProgress | None = None
        self._ended = threading.Event()

    def __enter__(self) -> "Progress":
        if self._console.is_interactive:  # a dumb terminal (TERM=dumb) shows no bar, and would show nothing at all
            self._bar = RichProgress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[counts]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task(self._what, total=self._total, completed=self._done, counts="")
            self._bar.start()
        else:
            # A thread of its own: a line is due also while nothing gets done.
            self._lines = threading.Thread(target=self._print_lines, name="progress", daemon=True)
            self._lines.start()
        return self

    def advance(self, number: int = 1, **counts: int) -> None:
        """``number`` more are done; ``counts`` are shown beside, for instance ``outages=2``."""
        self._done += number
        self._counts.update(counts)
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, counts=self._shown_counts())

    def log(self, text: str) -> None:
        """A line of its own, above the bar."""
        self._console.print(text, markup=False, soft_wrap=True)

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._bar is not None:
            self._bar.stop()
        else:
            self._lines.join()

    def _print_lines(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LINES):
            self.log(self._line())

    def _line(self) -> str:
        seconds = time.monotonic() - self._started
        rate = (self._done - self._done_before) / seconds
        of_total = f" of {self._total}" if self._total is not None else ""
        left = f", about {(self._total - self._done) / rate:.0f} s left" if self._total is not None and rate else ""
        counts = f", {self._shown_counts()}" if self._counts else ""
        return f"{self._what}: {self._done}{of_total} {self._unit}s after {seconds:.0f} s{left}{counts}"

    def _shown_counts(self) -> str:
        return ", ".join(f"{number} {name}" for name, number in self._counts.items() if number)


def watched(items: Iterable[Item], *, total: int | None, what: str, unit: str) -> Iterator[Item]:
    """The items, counted as they are taken."""
    with Progress(what, total=total, unit=unit) as progress:
        for item in items:
            yield item
            progress.advance()
