"""Handles Ctrl-C and SIGTERM: the run saves and ends within a time limit. A second signal ends the run at once."""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from ...errors import CodeA1Error
from .crash_notifier import dismiss_notifier

logger = logging.getLogger(__name__)

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SAVES = 2.0
"""The time limit is at least this many times the duration of the last save."""
_EXIT_BASE = 128
"""If a signal ends a process, the shell's exit status is the signal's number plus this value."""


class LeaveRequestedError(Exception):
    """Raised in the trainer after a signal. The trainer saves, and then raises ``InterruptedRunError``."""


class InterruptedRunError(CodeA1Error):
    """A signal ended the run after the run had saved its finished steps.

    Args:
        signal_number: the signal's number.
        what: text for the user about what was saved.
    """

    def __init__(self, signal_number: int, what: str) -> None:
        super().__init__(f"interrupted by {signal.Signals(signal_number).name}: {what}")
        self.exit_status = _EXIT_BASE + signal_number


@dataclass(eq=False, kw_only=True)
class SignalHandler:
    """Handles signals while a run goes on."""

    leave_within_seconds: float
    """Longest time from the first signal to the end of the process. After this time the process ends, even without a
    save."""
    show: Callable[[str], None]
    """Prints a line for the user."""
    clean_up: Callable[[], None] = lambda: None
    """Called before ``os._exit``, which runs no ``finally`` block."""
    can_save: bool = False
    """The trainer sets this as soon as there is something to save. Before that, a signal ends the run at once."""
    is_saved: bool = False
    """The trainer sets this after it has saved because of a signal."""
    signal_number: int | None = None
    _timer: threading.Timer | None = None

    def note_save(self, seconds: float) -> None:
        """Raise the time limit if it is too short for a save that takes ``seconds``."""
        self.leave_within_seconds = max(self.leave_within_seconds, _SAVES * seconds)

    def check(self) -> None:
        """Raise LeaveRequestedError after a signal."""
        if self.signal_number is not None:
            raise LeaveRequestedError

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals until the block ends. Do nothing in other threads, where Python forbids handlers."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if self._timer is not None:
                self._timer.cancel()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        repeated = self.signal_number is not None
        self.signal_number = number
        if self._timer is None:  # the limit counts from the first signal
            self._timer = threading.Timer(self.leave_within_seconds, self._give_up, args=[number])
            self._timer.daemon = True
            self._timer.start()
        if repeated or not self.can_save:
            raise KeyboardInterrupt
        name = signal.Signals(number).name
        self._print(f"{name}: saving and leaving, within {self.leave_within_seconds:g} s; once more: leave at once")

    def _print(self, line: str) -> None:
        # The same signal may have ended the reader of the output (`... | tee log`). Even then the run must save.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self.show(line)

    def _give_up(self, number: int) -> None:
        outcome = "saved, but" if self.is_saved else "not saved, and"
        self._print(
            f"error: {outcome} not left within {self.leave_within_seconds:g} s (checkpoint.leave_within_seconds, or "
            "twice what the last save took); ended. Repeat the command to resume from the newest whole checkpoint"
        )
        dismiss_notifier()
        self.clean_up()
        # The main thread may hang in a library, so this thread ends the process. Ray's processes end with their driver.
        os._exit(_EXIT_BASE + number)
