"""Progress of a long command on stderr, shown by tqdm as verl's is."""

import sys
from collections.abc import Iterable

from tqdm import tqdm

SECONDS_IN_A_LOG = 30.0
"""Between two lines where stderr is no terminal."""


class Progress(tqdm):  # type: ignore[misc]  # tqdm has no types
    """Counts what is done and shows it; used in a ``with`` statement, or in a loop over ``items``, by one thread.

    Args:
        what: the work, as one or two words ("judge").
        items: what a loop takes from it, each counted when it is done.
        total: items in all; None where nobody knows.
        done: of which were there before, for instance of an earlier run of the command.
        unit: what is counted ("question").
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
        """``number`` more are done; ``counts`` above 0 are shown beside, for instance ``outages=2``."""
        if counts:
            self.set_postfix({name: count for name, count in counts.items() if count}, refresh=False)
        self.update(number)
