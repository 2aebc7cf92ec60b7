"""Progress of a long command on stderr, shown by tqdm like verl's own."""

import sys
from collections.abc import Iterable

from tqdm import tqdm

SECONDS_IN_A_LOG = 30.0
"""Seconds between two lines where stderr is no terminal."""


class Progress(tqdm):  # type: ignore[misc]  # tqdm has no types
    """A progress bar, used by one thread: in a ``with`` statement, or as the iterable of a loop.

    Args:
        what: the work in one or two words, such as "judge".
        items: iterable to loop over; each item counts when the loop has finished with it.
        total: number of all items; None if it is unknown.
        done: number of items that an earlier call of the command has finished.
        unit: the thing that is counted, such as "question".
    """

    def __init__(
        self, what: str, items: Iterable[object] | None = None, *, total: int | None, done: int = 0, unit: str
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
        """Count ``number`` more items. Also show those ``counts`` that are above 0, such as ``outages=2``."""
        if counts:
            self.set_postfix({name: count for name, count in counts.items() if count}, refresh=False)
        self.update(number)
