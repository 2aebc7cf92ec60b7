"""A line for each stage of a start, with its seconds: whoever waits sees what for, and which stage is slow."""

import threading
import time
from collections.abc import Callable


class StageClock:
    """Shows each stage when it has ended.

    Args:
        show: gets the line. Threads may use one clock together; each stage then names what it counts from.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._lock = threading.Lock()
        self._last = time.monotonic()

    def ended(self, stage: str, *, since: float | None = None) -> None:
        """Show a stage that has just ended.

        Args:
            since: when it began (``time.monotonic()``); the end of the stage shown before it, unless given.
        """
        with self._lock:
            now = time.monotonic()
            seconds = now - (self._last if since is None else since)
            self._last = now
        self._show(f"{seconds:6.1f} s  {stage}")
