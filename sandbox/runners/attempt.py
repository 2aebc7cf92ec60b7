"""One process running one program: requests out, responses in, the clock watched. The same here and inside a service.

The process may write anything at any time. Each response is taken for the first call still open, as the
protocol orders it; what does not fit the protocol ends the process. So a program that forges responses
only chooses its own output, which it could have returned as well.
"""

import contextlib
import enum
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from io import FileIO
from tempfile import TemporaryFile

from ..cases.case import Call
from .base import TOTAL_SPENT, CallResult, CallStatus, Program, cpu_limit, import_seconds
from .child import CPU_TIME, HEADER, pack_call
from .clocks import Stopwatch, is_stopped, process_cpu_seconds
from .forker import Forker, ProcessExit

_TICK_SECONDS = 0.01
"""First look at the clock after a response; responses sooner than this are never timed."""
_MAX_POLL_SECONDS = 0.25
_READ_BYTES = 1 << 18
_NAP_SECONDS = 0.0003  # between two readings of a program that keeps responding: one then takes many responses
_PACKED_CALLS, _MAX_KEPT_CHARS = 8192, 4096
"""Compiled calls kept; each is asked of the two references and of every candidate it was written for."""
_SPARE_CPU_SECONDS = 10
"""Added to RLIMIT_CPU, which ends programs that nobody watches."""
_MAX_DETAIL_BYTES = 1024
_MAX_DETAIL_CHARS = 400
_STATUSES = {
    b"V": CallStatus.VALUE,
    b"E": CallStatus.RAISED,
    b"U": CallStatus.UNENCODABLE,
    b"O": CallStatus.OUTPUT_LIMIT,
}


class ExitReason(enum.Enum):
    """Why an attempt is over."""

    FINISHED = enum.auto()
    LOAD_FAILED = enum.auto()
    TIMED_OUT = enum.auto()
    OUTPUT_LIMIT = enum.auto()
    FULL = enum.auto()
    """It has returned all that one process may, or ``take`` accepts no more; no single call is to blame for that."""
    STOPPED = enum.auto()
    """Somebody other than the program has stopped its process."""
    BROKE_PROTOCOL = enum.auto()
    CLOSED = enum.auto()
    """The process ended, or closed its channel."""
    SETUP_FAILED = enum.auto()
    """It ended before it was confined: our fault, not the program's."""


_EARLY_ENDS = {
    ExitReason.TIMED_OUT: (CallStatus.TIMED_OUT, ""),
    ExitReason.STOPPED: (CallStatus.TIMED_OUT, ""),
    ExitReason.OUTPUT_LIMIT: (CallStatus.OUTPUT_LIMIT, "too much output"),
    ExitReason.BROKE_PROTOCOL: (CallStatus.DIED, "broke its channel"),
}


