"""What a SandboxFusion service runs for us: a parent that watches the clock, and forks that run the program.

The text of this file is sent to the service, with those of ``fusion.MODULES``, so it imports nothing
beside them and the standard library, and runs on Python 3.10 or newer. It follows ``LocalRunner``'s rules: an
early end costs the one call it happens in, CPU time judges, a program never shares a process with
another. It cannot confine as ``Jail`` does, which is the service's task; it takes what it can get:
rlimits, no_new_privs, and an unprivileged uid where it was started as root.

What it reports goes to standard output, one JSON object a line behind the request's tag, as soon as
it is known. Programs inherit neither that descriptor nor, as far as the kernel allows, access to this
process; one that finds a way in can only change what it says about itself.

==========  =======================================================================
``event``   meaning
==========  =======================================================================
``ready``   the harness runs
``loaded``  the program loaded
``failed``  it did not, for the reason in ``detail``
``answer``  call ``index`` came to ``kind``; ``value`` is zlib, then base64
``more``    the room on standard output is used up; the rest needs another request
``lost``    the system refused a process: an outage
``end``     nothing is left to do
==========  =======================================================================
"""

from __future__ import annotations

import base64
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
import zlib
from typing import Any

from .clocks import Stopwatch, process_cpu_seconds
from .fusion_child import HEADER, prctl, run_child

KILLS = 3
"""Times a process may be killed from outside, or by itself, in one call before the call counts as DIED."""
LONGEST_DETAIL = 400
_TICK_SECONDS, _LONGEST_POLL_SECONDS = 0.02, 0.25
_DYING_SECONDS = 2.0
_SPARE_CPU_SECONDS = 10
_FRAME_SLACK = 1024
_LAST_LINE_BYTES = 1024
_RECURSION_SLACK = 64
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_MOST_ORPHANS = 10_000
_KINDS = {b"V": "value", b"E": "raised", b"U": "unencodable", b"O": "output_limit"}


def main(task: dict[str, Any]) -> None:
    """Run one task: see ``fusion.py`` for its keys."""
    if any(call["awaited"] for call in task["calls"]):
        importlib.import_module("asyncio")  # here, where no program pays for it
    sys.setrecursionlimit(sys.getrecursionlimit() + _RECURSION_SLACK)
    prctl(_PR_SET_DUMPABLE, 0)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    report = _Report(task["tag"], room=task["stdout_bytes"])
    report.send(event="ready")
    gc.collect()
    gc.freeze()
    _Harness(task, report).run()
    os._exit(0)


class _NoRoomError(Exception):
    """Standard output has no room for the next line."""


class _Report:
    """Lines on the descriptor that was standard output."""

    def __init__(self, tag: str, *, room: int) -> None:
        self._fd = os.dup(1)
        self._tag = tag
        self._room = room - _LAST_LINE_BYTES
        self.num_answers = 0

    def send(self, **fields: Any) -> None:
        """Write one line.

        Raises:
            _NoRoomError: an answer that does not fit; nothing was written.
        """
        line = memoryview(f"\n{self._tag} {json.dumps(fields)}\n".encode())
        is_answer = fields["event"] == "answer"
        if is_answer and len(line) > self._room:
            raise _NoRoomError
        self._room -= len(line)
        self.num_answers += is_answer
        while line:
            line = line[os.write(self._fd, line) :]


