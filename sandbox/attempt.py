"""One process running one program: orders out, answers in, the clock watched.

The process may write anything at any time. Each answer is taken for the first call still open, as the
protocol orders it; what does not fit the protocol ends the process. So a program that forges answers
only chooses its own output, which it could have returned as well.
"""

from __future__ import annotations

import enum
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from .child import CPU_TIME, HEADER, pack_call
from .clocks import Stopwatch, is_stopped, process_cpu_seconds
from .confine import ProcessLimits
from .runner import TOTAL_SPENT, Answer, AnswerKind, Program, cpu_limits, first_call_cpu_limits
from .zygote import Ending, Zygote

_TICK_SECONDS = 0.01
"""First look at the clock after an answer; answers sooner than this are never timed."""
_LONGEST_POLL_SECONDS = 0.25
_READ_BYTES = 1 << 18
_NAP_SECONDS = 0.0003
"""Between two readings of a program that keeps answering: one reading then takes many answers."""
_PACKED_CALLS = 8192
"""Compiled calls kept; each is asked of the two references and of every candidate it was written for."""
_SPARE_CPU_SECONDS = 10
"""Added to RLIMIT_CPU, which only ends programs that nobody watches any more."""
_LONGEST_DETAIL_BYTES = 1024
_ANSWER_KINDS = {
    b"V": AnswerKind.VALUE,
    b"E": AnswerKind.RAISED,
    b"U": AnswerKind.UNENCODABLE,
    b"O": AnswerKind.OUTPUT_LIMIT,
}


class Stop(enum.Enum):
    """Why an attempt is over."""

    FINISHED = enum.auto()
    LOAD_FAILED = enum.auto()
    TIMED_OUT = enum.auto()
    OUTPUT_LIMIT = enum.auto()
    FULL = enum.auto()
    """It has answered all that one process may; no single call is to blame for that."""
    STOPPED = enum.auto()
    """Somebody other than the program has stopped its process."""
    BROKE_PROTOCOL = enum.auto()
    CLOSED = enum.auto()
    """The process ended, or closed its channel."""
    SETUP_FAILED = enum.auto()
    """It ended before it was confined: our fault, not the program's."""


