"""Interface that starts and ends the processes of programs. An ``Attempt`` uses it."""

import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """Exit of one program's process."""

    status: int
    """Wait status, as ``os.wait`` reports it."""
    by_itself: bool
    """The process had ended before we killed it."""

    @property
    def was_killed(self) -> bool:
        """True if a SIGKILL ended the process and we did not send it."""
        return self.by_itself and self.status & 0x7F == signal.SIGKILL

    def describe(self) -> str:
        """Describe the exit in a few words."""
        if not self.by_itself:
            return "closed its channel"
        number = self.status & 0x7F
        if not number:
            return f"exited with status {self.status >> 8}"
        known = {member.value for member in signal.Signals}
        return f"ended by {signal.Signals(number).name if number in known else f'signal {number}'}"


class Forker(Protocol):
    """Starts and ends the processes of programs. Fork servers do, and the harness inside a service."""

    def fork(self, limits: Limits, *, cpu_seconds: int, given: Sequence[int]) -> tuple[socket.socket, int]:
        """Start one confined process and return its non-blocking channel and its pid.

        Args:
            cpu_seconds: the limit RLIMIT_CPU of the process.
            given: the descriptor that becomes ``INPUT_FD`` in the process, or none.
        """

    def end(self, pid: int, *, is_closed: bool) -> ProcessExit:
        """Kill and reap one process.

        Args:
            is_closed: the channel of the process is closed, so it may be ending by itself and gets a moment to do so.
        """
