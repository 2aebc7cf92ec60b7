"""Time that another process has used: on a processor, and idle. Load on the machine counts as neither."""

from __future__ import annotations

import time
from dataclasses import dataclass

_CPUCLOCK_SCHED = 2


def process_cpu_seconds(pid: int) -> float:
    """CPU seconds of all threads of a process that has not been reaped; 0 if it cannot be read.

    Source: ``clock_getcpuclockid(3)``; the clock id is ``~pid << 3 | CPUCLOCK_SCHED``.
    """
    try:
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return 0.0


def waiting_seconds(pid: int) -> float | None:
    """Seconds the main thread was runnable but had no processor; None where the kernel does not say."""
    try:
        with open(f"/proc/{pid}/schedstat") as handle:
            return int(handle.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    cpu: float
    wall: float
    waiting: float | None


class Stopwatch:
    """Time used since ``restart``, read only when somebody waits: a prompt answer costs no system call.

    Measuring begins at the first ``read`` after a restart, so it errs in the program's favour.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._start: _Reading | None = None

    def restart(self) -> None:
        self._start = None

    def read(self) -> tuple[float, float]:
        """CPU seconds and idle seconds. Without scheduler statistics waiting for a processor counts as idle."""
        now = _Reading(cpu=process_cpu_seconds(self._pid), wall=time.monotonic(), waiting=waiting_seconds(self._pid))
        if self._start is None:
            self._start = now
        cpu, wall = now.cpu - self._start.cpu, now.wall - self._start.wall
        waiting = 0.0
        if now.waiting is not None and self._start.waiting is not None:
            waiting = now.waiting - self._start.waiting
        return cpu, max(0.0, wall - cpu - waiting)