class _Harness:
    """One request: some calls of one program."""

    def __init__(self, task: dict[str, Any], report: _Report) -> None:
        self._task = task
        self._report = report
        self._pending: list[dict[str, Any]] = task["calls"]
        self._has_loaded: bool = task["has_loaded"]
        self._patience: float = task["patience"]
        self._timeouts_left: int | None = task["timeouts_left"]
        self._cpu_seconds = self._used_seconds = 0.0
        self._num_kills = 0

    def run(self) -> None:
        try:
            while self._attempt_next():
                pass
            self._send("end")
        except _NoRoomError:
            self._send("more")
        except OSError as error:
            self._send("lost", detail=str(error)[:LONGEST_DETAIL])

    def _attempt_next(self) -> bool:
        """Start one process for what is left; False when nothing is."""
        while self._has_loaded and self._timeouts_left == 0 and self._pending:
            self._answer("timed_out", detail=self._task["hangs_throughout"])
        if self._has_loaded and not self._pending:
            return False
        left = self._task["seconds_left"] - self._used_seconds
        spent = self._task["total_spent"]
        if left <= 0:
            if not self._has_loaded:
                self._send("failed", detail=f"timed_out while loading: {spent}")
            while self._has_loaded and self._pending:
                self._answer("timed_out", detail=spent)
            return False
        attempt = _Attempt(self._task, self._pending, patience=self._patience, seconds_left=left, take=self._take)
        try:
            stop, detail = attempt.run()
        finally:
            self._cpu_seconds += attempt.cpu_seconds
            self._used_seconds += attempt.used_seconds
        return self._settle(stop, detail, has_loaded=attempt.has_loaded)

    def _take(self, kind: str, payload: bytes, seconds: float) -> None:
        """One event of the running process, reported at once."""
        if kind == "loaded":
            if not self._has_loaded:
                self._has_loaded = True
                self._send("loaded")
        elif kind == "value":
            self._answer(kind, value=base64.b64encode(zlib.compress(payload, 1)).decode(), seconds=seconds)
        else:
            self._answer(kind, detail=payload.decode("utf-8", "replace"), seconds=seconds)

    def _answer(self, kind: str, *, value: str = "", detail: str = "", seconds: float = 0.0) -> None:
        """Report the first pending call's answer."""
        index = self._pending[0]["index"]
        fields = {"index": index, "kind": kind, "detail": detail[:LONGEST_DETAIL], "seconds": seconds}
        try:
            self._send("answer", value=value, **fields)
        except _NoRoomError:
            if self._report.num_answers:
                raise
            detail = "more than the service returns of standard output"
            self._send("answer", value="", **(fields | {"kind": "output_limit", "detail": detail}))
        self._pending = self._pending[1:]
        self._num_kills = 0
        if kind != "timed_out":
            self._timeouts_left = None
        elif self._timeouts_left:
            self._timeouts_left -= 1

    def _send(self, event: str, **fields: Any) -> None:
        used = {"cpu_seconds": self._cpu_seconds, "used_seconds": self._used_seconds, "patience": self._patience}
        self._report.send(event=event, **fields, **used)

    def _settle(self, stop: str, detail: str, *, has_loaded: bool) -> bool:
        """Charge an early end to the one call, or the load, it happened in; False when nothing can follow."""
        if stop in ("finished", "full") or detail == self._task["total_spent"]:
            return True
        if stop == "killed":
            self._num_kills += 1
            if self._num_kills < KILLS:
                time.sleep(0.1 * self._num_kills)  # short of memory, a machine needs a moment
                return True
            stop, detail = "died", f"killed by SIGKILL in {KILLS} of {KILLS} tries"
        if has_loaded:
            if stop == "timed_out":
                self._patience /= self._task["impatience"]
            self._answer(stop, detail=detail)
            return True
        reason = detail if stop == "failed" else f"{stop} while loading: {detail}"
        if not self._has_loaded:
            self._send("failed", detail=reason[:LONGEST_DETAIL])
            return False
        for _ in self._pending[:1] if self._task["isolated"] else list(self._pending):
            self._answer("died", detail=f"did not load again: {reason}")
        return True


