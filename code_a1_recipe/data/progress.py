"""Progress bars on stderr, with rate and time left."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")

SHOWN_AFTER_SECONDS = 2.0


def watched(items: Iterable[Item], *, total: int, desc: str, unit: str) -> Iterator[Item]:
    """The items, with a bar once they take longer than a moment."""
    yield from tqdm(items, total=total, desc=desc, unit=unit, file=sys.stderr, delay=SHOWN_AFTER_SECONDS, leave=False)