class _Phase(enum.Enum):
    SETUP = enum.auto()
    LOADING = enum.auto()
    CALLING = enum.auto()


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One process's share of a program: the calls at ``indices``, in that order."""

    program: Program
    indices: Sequence[int]
    num_timeouts: int = 0
    """Calls of the program that timed out before."""
    slowest_seconds: float = 0.0
    """CPU seconds of the slowest call that the program has answered, at most; grows."""
    is_first: bool = True
    """The program has not loaded before."""
    pays_imports: bool = True
    """Its first call may import what no process of the program has at hand."""
    seconds_left: float
    """CPU and idle seconds this process may use in all."""
    take: Callable[[CallResult | None], bool] = lambda result: True
    """Called with None when the program has loaded, then with each result as it comes; False ends the attempt."""
    results: list[CallResult] = field(default_factory=list)
    """Results of the first ``indices``. Shorter than these when the attempt stopped early."""
    load_error: str = ""
    detail: str = ""
    cpu_seconds: float = 0.0
    used_seconds: float = 0.0
    """CPU and idle seconds."""
    cpu_ceiling: int = 0
    """CPU seconds at which the kernel ends the process by SIGKILL."""
    ending: ProcessExit | None = None
    _phase: _Phase = _Phase.SETUP
    _received: bytearray = field(default_factory=bytearray)
    _unsent: bytearray = field(default_factory=bytearray)
    _hung_up: bool = False
    _input: FileIO | None = None
    """In memory, with the input of the call that was asked last."""
    _was_slow: bool = False
    """Its clock was looked at."""
    _num_bytes: int = 0

    @property
    def _longest_frame(self) -> int:
        return max(self.program.limits.value_bytes, _MAX_DETAIL_BYTES) + CPU_TIME.size * self.program.timed

    @property
    def has_loaded(self) -> bool:
        return self._phase is _Phase.CALLING

    def run(self, forker: Forker) -> ExitReason:
        """Start the process, run it, reap it. What ``forker`` raises goes through; ``results`` has what came before."""
        limits = self.program.limits
        # RLIMIT_CPU is a net below the clock of this side, for a judge that is gone. It must never be what judges.
        seconds = limits.load_cpu_seconds + import_seconds(self.program)
        if self.indices:
            seconds += len(self.indices) * self._cpu_limit(self.indices[0], is_first=True)  # the same for each of them
        self.cpu_ceiling = int(min(seconds, self.seconds_left)) + _SPARE_CPU_SECONDS
        with contextlib.ExitStack() as files:
            given = []
            if self.program.reads_input:
                # Pythons that were built for old systems have no file in memory.
                if hasattr(os, "memfd_create"):
                    self._input = files.enter_context(open(os.memfd_create("input"), "wb", 0))
                else:
                    self._input = files.enter_context(TemporaryFile(buffering=0))
                number = self._input.fileno()
                os.fchmod(number, 0o444)  # a program of another user could not open it to write, if it found a way
                given = [files.enter_context(open(f"/proc/self/fd/{number}", "rb")).fileno()]
            channel, pid = forker.fork(limits, cpu_seconds=self.cpu_ceiling, given=given)
            total = Stopwatch.of_new_process(pid)
            files.enter_context(channel)
            stop = self._converse(channel, pid, total)
            # Before the process is reaped: afterwards its clock is gone.
            self.cpu_seconds = process_cpu_seconds(pid)
            self.used_seconds = sum(total.read()) if self._was_slow else self.cpu_seconds
        if self.program.timed:  # as it says; it cannot have used more in one call than in all
            most = self.cpu_seconds
            self.results = [replace(one, cpu_seconds=most) if one.cpu_seconds > most else one for one in self.results]
        self.ending = forker.end(pid, is_closed=self._hung_up)
        return stop

    def early_end(self, stop: ExitReason) -> tuple[CallStatus, str]:
        """Status and reason that an early end gives to the call, or the load, that it happened in."""
        status, detail = _EARLY_ENDS.get(stop, (CallStatus.DIED, ""))
        return status, self.detail or detail or (self.ending.describe() if self.ending else "")

    def _cpu_limit(self, index: int, *, is_first: bool) -> float:
        return cpu_limit(
            self.program, index, num_timeouts=self.num_timeouts, slowest=self.slowest_seconds, is_first=is_first
        )

    def _converse(self, channel: socket.socket, pid: int, total: Stopwatch) -> ExitReason:
        kind = b"I" if self.program.reads_input else b"P"
        for request, source in ((b"P", self.program.prelude), (kind, self.program.source)):
            if source or request == b"I":
                self._request(request, source.encode("utf-8", "surrogatepass"))
        self._request(b"B", b"")  # the calls only when it has loaded: a program could read them while it loads
        # A prompt response costs no look at the clock. Only one that takes longer than a tick is timed.
        watch = Stopwatch(pid)
        poller = select.poll()
        poller.register(channel, select.POLLIN | select.POLLOUT)
        is_writing = True
        wait_seconds = _TICK_SECONDS
        looked_at = time.monotonic()
        while True:
            events = poller.poll(1000 * wait_seconds)
            late = None
            # Whatever arrives: a program that keeps writing must not keep us from the clock.
            if not events or time.monotonic() - looked_at > wait_seconds:
                # Clock first, then the channel again: what came before the reading is in time.
                late, wait_seconds = self._check_clock(watch, total)
                looked_at = time.monotonic()
                events = poller.poll(0)
            if events and events[0][1] & ~select.POLLOUT:
                num_results, phase = len(self.results), self._phase
                stop = self._read(channel)
                if len(self.results) > num_results or self._phase is not phase:
                    seconds = watch.restart()
                    if len(self.results) > num_results:
                        # Above 0, although the kernel may not have booked the call yet.
                        self.slowest_seconds = max(self.slowest_seconds, seconds, 1e-6)
                    wait_seconds, late = _TICK_SECONDS, None
                    looked_at = time.monotonic()
                if stop is not None:
                    return stop
            if late is not None:
                self.detail = late
                # Stopped from outside it uses no time, so this is no time-out of the program's.
                if is_stopped(pid):
                    return ExitReason.STOPPED
                return ExitReason.SETUP_FAILED if self._phase is _Phase.SETUP else ExitReason.TIMED_OUT
            if self._unsent:
                self._write(channel)
            elif events:
                time.sleep(_NAP_SECONDS)
            if is_writing != bool(self._unsent):
                is_writing = bool(self._unsent)
                poller.modify(channel, select.POLLIN | (select.POLLOUT if is_writing else 0))

    def _check_clock(self, watch: Stopwatch, total: Stopwatch) -> tuple[str | None, float]:
        """Look for a limit that is exceeded; its description, or None, and seconds until the next look."""
        limits = self.program.limits
        self._was_slow = True
        if self._phase is _Phase.CALLING:
            is_first, index = not self.results, self.indices[len(self.results)]
            most_cpu = self._cpu_limit(index, is_first=is_first and self.is_first)
            idle_limit = limits.wall_seconds(self._cpu_limit(index, is_first=False))
            if is_first and self.pays_imports:
                seconds = import_seconds(self.program)
                most_cpu, idle_limit = most_cpu + seconds, idle_limit + seconds  # imports wait for the disk, too
        else:
            most_cpu, idle_limit = limits.load_cpu_seconds, limits.load_idle_seconds
        cpu, idle = watch.read()
        if cpu >= most_cpu:
            return f"more than {most_cpu:.3g} s of CPU time", 0.0
        if idle >= idle_limit:
            return f"idle for more than {idle_limit:.3g} s", 0.0
        # Setup is ours: it must not count as the program's spent total.
        left = self.seconds_left - sum(total.read())
        if left <= 0 and self._phase is not _Phase.SETUP:
            return TOTAL_SPENT, 0.0
        return None, min(max(min(most_cpu - cpu, idle_limit - idle, left), 0.002), _MAX_POLL_SECONDS)

    def _request(self, kind: bytes, payload: bytes) -> None:
        self._unsent += HEADER.pack(kind, len(payload)) + payload

    def _request_calls(self) -> None:
        # One message, because a round trip a call would cost more than most calls do; but of inputs the file holds one.
        calls = [self.program.calls[index] for index in self.indices[len(self.results) :]]
        if self._input is not None:
            del calls[1:]
            for call in calls:
                self._input.truncate(0)
                self._input.seek(0)
                self._input.write(call.input.encode("utf-8", "surrogatepass"))
        self._request(b"T" if self.program.timed else b"C", b"".join([_packed(call) for call in calls]))

    def _write(self, channel: socket.socket) -> None:
        try:
            sent = channel.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:  # hung up; the responses that came before are still to be read
            sent = len(self._unsent)
        del self._unsent[:sent]

    def _read(self, channel: socket.socket) -> ExitReason | None:
        try:
            data = channel.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        # The end of the channel is the only sign of a death; the status says which one.
        if not data:
            self._hung_up = True
            return ExitReason.SETUP_FAILED if self._phase is _Phase.SETUP else ExitReason.CLOSED
        self._num_bytes += len(data)
        self._received += data
        at = 0
        stop = None
        while stop is None and len(self._received) - at >= HEADER.size:
            kind, length = HEADER.unpack_from(self._received, at)
            # Refused by its header alone: nothing larger than a legal frame is ever held in memory.
            if length > self._longest_frame:
                return ExitReason.OUTPUT_LIMIT if self.has_loaded else ExitReason.BROKE_PROTOCOL
            end = at + HEADER.size + length
            if len(self._received) < end:
                break
            stop = self._take(kind, bytes(self._received[at + HEADER.size : end]))
            at = end
        del self._received[:at]
        # No single call is to blame for the sum, so a fresh process answers the rest.
        if stop is None and self._num_bytes > self.program.limits.total_output_bytes:
            return ExitReason.FULL if self.results else ExitReason.OUTPUT_LIMIT
        return stop

    def _take(self, kind: bytes, payload: bytes) -> ExitReason | None:
        if self._phase is _Phase.SETUP:
            return self._take_greeting(kind, payload)
        # Until it says that it has loaded, a program has no calls to answer.
        if self._phase is _Phase.LOADING:
            if kind == b"X":
                self.load_error = payload.decode("utf-8", "replace") or "unknown exception"
                return ExitReason.LOAD_FAILED
            if kind != b"L":
                return ExitReason.BROKE_PROTOCOL
            self._phase = _Phase.CALLING
            self.take(None)
            self._request_calls()
        elif (
            # Unknown kinds, and more responses than calls, can only come from the program itself.
            kind not in _STATUSES
            or len(self.results) >= len(self.indices)
            or (self.program.timed and len(payload) < CPU_TIME.size)
        ):
            return ExitReason.BROKE_PROTOCOL
        elif not self._take_result(_STATUSES[kind], payload):
            return ExitReason.FULL
        elif self._input is not None and len(self.results) < len(self.indices):
            self._request_calls()
        return ExitReason.FINISHED if len(self.results) == len(self.indices) else None

    def _take_greeting(self, kind: bytes, payload: bytes) -> ExitReason | None:
        """The first frame comes from our own code, before any untrusted text was read."""
        if kind != b"R":
            self.detail = payload.decode("utf-8", "replace")
            return ExitReason.SETUP_FAILED
        self._phase = _Phase.LOADING
        return None

    def _take_result(self, status: CallStatus, payload: bytes) -> bool:
        is_left_over = self.program.reads_input or b"MemoryError" in payload[: CPU_TIME.size + 11]
        if is_left_over and status is CallStatus.RAISED and self.results:
            # Asked again in a fresh process: an earlier call may have left a module changed, or memory full.
            return False
        seconds = 0.0
        if self.program.timed:
            # The program's own word, bounded afterwards by what its process used.
            seconds, payload = CPU_TIME.unpack_from(payload)[0] / 1e9, payload[CPU_TIME.size :]
        if status is CallStatus.VALUE:
            result = CallResult(status=status, value=payload, cpu_seconds=seconds)
        else:
            detail = payload.decode("utf-8", "replace")[:_MAX_DETAIL_CHARS]
            result = CallResult(status=status, detail=detail, cpu_seconds=seconds)
        self.results.append(result)
        # Printing without end takes as long as a hang: what gives nothing else is asked no more, as one that hangs.
        return self.take(result) and not (self.program.reads_input and status is CallStatus.OUTPUT_LIMIT)


def _packed(call: Call) -> bytes:
    pack = _kept_call if len(call.expression) <= _MAX_KEPT_CHARS else pack_call
    return pack(call.evaluated, awaited=call.awaited, uses_library=call.uses_library)


_kept_call = lru_cache(_PACKED_CALLS)(pack_call)
