"""A progress bar on stderr for long commands. tqdm draws the bar, as it draws verl's bars."""

import sys
from collections.abc import Iterable

from tqdm import tqdm

SECONDS_IN_A_LOG = 30.0
"""Seconds between two lines of progress if stderr is a log file instead of a terminal."""


class Progress(tqdm):  # type: ignore[misc]  # tqdm has no types
    """A progress bar for one thread. Use it in a ``with`` statement, or as the iterable of a loop.

    Args:
        what: the work in one or two words, such as "judge".
        items: iterable to loop over. An item counts as done when the loop asks for the next one.
        total: number of all items; None if it is unknown.
        done: number of items that an earlier call of the command has finished.
        unit: name of an item, such as "question".
    """

    def __init__(
        self,
        what: str,
        items: Iterable[object] | None = None,
        *,
        total: int | None,
        done: int = 0,
        unit: str,
    ) -> None:
        seconds = 0.1 if sys.stderr.isatty() else SECONDS_IN_A_LOG
        super().__init__(
            items,
            desc=what,
            total=total,
            initial=done,
            unit=f" {unit}s",
            mininterval=seconds,
            maxinterval=SECONDS_IN_A_LOG,
        )

    def advance(self, number: int = 1, **counts: int) -> None:
        """Count ``number`` more items. Beside the bar, show all ``counts`` above 0, such as ``outages=2``."""
        if counts:
            positive = {name: count for name, count in counts.items() if count}
            self.set_postfix(positive, refresh=False)
        self.update(number)
