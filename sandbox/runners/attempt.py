"""Runs one program in one process, locally or inside a service: sends requests, reads responses, watches the clock.

The process may write anything at any time. Each response counts for the first call that has no result yet, and a
message that breaks the protocol ends the process. So a program that forges responses only chooses its own return
values, which it could do without forging.
"""

import contextlib
import enum
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import FileIO
from tempfile import TemporaryFile

from .base import TOTAL_SPENT, CallResult, CallStatus, Program, call_limits, dearest_limit, import_seconds, packed
from .child import CPU_TIME, HEADER
from .clocks import Stopwatch, is_stopped, process_cpu_seconds
from .forker import Forker, ProcessExit

_TICK_SECONDS = 0.01
"""Time from a response to the first reading of the clock. If the next response comes earlier, the clock is not read."""
_MAX_POLL_SECONDS = 0.25
_READ_BYTES = 1 << 18
_NAP_SECONDS = 0.0003
"""Pause between two reads of a program that responds all the time. The pause lets one read get many responses."""
_SPARE_CPU_SECONDS = 10
"""Added to RLIMIT_CPU, because this limit should only end programs that no judge watches any more."""
_MAX_DETAIL_BYTES = 1024
_MAX_DETAIL_CHARS = 400
_STATUSES = {
    b"V": CallStatus.VALUE,
    b"E": CallStatus.RAISED,
    b"U": CallStatus.UNENCODABLE,
    b"O": CallStatus.OUTPUT_LIMIT,
}


