"""Clocks for the CPU time and the idle time of another process. Time lost to other load on the machine counts as
neither."""

import os
import time
from typing import NamedTuple

_CPUCLOCK_SCHED = 2
_TICKS = os.sysconf("SC_CLK_TCK")
PAGES_WEIGHT, _FAULT_SECONDS = 0.25, 100e-6
"""Share of the kernel's time for new memory pages that counts as CPU time, and maximum seconds for one page. On a busy
machine a page takes much longer, which is not the program's fault."""
MAX_CREDIBLE_IDLE_SECONDS = 1.0
"""Limit of the idle time that counts between two readings. The watching process reads the clocks several times a
second."""


def process_cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of all threads of a process that is not yet reaped, or 0 if they cannot be read.

    Source: ``clock_getcpuclockid(3)``; the clock id is ``~pid << 3 | CPUCLOCK_SCHED``.
    """
    try:
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return 0.0


def waiting_seconds(pid: int) -> float | None:
    """Return how long the threads of a process have waited for a processor, in seconds, summed over the threads.

    All threads count, because the main thread may sleep until other threads are done, and these may wait for a
    processor. The result is None if the kernel does not report such waits.
    """
    try:
        return sum(_thread_waiting_seconds(f"/proc/{pid}/task/{thread}") for thread in os.listdir(f"/proc/{pid}/task"))
    except (OSError, ValueError, IndexError):
        return None


def _thread_waiting_seconds(path: str) -> float:
    try:
        with open(f"{path}/schedstat") as handle:
            return int(handle.read().split()[1]) / 1e9
    except ProcessLookupError:  # the thread ended after it was listed
        return 0.0


def _stat(pid: int) -> list[bytes]:
    """Return the fields of ``/proc/PID/stat``, beginning with the state, see ``proc(5)``. The list is empty after an
    error."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            # The program's name comes first and may contain brackets, so the fields are counted from the last bracket.
            return handle.read().rpartition(b")")[2].split()
    except OSError:
        return []


def is_stopped(pid: int) -> bool:
    """Return True if the process is stopped, as by SIGSTOP."""
    return _stat(pid)[:1] in ([b"T"], [b"t"])


class _Reading(NamedTuple):
    """Clocks of a process at one moment, in seconds."""

    cpu: float
    pages: float
    wall: float
    waiting: float | None
    is_running: bool
    """True if the main thread runs, or waits for a processor."""

    @classmethod
    def of(cls, pid: int) -> "_Reading":
        cpu, fields, pages = process_cpu_seconds(pid), _stat(pid), 0.0
        if fields:
            # Both terms are upper bounds: stime includes other kernel work, and the cost of a page fault varies.
            pages = min(int(fields[12]) / _TICKS, int(fields[7]) * _FAULT_SECONDS)  # stime, minflt
        wall, waiting = time.monotonic(), waiting_seconds(pid)
        return cls(cpu=cpu, pages=pages, wall=wall, waiting=waiting, is_running=fields[:1] == [b"R"])


class Stopwatch:
    """Time that a process has used since ``restart``.

    CPU time is measured from the restart. Idle time is measured only from the first ``read`` after the restart. From
    the first ``read`` on, only a quarter of the kernel's time for new pages counts. Both rules favour the program, and
    they make a restart cheap: a fast answer needs no ``read`` and costs one system call.
    """

    def __init__(self, pid: int, *, cpu_start: float | None = None) -> None:
        self._pid = pid
        self._cpu_start = process_cpu_seconds(pid) if cpu_start is None else cpu_start
        self._at_rest: _Reading | None = None
        self._pages = self._idle = self._forgiven = self._last_wall = 0.0

    @classmethod
    def of_new_process(cls, pid: int) -> "Stopwatch":
        """Measure a process that was started just now and has used no time."""
        watch = cls(pid, cpu_start=0.0)
        watch._at_rest = _Reading(cpu=0.0, pages=0.0, wall=time.monotonic(), waiting=0.0, is_running=True)
        return watch

    def restart(self) -> float:
        """Measure from now on. Return the CPU seconds since the last restart."""
        # The expensive clocks are read only in the first call of `read`.
        before, self._cpu_start = self._cpu_start, process_cpu_seconds(self._pid)
        self._at_rest = None
        return self._cpu_start - before

    def read(self) -> tuple[float, float]:
        """Return the CPU seconds and the idle seconds.

        If the kernel has no scheduler statistics, waiting for a processor counts as idle.
        """
        now = _Reading.of(self._pid)
        if self._at_rest is None:
            self._at_rest, self._pages = now, now.pages
            self._idle = self._forgiven = self._last_wall = 0.0
        self._forgiven += (1 - PAGES_WEIGHT) * max(0.0, now.pages - self._pages)
        self._pages = now.pages
        # The kernel counts a wait for a processor only when the wait is over. So while the process waits, the waiting
        # time is not known. The interval is counted at the first reading at which the process neither runs nor waits
        # for a processor.
        if not now.is_running:
            last, self._at_rest = self._at_rest, now
            wall, before, self._last_wall = now.wall - last.wall, self._last_wall, now.wall - last.wall
            # Waiting for a processor comes from load on the machine, so it is not idle time of the program. But many
            # threads together wait longer than the clock runs. This must not hide a sleep of the main thread before or
            # after. A wait that began before this interval may count with it, so the last interval counts, too.
            waiting = 0.0
            if now.waiting is not None and last.waiting is not None:
                waiting = min(now.waiting - last.waiting, wall + before)
            idle = wall - (now.cpu - last.cpu) - waiting
            # If the interval is longer, this process itself did not run (a paused virtual machine, a crowded
            # processor). The program could not run either, so the rest of the interval is not charged.
            self._idle = max(0.0, self._idle + min(idle, MAX_CREDIBLE_IDLE_SECONDS))
        used = now.cpu - self._cpu_start
        # At least a quarter of the CPU time counts. Otherwise a program could use all of its time for new pages and
        # never time out.
        return max(used - self._forgiven, PAGES_WEIGHT * used), self._idle
