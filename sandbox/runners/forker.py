"""Starting and ending the processes of programs: what an ``Attempt`` needs of a fork server, or of a harness."""

import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """How one program's process ended."""

    status: int
    """The status that ``os.wait`` reports."""
    by_itself: bool
    """It had ended before it was killed."""

    @property
    def was_killed(self) -> bool:
        """It ended by a SIGKILL that this side did not send."""
        return self.by_itself and self.status & 0x7F == signal.SIGKILL

    def describe(self) -> str:
        if not self.by_itself:
            return "closed its channel"
        number = self.status & 0x7F
        if not number:
            return f"exited with status {self.status >> 8}"
        known = {member.value for member in signal.Signals}
        return f"ended by {signal.Signals(number).name if number in known else f'signal {number}'}"


class Forker(Protocol):
    """Starts and ends the processes of programs: a fork server, or the harness inside a service."""

    def fork(self, limits: Limits, *, cpu_seconds: int, given: Sequence[int]) -> tuple[socket.socket, int]:
        """Start one confined process, which RLIMIT_CPU ends; its channel (non-blocking) and its pid.

        Args:
            given: its descriptor ``INPUT_FD``, or none.
        """

    def end(self, pid: int, *, is_closed: bool) -> ProcessExit:
        """Kill and reap one process. ``is_closed``: its channel is closed, so it may be ending by itself."""