class _Phase(enum.Enum):
    SETUP = enum.auto()
    LOADING = enum.auto()
    CALLING = enum.auto()


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One process's share of a program: the calls at ``indices``, in that order."""

    program: Program
    indices: Sequence[int]
    patience: float
    """Share of a case's full CPU limit that is left after earlier time-outs, in (0, 1]."""
    seconds_left: float
    """CPU and idle seconds this process may use in all."""
    answers: list[Answer] = field(default_factory=list)
    """Of the first of ``indices``; shorter than it when the attempt stopped early."""
    load_error: str = ""
    detail: str = ""
    cpu_seconds: float = 0.0
    used_seconds: float = 0.0
    """CPU and idle seconds."""
    cpu_ceiling: int = 0
    """CPU seconds at which the kernel ends the process by SIGKILL."""
    ending: Ending | None = None
    _phase: _Phase = _Phase.SETUP
    _received: bytearray = field(default_factory=bytearray)
    _unsent: bytearray = field(default_factory=bytearray)
    _hung_up: bool = False
    _was_slow: bool = False
    """Its clock was looked at."""
    _num_sent: int = 0
    _num_bytes: int = 0

    @property
    def _longest_frame(self) -> int:
        return max(self.program.limits.value_bytes, _LONGEST_DETAIL_BYTES) + CPU_TIME.size * self.program.timed

    @property
    def has_loaded(self) -> bool:
        return self._phase is _Phase.CALLING

    def run(self, zygote: Zygote) -> Stop:
        """Start the process, run it, reap it.

        Raises:
            ZygoteDiedError: the zygote is gone; ``answers`` holds what came before.
            SandboxUnavailableError: the system refused a process.
        """
        limits = self.program.limits
        process_limits = self._process_limits()
        self.cpu_ceiling = process_limits.cpu_seconds
        channel, pid = zygote.fork(process_limits, value_bytes=limits.value_bytes)
        total = Stopwatch.of_new_process(pid)
        with channel:
            stop = self._converse(channel, pid, total)
            self.cpu_seconds = process_cpu_seconds(pid)
            self.used_seconds = sum(total.read()) if self._was_slow else self.cpu_seconds
        if self.program.timed:  # its own claims; it cannot have used more in one call than in all
            self.answers = [replace(one, cpu_seconds=min(one.cpu_seconds, self.cpu_seconds)) for one in self.answers]
        self.ending = zygote.end(pid, is_closed=self._hung_up)
        return stop

    def _process_limits(self) -> ProcessLimits:
        limits = self.program.limits
        seconds = limits.load_cpu_seconds + sum(self._cpu_limit(index) for index in self.indices)
        return ProcessLimits(
            memory_bytes=limits.memory_bytes,
            stack_bytes=limits.stack_bytes,
            cpu_seconds=int(min(seconds, self.seconds_left)) + _SPARE_CPU_SECONDS,
            open_files=limits.open_files,
            threads=limits.threads,
            scratch_bytes=limits.scratch_bytes,
            scratch_files=limits.scratch_files,
        )

    def _cpu_limit(self, index: int) -> float:
        if index != self.indices[0]:
            return self._answering_seconds(index)
        full, least = first_call_cpu_limits(self.program, index)
        return max(self.patience * full, least)

    def _answering_seconds(self, index: int) -> float:
        full, least = cpu_limits(self.program, index)
        return max(self.patience * full, least)

    def _converse(self, channel: socket.socket, pid: int, total: Stopwatch) -> Stop:
        for source in (self.program.prelude, self.program.source):
            if source:
                self._order(b"P", source)
        self._order(b"B", "")
        self._order_calls()
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
            if not events or time.monotonic() - looked_at > _LONGEST_POLL_SECONDS:
                # Clock first, then the channel again: what came before the reading is in time.
                late, wait_seconds = self._check_clock(watch, total)
                looked_at = time.monotonic()
                events = poller.poll(0)
            if events and events[0][1] & ~select.POLLOUT:
                num_answers, phase = len(self.answers), self._phase
                if (stop := self._read(channel)) is not None:
                    return stop
                if len(self.answers) > num_answers or self._phase is not phase:
                    watch.restart()
                    wait_seconds, late = _TICK_SECONDS, None
            if late is not None:
                self.detail = late
                if is_stopped(pid):
                    return Stop.STOPPED
                return Stop.SETUP_FAILED if self._phase is _Phase.SETUP else Stop.TIMED_OUT
            if self._unsent:
                self._write(channel)
            elif events:
                time.sleep(_NAP_SECONDS)
            if is_writing != bool(self._unsent):
                is_writing = bool(self._unsent)
                poller.modify(channel, select.POLLIN | (select.POLLOUT if is_writing else 0))

    def _check_clock(self, watch: Stopwatch, total: Stopwatch) -> tuple[str | None, float]:
        """What limit is exceeded, if any, and how long to wait before the next look."""
        limits = self.program.limits
        self._was_slow = True
        if self._phase is _Phase.CALLING:
            index = self.indices[len(self.answers)]
            cpu_limit, idle_limit = self._cpu_limit(index), limits.wall_seconds(self._answering_seconds(index))
        else:
            cpu_limit, idle_limit = limits.load_cpu_seconds, limits.load_idle_seconds
        cpu, idle = watch.read()
        if cpu >= cpu_limit:
            return f"more than {cpu_limit:.3g} s of CPU time", 0.0
        if idle >= idle_limit:
            return f"idle for more than {idle_limit:.3g} s", 0.0
        left = self.seconds_left - sum(total.read())
        if left <= 0 and self._phase is not _Phase.SETUP:
            return TOTAL_SPENT, 0.0
        return None, min(max(min(cpu_limit - cpu, idle_limit - idle, left), 0.002), _LONGEST_POLL_SECONDS)

    def _order(self, kind: bytes, text: str) -> None:
        payload = text.encode("utf-8", "surrogatepass")
        self._unsent += HEADER.pack(kind, len(payload)) + payload

    def _order_calls(self) -> None:
        calls = (self.program.calls[index] for index in self.indices)
        payload = b"".join([_pack_call(call.expression, call.awaited, call.uses_library) for call in calls])
        self._unsent += HEADER.pack(b"T" if self.program.timed else b"C", len(payload)) + payload
        self._num_sent = len(self.indices)

    def _write(self, channel: socket.socket) -> None:
        try:
            sent = channel.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:  # hung up; the answers that came before are still to be read
            sent = len(self._unsent)
        del self._unsent[:sent]

    def _closed(self) -> Stop:
        self._hung_up = True
        return Stop.SETUP_FAILED if self._phase is _Phase.SETUP else Stop.CLOSED

    def _read(self, channel: socket.socket) -> Stop | None:
        try:
            data = channel.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            return self._closed()
        self._num_bytes += len(data)
        self._received += data
        at = 0
        stop = None
        while stop is None and len(self._received) - at >= HEADER.size:
            kind, length = HEADER.unpack_from(self._received, at)
            if length > self._longest_frame:
                return Stop.OUTPUT_LIMIT if self.has_loaded else Stop.BROKE_PROTOCOL
            end = at + HEADER.size + length
            if len(self._received) < end:
                break
            stop = self._take(kind, bytes(self._received[at + HEADER.size : end]))
            at = end
        del self._received[:at]
        if stop is None and self._num_bytes > self.program.limits.total_output_bytes:
            return Stop.FULL if self.answers else Stop.OUTPUT_LIMIT
        return stop

    def _take(self, kind: bytes, payload: bytes) -> Stop | None:
        if self._phase is _Phase.SETUP:
            return self._take_greeting(kind, payload)
        if self._phase is _Phase.LOADING:
            if kind == b"X":
                self.load_error = payload.decode("utf-8", "replace") or "unknown exception"
                return Stop.LOAD_FAILED
            if kind != b"L":
                return Stop.BROKE_PROTOCOL
            self._phase = _Phase.CALLING
        elif kind not in _ANSWER_KINDS or len(self.answers) >= self._num_sent:
            return Stop.BROKE_PROTOCOL
        elif not self.program.timed:
            self._take_answer(kind, payload, 0.0)
        elif len(payload) < CPU_TIME.size:
            return Stop.BROKE_PROTOCOL
        else:
            self._take_answer(kind, payload[CPU_TIME.size :], CPU_TIME.unpack_from(payload)[0] / 1e9)
        return Stop.FINISHED if len(self.answers) == len(self.indices) else None

    def _take_greeting(self, kind: bytes, payload: bytes) -> Stop | None:
        """The first frame comes from the harness, before any untrusted text was read."""
        if kind != b"R":
            self.detail = payload.decode("utf-8", "replace")
            return Stop.SETUP_FAILED
        self._phase = _Phase.LOADING
        return None

    def _take_answer(self, kind: bytes, payload: bytes, seconds: float) -> None:
        answer = _ANSWER_KINDS[kind]
        if answer is AnswerKind.VALUE:
            self.answers.append(Answer(kind=answer, value=payload, cpu_seconds=seconds))
        else:
            detail = payload.decode("utf-8", "replace")[:400]
            self.answers.append(Answer(kind=answer, detail=detail, cpu_seconds=seconds))


@lru_cache(_PACKED_CALLS)
def _pack_call(expression: str, awaited: bool, uses_library: bool) -> bytes:
    return pack_call(expression, awaited=awaited, uses_library=uses_library)
