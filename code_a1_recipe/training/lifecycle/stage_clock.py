"""Shows the duration of each stage of a start, so that a user sees which stage is slow."""

import threading
import time
from collections.abc import Callable


class StageClock:
    """Shows the duration of each stage when the stage ends. Threads may share a clock if each stage gives ``since``.

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
            stage: name of the stage.
            since: start of the stage (``time.monotonic()``); by default the end of the previous stage.
        """
        with self._lock:
            now = time.monotonic()
            seconds = now - (self._last if since is None else since)
            self._last = now
        self._show(f"{seconds:6.1f} s  {stage}")
