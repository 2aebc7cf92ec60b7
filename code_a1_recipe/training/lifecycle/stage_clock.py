"""A line for each stage of a start with its seconds, so that a user sees which stage is slow."""

import threading
import time
from collections.abc import Callable


class StageClock:
    """Clock that shows each stage when it has ended. Threads may share it if each stage gives its ``since``.

    Args:
        show: gets the line.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._lock = threading.Lock()
        self._last = time.monotonic()

    def ended(self, stage: str, *, since: float | None = None) -> None:
        """Show a stage that has just ended.

        Args:
            stage: its name.
            since: its start (``time.monotonic()``); by default the end of the previous stage.
        """
        with self._lock:
            now = time.monotonic()
            seconds = now - (self._last if since is None else since)
            self._last = now
        self._show(f"{seconds:6.1f} s  {stage}")