class ExitReason(enum.Enum):
    """Reason why an attempt is over."""

    FINISHED = enum.auto()
    LOAD_FAILED = enum.auto()
    TIMED_OUT = enum.auto()
    OUTPUT_LIMIT = enum.auto()
    FULL = enum.auto()
    """The process has sent as much as it may, or the next call needs a new process. No single call is to blame."""
    STOPPED = enum.auto()
    """The process is stopped, as by SIGSTOP."""
    BROKE_PROTOCOL = enum.auto()
    CLOSED = enum.auto()
    """The process ended, or closed its channel."""
    SETUP_FAILED = enum.auto()
    """The process ended before it was confined, which is not the program's fault."""


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
    """One process that loads a program and makes the calls at ``indices``, in this order."""

    program: Program
    indices: Sequence[int]
    num_timeouts: int = 0
    """Number of the program's calls that timed out before this attempt."""
    slowest_seconds: float = 0.0
    """Upper bound on the CPU seconds of the slowest answered call. The attempt may raise this bound."""
    is_first: bool = True
    """True if the program has not loaded before. Then the first call has ``dearest_limit``."""
    is_last_try: bool = False
    """True if the only call has its full limit, because it was stopped by a shorter one."""
    is_patient: bool = False
    """True if the program gets no short limits, see ``call_limits``."""
    pays_imports: bool = True
    """True if the first call gets extra time for imports, see ``import_seconds``."""
    seconds_left: float
    """CPU and idle seconds that this process may use in all."""
    take: Callable[[CallResult | str], None]
    """This function gets ``ProgramResult.example_failure`` after the load, and then each result as it arrives."""
    results: list[CallResult] = field(default_factory=list)
    """Results of the calls at ``indices``, in this order. After an early end, there are fewer results than indices."""
    load_error: str = ""
    detail: str = ""
    load_seconds: float = 0.0
    """CPU seconds of the load."""
    is_shortened: bool = False
    """True if the current call has less than its full limit."""
    cpu_seconds: float = 0.0
    used_seconds: float = 0.0
    """CPU and idle seconds."""
    cpu_ceiling: int = 0
    """CPU seconds after which the kernel ends the process by SIGKILL."""
    ending: ProcessExit | None = None
    _pid: int = 0
    _phase: _Phase = _Phase.SETUP
    _received: bytearray = field(default_factory=bytearray)
    _unsent: bytearray = field(default_factory=bytearray)
    _hung_up: bool = False
    _input: FileIO | None = None
    """File in memory that holds the input of the current call."""
    _was_slow: bool = False
    """True if the clock was read while the process ran."""
    _num_bytes: int = 0

    @property
    def _longest_frame(self) -> int:
        return max(self.program.limits.value_bytes, _MAX_DETAIL_BYTES) + CPU_TIME.size * self.program.timed

    @property
    def has_loaded(self) -> bool:
        return self._phase is _Phase.CALLING

    def run(self, forker: Forker) -> ExitReason:
        """Start the process, run it and reap it.

        Errors of ``forker`` are not caught. Results that came before such an error stay in ``results``.
        """
        limits = self.program.limits
        # RLIMIT_CPU is for programs whose judge is gone. The judge's own clock must always end a program earlier.
        seconds = limits.load_cpu_seconds + import_seconds(self.program)
        seconds += len(self.indices) * dearest_limit(self.program)
        self.cpu_ceiling = int(min(seconds, self.seconds_left)) + _SPARE_CPU_SECONDS
        with contextlib.ExitStack() as files:
            given = []
            if self.program.reads_input:
                # A Python that was built for an old system cannot make files in memory.
                if hasattr(os, "memfd_create"):
                    self._input = files.enter_context(open(os.memfd_create("input"), "wb", 0))
                else:
                    self._input = files.enter_context(TemporaryFile(buffering=0))
                number = self._input.fileno()
                os.fchmod(number, 0o444)  # a program with another uid must not reopen it for writing
                given = [files.enter_context(open(f"/proc/self/fd/{number}", "rb")).fileno()]
            channel, self._pid = forker.fork(limits, cpu_seconds=self.cpu_ceiling, given=given)
            total = Stopwatch.of_new_process(self._pid)
            files.enter_context(channel)
            stop = self._converse(channel, total)
            # The clock of a reaped process is gone, so the clock is read before the process is reaped.
            self.cpu_seconds = process_cpu_seconds(self._pid)
            self.used_seconds = sum(total.read()) if self._was_slow else self.cpu_seconds
        self.ending = forker.end(self._pid, is_closed=self._hung_up)
        return stop

    def early_end(self, stop: ExitReason) -> tuple[CallStatus, str]:
        """Return status and detail of the call, or of the load, in which the process ended early."""
        status, detail = _EARLY_ENDS.get(stop, (CallStatus.DIED, ""))
        return status, self.detail or detail or (self.ending.describe() if self.ending else "")

    def _converse(self, channel: socket.socket, total: Stopwatch) -> ExitReason:
        self._request(b"P", self.program.prelude.encode("utf-8", "surrogatepass"))
        self._request(b"N", "\n".join(self.program.entry_points).encode("utf-8", "surrogatepass"))
        kind = b"I" if self.program.reads_input else b"P"
        self._request(kind, self.program.source.encode("utf-8", "surrogatepass"))
        # The calls are not sent yet, because a program could read them while it loads.
        self._request(b"B", b"")
        # A fast response costs no look at the clock. Only a response that takes longer than a tick is measured.
        watch = Stopwatch(self._pid)
        poller = select.poll()
        wait_seconds = _TICK_SECONDS
        looked_at = time.monotonic()
        while True:
            poller.register(channel, select.POLLIN | (select.POLLOUT if self._unsent else 0))
            events = poller.poll(1000 * wait_seconds)
            late = None
            # The clock is checked even if data comes: a program that writes all the time must time out, too.
            if not events or time.monotonic() - looked_at > wait_seconds:
                # The channel is read after the clock, so a response that came before the clock was read is in time.
                late, wait_seconds = self._check_clock(watch, total)
                looked_at = time.monotonic()
                events = poller.poll(0)
            if events and events[0][1] & ~select.POLLOUT:
                num_results, phase = len(self.results), self._phase
                stop = self._read(channel)
                if len(self.results) > num_results or self._phase is not phase:
                    seconds = watch.restart()
                    if self._phase is not phase:
                        self.load_seconds = seconds
                    if len(self.results) > num_results:
                        # This must be above 0, even if the kernel has not yet counted the time of the call.
                        self.slowest_seconds = max(self.slowest_seconds, seconds, 1e-6)
                    wait_seconds, late = _TICK_SECONDS, None
                    looked_at = time.monotonic()
                if stop is not None:
                    return stop
            if late is not None:
                self.detail = late
                # A stopped process uses no CPU time. `Progress` decides whether the program is to blame.
                if is_stopped(self._pid):
                    return ExitReason.STOPPED
                return ExitReason.SETUP_FAILED if self._phase is _Phase.SETUP else ExitReason.TIMED_OUT
            if self._unsent:
                self._write(channel)
            elif events:
                time.sleep(_NAP_SECONDS)

    def _check_clock(self, watch: Stopwatch, total: Stopwatch) -> tuple[str | None, float]:
        """Return a description of the exceeded limit, or None, and the seconds until the next check."""
        limits = self.program.limits
        self._was_slow = True
        if self._phase is _Phase.CALLING:
            is_first, index = not self.results, self.indices[len(self.results)]
            most_cpu, idle_limit, are_shortened = call_limits(
                self.program,
                index,
                num_timeouts=self.num_timeouts,
                slowest=self.slowest_seconds,
                is_patient=self.is_patient,
                is_full=is_first and (self.is_first or self.is_last_try),
            )
            if is_first and self.is_first:
                most_cpu = dearest_limit(self.program)
            if is_first and self.pays_imports:
                seconds = import_seconds(self.program)
                most_cpu, idle_limit = most_cpu + seconds, idle_limit + seconds  # imports also wait for the disk
        else:
            most_cpu, idle_limit, are_shortened = limits.load_cpu_seconds, limits.load_idle_seconds, (False, False)
        cpu, idle = watch.read()
        self.is_shortened = are_shortened[cpu < most_cpu]
        if cpu >= most_cpu:
            return f"more than {most_cpu:.3g} s of CPU time", 0.0
        if idle >= idle_limit:
            return f"idle for more than {idle_limit:.3g} s", 0.0
        # The setup is our own work, so its time must not use up the program's total.
        left = self.seconds_left - sum(total.read())
        if left <= 0 and self._phase is not _Phase.SETUP:
            return TOTAL_SPENT, 0.0
        return None, min(max(min(most_cpu - cpu, idle_limit - idle, left), 0.002), _MAX_POLL_SECONDS)

    def _request(self, kind: bytes, payload: bytes) -> None:
        self._unsent += HEADER.pack(kind, len(payload)) + payload

    def _request_calls(self) -> None:
        # All calls go in one message, because a round trip for each would take longer than most calls do.
        calls = [self.program.calls[index] for index in self.indices[len(self.results) :]]
        if calls and self._input is not None:
            calls = calls[:1]  # the file holds the input of a single call
            self._input.truncate(0)
            self._input.seek(0)
            self._input.write(calls[0].input.encode("utf-8", "surrogatepass"))
        self._request(b"T" if self.program.timed else b"C", b"".join([packed(call) for call in calls]))

    def _write(self, channel: socket.socket) -> None:
        try:
            sent = channel.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:  # the process hung up, but its earlier responses must still be read
            sent = len(self._unsent)
        del self._unsent[:sent]

    def _read(self, channel: socket.socket) -> ExitReason | None:
        try:
            data = channel.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        # The end of the channel is the first sign that the process died. The exit status will tell the cause.
        if not data:
            self._hung_up = True
            return ExitReason.SETUP_FAILED if self._phase is _Phase.SETUP else ExitReason.CLOSED
        self._num_bytes += len(data)
        self._received += data
        at = 0
        stop = None
        while stop is None and len(self._received) - at >= HEADER.size:
            kind, length = HEADER.unpack_from(self._received, at)
            # An oversized frame is refused when its header has come, so memory never holds more than a legal frame.
            if length > self._longest_frame:
                return ExitReason.OUTPUT_LIMIT if self.has_loaded else ExitReason.BROKE_PROTOCOL
            end = at + HEADER.size + length
            if len(self._received) < end:
                break
            stop = self._take(kind, bytes(self._received[at + HEADER.size : end]))
            at = end
        del self._received[:at]
        # No single call is to blame for the total output, so a new process makes the remaining calls.
        if stop is None and self._num_bytes > self.program.limits.total_output_bytes:
            return ExitReason.FULL if self.results else ExitReason.OUTPUT_LIMIT
        return stop

    def _take(self, kind: bytes, payload: bytes) -> ExitReason | None:
        if self._phase is _Phase.SETUP:
            return self._take_greeting(kind, payload)
        # While a program loads, it has no calls, so it must send no results.
        if self._phase is _Phase.LOADING:
            if kind == b"X":
                self.load_error = payload.decode("utf-8", "replace")[:_MAX_DETAIL_CHARS] or "unknown exception"
                return ExitReason.LOAD_FAILED
            if kind != b"L":
                return ExitReason.BROKE_PROTOCOL
            self._phase = _Phase.CALLING
            self.take(payload.decode("utf-8", "replace")[:_MAX_DETAIL_CHARS])
            self._request_calls()
        elif (
            # Our code never sends unknown kinds or more responses than calls, so the program wrote them.
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
        """Take the first frame, which our own code sends before it reads untrusted text."""
        if kind != b"R":
            self.detail = payload.decode("utf-8", "replace")
            return ExitReason.SETUP_FAILED
        self._phase = _Phase.LOADING
        return None

    def _take_result(self, status: CallStatus, payload: bytes) -> bool:
        is_left_over = self.program.reads_input or b"MemoryError" in payload[: CPU_TIME.size + 11]
        if is_left_over and status is CallStatus.RAISED and self.results:
            # An earlier call may have changed a module or filled the memory. A new process makes this call again.
            return False
        seconds = 0.0
        if self.program.timed:
            # The program reports this time itself, so it must not exceed the CPU time of the process.
            seconds = min(CPU_TIME.unpack_from(payload)[0] / 1e9, process_cpu_seconds(self._pid))
            payload = payload[CPU_TIME.size :]
        if status is CallStatus.VALUE:
            result = CallResult(status=status, value=payload, cpu_seconds=seconds)
        else:
            detail = payload.decode("utf-8", "replace")[:_MAX_DETAIL_CHARS]
            result = CallResult(status=status, detail=detail, cpu_seconds=seconds)
        self.results.append(result)
        self.take(result)
        # Endless output costs as much time as a hang. So the process ends here, and `Progress` counts it as a hang.
        return not (self.program.reads_input and status is CallStatus.OUTPUT_LIMIT)
