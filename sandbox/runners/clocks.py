"""Time that another process has used: on a processor, and idle. Load on the machine counts as neither."""

import os
import time
from dataclasses import dataclass

_CPUCLOCK_SCHED = 2
_TICKS = os.sysconf("SC_CLK_TCK")
PAGES_WEIGHT, _FAULT_SECONDS = 0.25, 100e-6
"""Share of the kernel's time on new pages that counts, and most seconds a page. Beside other jobs a page takes much
longer, for no reason of the program's."""
MAX_CREDIBLE_IDLE_SECONDS = 1.0
"""Idle time between two looks that is believed; who watches looks several times a second."""


def process_cpu_seconds(pid: int) -> float:
    """CPU seconds of all threads of a process that has not been reaped; 0 if it cannot be read.

    Source: ``clock_getcpuclockid(3)``; the clock id is ``~pid << 3 | CPUCLOCK_SCHED``.
    """
    try:
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return 0.0


def waiting_seconds(pid: int) -> float | None:
    """Seconds its threads were runnable but had no processor, summed; None where the kernel does not say.

    All threads: the main one may sleep until those that cannot get a processor are done.
    """
    try:
        return sum(_thread_waiting_seconds(f"/proc/{pid}/task/{thread}") for thread in os.listdir(f"/proc/{pid}/task"))
    except (OSError, ValueError, IndexError):
        return None


def _thread_waiting_seconds(path: str) -> float:
    try:
        with open(f"{path}/schedstat") as handle:
            return int(handle.read().split()[1]) / 1e9
    except ProcessLookupError:  # ended in between
        return 0.0


def _stat(pid: int) -> list[bytes]:
    """Fields of ``/proc/PID/stat`` from the state on, see ``proc(5)``; none where it cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            # A process may call itself anything, brackets included: fields are counted from the last bracket.
            return handle.read().rpartition(b")")[2].split()
    except OSError:
        return []


def is_stopped(pid: int) -> bool:
    """True while the process is stopped, as by SIGSTOP. Programs cannot stop themselves: somebody else did."""
    return _stat(pid)[:1] in ([b"T"], [b"t"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    cpu: float
    pages: float
    wall: float
    waiting: float | None
    is_running: bool
    """Or ready to run."""

    @classmethod
    def of(cls, pid: int) -> "_Reading":
        cpu, fields, pages = process_cpu_seconds(pid), _stat(pid), 0.0
        if fields:
            # stime holds other work too, and faults alone say nothing of their cost: the smaller one is believed.
            pages = min(int(fields[12]) / _TICKS, int(fields[7]) * _FAULT_SECONDS)  # stime, minflt
        wall, waiting = time.monotonic(), waiting_seconds(pid)
        return cls(cpu=cpu, pages=pages, wall=wall, waiting=waiting, is_running=fields[:1] == [b"R"])


class Stopwatch:
    """Time used since ``restart``, read in full only when somebody waits: a prompt answer costs one system call.

    CPU time is measured from the restart, idle time from the first ``read`` after it, in the program's favour; of the
    kernel's time on new pages from there on a quarter counts.
    """

    def __init__(self, pid: int, *, cpu_start: float | None = None) -> None:
        self._pid = pid
        self._cpu_start = process_cpu_seconds(pid) if cpu_start is None else cpu_start
        self._last: _Reading | None = None
        self._at_rest: _Reading | None = None
        self._idle = self._forgiven = 0.0

    @classmethod
    def of_new_process(cls, pid: int) -> "Stopwatch":
        """Measures from now on a process that was started just now and has used nothing."""
        watch = cls(pid, cpu_start=0.0)
        watch._last = watch._at_rest = _Reading(cpu=0.0, pages=0.0, wall=time.monotonic(), waiting=0.0, is_running=True)
        return watch

    def restart(self) -> float:
        """Measure from now on; the CPU seconds since the last restart."""
        # One system call; the dear readings are left to the first read.
        before, self._cpu_start = self._cpu_start, process_cpu_seconds(self._pid)
        self._last = None
        return self._cpu_start - before

    def read(self) -> tuple[float, float]:
        """CPU seconds and idle seconds. Without scheduler statistics waiting for a processor counts as idle.

        A stretch in which the watching process itself did not get to look counts as idle only in part:
        who stalls the watcher (a paused virtual machine, a crowded processor) stalls the program too.
        """
        now = _Reading.of(self._pid)
        if self._last is None or self._at_rest is None:
            self._last = self._at_rest = now
            self._idle = self._forgiven = 0.0
        self._forgiven += (1 - PAGES_WEIGHT) * max(0.0, now.pages - self._last.pages)
        self._last = now
        # The kernel books a wait for a processor when it ends, so a stretch counts when the process rests.
        if not now.is_running:
            last, self._at_rest = self._at_rest, now
            # Time on the run queue is the machine's load and not the program's idleness.
            waiting = 0.0
            if now.waiting is not None and last.waiting is not None:
                waiting = now.waiting - last.waiting
            idle = now.wall - last.wall - (now.cpu - last.cpu) - waiting
            # A longer stretch means that this process did not run either, so the program is not charged for it.
            self._idle += min(idle, MAX_CREDIBLE_IDLE_SECONDS)
        used = now.cpu - self._cpu_start
        # Never below a quarter of all: a program cannot have its whole time forgiven as page faults.
        return max(used - self._forgiven, PAGES_WEIGHT * used), max(0.0, self._idle)