class _Attempt:
    """One process: some calls in order, watched until it ends."""

    def __init__(
        self, task: dict[str, Any], pending: list[dict[str, Any]], *, patience: float, seconds_left: float, take: Any
    ) -> None:
        self._task = task
        self._limits: dict[str, Any] = task["limits"]
        self._calls = pending[:1] if task["isolated"] else pending
        self._patience = patience
        self._seconds_left = seconds_left
        self._take = take
        self._is_set_up = self.has_loaded = False
        self._num_answers = self._num_bytes = 0
        self._received = bytearray()
        self._cpu_at_answer = 0.0
        self.cpu_seconds = self.used_seconds = 0.0

    def run(self) -> tuple[str, str]:
        """How it ended, and what to say about it.

        Raises:
            OSError: the system refused a process, or it was lost before it ran anything.
        """
        ours, theirs = socket.socketpair()
        with ours:
            pid = os.fork()
            if pid == 0:
                run_child(self._task, self._calls, theirs.fileno(), self._cpu_ceiling())
            theirs.close()
            total = Stopwatch(pid)
            total.read()
            stop = detail = ""
            try:
                stop, detail = self._converse(ours, pid, total)
            finally:
                self.cpu_seconds, self.used_seconds = process_cpu_seconds(pid), sum(total.read())
                status = _end(pid, is_closed=stop == "closed")
                _end_orphans()
        if not self._is_set_up:
            raise OSError(f"a program's process was lost before it started: {detail}")
        return _describe_end(status) if stop == "closed" else (stop, detail)

    def _cpu_ceiling(self) -> int:
        seconds = self._limits["load_cpu_seconds"] + sum(self._cpu_limit(call) for call in self._calls)
        return int(min(seconds, self._seconds_left)) + _SPARE_CPU_SECONDS

    def _cpu_limit(self, call: dict[str, Any]) -> float:
        if call is not self._calls[0]:
            return self._answering_seconds(call)
        full, least = call["first_call_cpu_limits"]
        return float(max(self._patience * full, least))

    def _answering_seconds(self, call: dict[str, Any]) -> float:
        full, least = call["cpu_limits"]
        return float(max(self._patience * full, least))

    def _converse(self, channel: socket.socket, pid: int, total: Stopwatch) -> tuple[str, str]:
        watch = Stopwatch(pid)
        poller = select.poll()
        poller.register(channel, select.POLLIN)
        wait_seconds, looked_at = _TICK_SECONDS, time.monotonic()
        while True:
            events = poller.poll(1000 * wait_seconds)
            late = None
            if not events or time.monotonic() - looked_at > _LONGEST_POLL_SECONDS:
                late, wait_seconds = self._check_clock(watch, total)
                looked_at = time.monotonic()
                events = poller.poll(0)
            if events:
                before = (self._is_set_up, self.has_loaded, self._num_answers)
                stop = self._read(channel, pid)
                if stop is not None:
                    return stop
                if (self._is_set_up, self.has_loaded, self._num_answers) != before:
                    watch.restart()
                    wait_seconds, late = _TICK_SECONDS, None
            if late is not None:
                return "timed_out", late

    def _idle_limit(self, answering_seconds: float) -> float:
        full = float(self._limits["wall_seconds_per_case"])
        least = min(float(self._task["least_idle_seconds"]), full)
        return max(least, full * answering_seconds / float(self._limits["cpu_seconds_per_case"]))

    def _check_clock(self, watch: Stopwatch, total: Stopwatch) -> tuple[str | None, float]:
        cpu_limit, idle_limit = self._limits["load_cpu_seconds"], self._limits["load_idle_seconds"]
        if self.has_loaded:
            call = self._calls[self._num_answers]
            cpu_limit, idle_limit = self._cpu_limit(call), self._idle_limit(self._answering_seconds(call))
        cpu, idle = watch.read()
        if cpu >= cpu_limit:
            return f"more than {cpu_limit:.3g} s of CPU time", 0.0
        if idle >= idle_limit:
            return f"idle for more than {idle_limit:.3g} s", 0.0
        left = self._seconds_left - sum(total.read())
        if left <= 0 and self._is_set_up:
            return self._task["total_spent"], 0.0
        return None, min(max(min(cpu_limit - cpu, idle_limit - idle, left), 0.002), _LONGEST_POLL_SECONDS)

    def _read(self, channel: socket.socket, pid: int) -> tuple[str, str] | None:
        try:
            data = channel.recv(1 << 18)
        except OSError:
            data = b""
        if not data:
            return "closed", "hung up"
        self._num_bytes += len(data)
        self._received += data
        while len(self._received) >= HEADER.size:
            kind, length = HEADER.unpack_from(self._received)
            if length > self._limits["value_bytes"] + _FRAME_SLACK:
                return "output_limit", "too much output"
            end = HEADER.size + length
            if len(self._received) < end:
                break
            payload = bytes(self._received[HEADER.size : end])
            del self._received[:end]
            stop = self._take_frame(channel, kind, payload, pid)
            if stop is not None:
                return stop
        if self._num_bytes > self._limits["total_output_bytes"]:
            return ("full", "") if self._num_answers else ("output_limit", "too much output")
        return None

    def _take_frame(self, channel: socket.socket, kind: bytes, payload: bytes, pid: int) -> tuple[str, str] | None:
        if not self._is_set_up:
            self._is_set_up = kind == b"R"
            return None if self._is_set_up else ("closed", payload.decode("utf-8", "replace"))
        if not self.has_loaded:
            if kind == b"X":
                return "failed", payload.decode("utf-8", "replace") or "unknown exception"
            if kind != b"L":
                return "died", "broke its channel"
            self.has_loaded = True
            self._take("loaded", b"", 0.0)
        elif kind not in _KINDS:
            return "died", "broke its channel"
        else:
            now = process_cpu_seconds(pid)
            seconds = max(0.0, now - self._cpu_at_answer) if self._task["timed"] else 0.0
            self._num_answers += 1
            self._take(_KINDS[kind], payload, seconds)
        if self._num_answers == len(self._calls):
            return "finished", ""
        if self._task["timed"]:
            self._cpu_at_answer = process_cpu_seconds(pid)
            with contextlib.suppress(OSError):
                channel.send(b"+")
        return None


def _end(pid: int, *, is_closed: bool) -> int | None:
    """Kill and reap; the wait status of a process that ended by itself."""
    deadline = time.monotonic() + (_DYING_SECONDS if is_closed else 0.0)
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        if time.monotonic() >= deadline:
            break
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _end_orphans() -> None:
    """Kill what the program started and left behind; the kernel has made it ours."""
    for _ in range(_MOST_ORPHANS):
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as handle:
                children = [int(child) for child in handle.read().split()]
        except OSError:
            return
        if not children:
            return
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _describe_end(status: int | None) -> tuple[str, str]:
    if status is None:
        return "died", "closed its channel"
    number = status & 0x7F
    if number == signal.SIGKILL:
        return "killed", ""
    if not number:
        return "died", f"exited with status {status >> 8}"
    known = {member.value for member in signal.Signals}
    return "died", f"ended by {signal.Signals(number).name if number in known else f'signal {number}'}"
