"""Interface to start and end the processes of programs. An ``Attempt`` uses it."""

import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """The way in which one program's process ended."""

    status: int
    """Wait status, as ``os.wait`` reports it."""
    by_itself: bool
    """True if the process ended before we killed it."""

    @property
    def was_killed(self) -> bool:
        """True if a SIGKILL ended the process and we did not send it."""
        return self.by_itself and self.status & 0x7F == signal.SIGKILL

    def describe(self) -> str:
        """Return a description for logs, such as "exited with status 1"."""
        if not self.by_itself:
            return "closed its channel"
        number = self.status & 0x7F
        if not number:
            return f"exited with status {self.status >> 8}"
        known = {member.value for member in signal.Signals}
        return f"ended by {signal.Signals(number).name if number in known else f'signal {number}'}"


class Forker(Protocol):
    """Starts and ends the processes of programs. Fork servers implement this protocol, and so does the harness in a
    service."""

    def fork(self, limits: Limits, *, cpu_seconds: int, given: Sequence[int]) -> tuple[socket.socket, int]:
        """Start one confined process and return its non-blocking channel and its pid.

        Args:
            cpu_seconds: the limit RLIMIT_CPU of the process.
            given: empty, or the one descriptor that becomes ``INPUT_FD`` in the process.
        """

    def end(self, pid: int, *, is_closed: bool) -> ProcessExit:
        """Kill and reap one process.

        Args:
            is_closed: True if the channel of the process is closed. Such a process may be about to end by itself, so it
                gets a moment to do so.
        """
