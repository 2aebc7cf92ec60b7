"""What a SandboxFusion service runs for us: a parent that watches the clock, and forks that run the program.

The text of this file is sent to the service, with those of ``runner.MODULES``, so it imports nothing beside them and
the standard library, and runs on Python 3.10 or newer. It follows ``LocalRunner``'s rules, with the same ``Attempt``
and ``child``: an early end costs the one call it happens in, CPU time judges, a program never shares a process with
another. It cannot confine as ``Jail`` does, which is the service's task; it takes what it can get: rlimits,
no_new_privs, an unprivileged uid where root started it.

It reports to standard output, one JSON object a line behind the request's tag, as soon as something is known. Programs
inherit neither that descriptor nor, as far as the kernel allows, access to this process; one that finds a way in can
only change what it says about itself.

==========  =======================================================================
``event``   meaning
==========  =======================================================================
``ready``   the harness runs
``loaded``  the program loaded
``failed``  it did not, for the reason in ``detail``
``result``  call ``index`` came to ``kind``; ``value`` is zlib, then base64
``more``    the room on standard output is used up; the rest needs another request
``lost``    the system refused a process: an outage
``end``     nothing is left to do
==========  =======================================================================
"""

import base64
import contextlib
import gc
import importlib
import json
import os
import random
import resource
import signal
import socket
import sys
import time
import zlib
from typing import Any

from ...cases.case import Call
from ...limits import Limits
from ..attempt import Attempt, ExitReason, ProcessExit
from ..base import HANGS_THROUGHOUT, TOTAL_SPENT, CallResult, CallStatus, Program
from ..child import CHANNEL_FD, Server
from ..clocks import process_cpu_seconds

KILLS = 3
"""Times a process may be killed from outside, or by itself, in one call before the call counts as DIED."""
MAX_DETAIL = 400
_DYING_SECONDS = 2.0
_LAST_LINE_BYTES, _RECURSION_SLACK = 1024, 64
_NOBODY, _MAX_DESCRIPTORS, _MAX_ORPHANS = 65534, 4096, 10_000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38


def main(task: dict[str, Any]) -> None:
    """Run one task: see ``FusionProgress.task`` for its keys."""
    if any(call["awaited"] for call in task["calls"]):
        importlib.import_module("asyncio")  # here, where no program pays for it
    sys.setrecursionlimit(sys.getrecursionlimit() + _RECURSION_SLACK)
    sys.argv = [""]
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    report = _Report(task["tag"], room=task["stdout_bytes"])
    report.send(event="ready")
    harness = _Harness(task, report)
    gc.collect()
    gc.freeze()
    harness.run()
    os._exit(0)


def _prctl(option: int, value: int) -> None:
    """Best effort: an interpreter without ctypes, or a service that refuses it, does without."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class _Report:
    """Lines on the descriptor that was standard output."""

    def __init__(self, tag: str, *, room: int) -> None:
        self._fd = os.dup(1)
        self._tag = tag
        self._room = room - _LAST_LINE_BYTES
        self.num_results = 0

    def send(self, **fields: Any) -> bool:
        """Write one line; False for a result that does not fit, of which nothing was written."""
        line = memoryview(f"\n{self._tag} {json.dumps(fields)}\n".encode())
        is_result = fields["event"] == "result"
        if is_result and len(line) > self._room:
            return False
        self._room -= len(line)
        self.num_results += is_result
        while line:
            line = line[os.write(self._fd, line) :]
        return True


class _Processes:
    """The processes of one program: what ``Attempt`` needs of a fork server."""

    def __init__(self, hash_seed: int) -> None:
        self._server = Server()
        self._hash_seed = hash_seed
        self.pid = 0
        """Of the process that runs now."""

    def fork(self, limits: Limits, *, cpu_seconds: int) -> tuple[socket.socket, int]:
        """See ``Forker.fork``.

        Raises:
            OSError: the system refused a process.
        """
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            self._run_child(limits, theirs.fileno(), cpu_seconds)
        theirs.close()
        ours.setblocking(False)
        return ours, self.pid

    def end(self, pid: int, *, is_closed: bool) -> ProcessExit:
        """See ``Forker.end``. What the program started and left behind ends too."""
        deadline = time.monotonic() + (_DYING_SECONDS if is_closed else 0.0)
        found, status = os.waitpid(pid, os.WNOHANG)
        while not found and time.monotonic() < deadline:
            time.sleep(0.001)
            found, status = os.waitpid(pid, os.WNOHANG)
        if not found:
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
        _end_orphans()
        return ProcessExit(status=status, by_itself=bool(found))

    def _run_child(self, limits: Limits, channel: int, cpu_seconds: int) -> None:
        """Run the program in this forked process and end it. Never returns."""
        try:
            os.dup2(channel, CHANNEL_FD)
            null = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(null, standard)
            os.closerange(CHANNEL_FD + 1, _MAX_DESCRIPTORS)
            os.chdir("/")
            _drop_root()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            _prctl(_PR_SET_NO_NEW_PRIVS, 1)
            _set_rlimits(limits, cpu_seconds)
            random.seed(self._hash_seed)  # here, because random seeds itself anew after a fork
            gc.enable()
            self._server.serve(limits.value_bytes)
        finally:
            os._exit(1)


def _end_orphans() -> None:
    """Kill what the program started and left behind; the kernel has made it ours."""
    for _ in range(_MAX_ORPHANS):
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


def _drop_root() -> None:
    """Become nobody where that is possible and leaves the standard library readable."""
    if os.geteuid() != 0:
        return
    with contextlib.suppress(OSError):
        os.seteuid(_NOBODY)
        try:
            for folder in filter(os.path.isdir, (os.path.dirname(os.__file__), *sys.path)):
                os.listdir(folder)
            with open(os.__file__, "rb") as handle:
                handle.read(1)
        finally:
            os.seteuid(0)
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)


def _set_rlimits(limits: Limits, cpu_seconds: int) -> None:
    with open("/proc/self/statm") as handle:
        base = int(handle.read().split()[0]) * resource.getpagesize()
    wanted = {
        resource.RLIMIT_AS: (base + limits.memory_bytes,) * 2,
        resource.RLIMIT_CPU: (cpu_seconds, cpu_seconds + 1),
        resource.RLIMIT_NOFILE: (limits.open_files,) * 2,
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_STACK: (limits.stack_bytes, resource.getrlimit(resource.RLIMIT_STACK)[1]),
    }
    for which, (soft, hard) in wanted.items():
        _, ceiling = resource.getrlimit(which)
        if ceiling != resource.RLIM_INFINITY:
            hard = ceiling if hard == resource.RLIM_INFINITY else min(hard, ceiling)
            soft = min(soft, hard)
        resource.setrlimit(which, (soft, hard))


class _Harness:
    """One request: some calls of one program."""

    def __init__(self, task: dict[str, Any], report: _Report) -> None:
        calls = {call.pop("index"): Call(**call) for call in task["calls"]}
        seconds = task["reference_cpu_seconds"]
        self._program = Program(
            prelude=task["prelude"],
            source=task["source"],
            calls=tuple(calls.get(index, Call(expression="")) for index in range(len(seconds))),  # the others were made
            reference_cpu_seconds=tuple(seconds),
            limits=Limits(**task["limits"]),
            max_timeouts_without_result=task["max_timeouts_without_result"],
            isolated=task["isolated"],
            timed=task["timed"],
            reads_input=task["reads_input"],
        )
        self._report = report
        self._processes = _Processes(task["hash_seed"])
        self._pending = list(calls)
        self._has_loaded: bool = task["has_loaded"]
        self._num_timeouts: int = task["num_timeouts"]
        self._has_answered: bool = task["has_answered"]
        self._slowest_seconds = 0.0
        self._seconds_left: float = task["seconds_left"]
        self._cpu_seconds = self._used_seconds = 0.0
        self._num_kills = 0
        self._is_full = False

    def run(self) -> None:
        try:
            while not self._is_full and self._attempt_next():
                pass
            self._send("more" if self._is_full else "end")
        except OSError as error:
            self._send("lost", detail=str(error)[:MAX_DETAIL])

    def _attempt_next(self) -> bool:
        """Start one process for what is left; False when nothing is."""
        hangs = self._num_timeouts >= self._program.max_timeouts_without_result
        if hangs and not self._has_answered and not self._program.timed:
            self._time_out_pending(HANGS_THROUGHOUT)
            return False
        if self._has_loaded and not self._pending:
            return False
        left = self._seconds_left - self._used_seconds
        if left <= 0:
            if not self._has_loaded:
                self._send("failed", detail=f"timed_out while loading: {TOTAL_SPENT}")
            self._time_out_pending(TOTAL_SPENT)
            return False
        attempt = Attempt(
            program=self._program,
            indices=self._pending[:1] if self._program.isolated else list(self._pending),
            num_timeouts=self._num_timeouts,
            slowest_seconds=self._slowest_seconds,
            is_first=not self._has_loaded,
            seconds_left=left,
            take=self._take,
        )
        stop = attempt.run(self._processes)
        self._cpu_seconds += attempt.cpu_seconds
        self._used_seconds += attempt.used_seconds
        self._slowest_seconds = attempt.slowest_seconds
        return self._settle(attempt, stop)

    def _time_out_pending(self, detail: str) -> None:
        while self._has_loaded and self._pending and self._report_result(CallStatus.TIMED_OUT, detail=detail):
            pass

    def _take(self, result: CallResult | None) -> bool:
        """One event of the running process, reported at once."""
        if result is None:
            if not self._has_loaded:
                self._has_loaded = True
                self._send("loaded")
            return True
        seconds = min(result.cpu_seconds, process_cpu_seconds(self._processes.pid)) if self._program.timed else 0.0
        value = base64.b64encode(zlib.compress(result.value, 1)).decode() if result.status is CallStatus.VALUE else ""
        return self._report_result(result.status, value=value, detail=result.detail, seconds=seconds)

    def _report_result(self, status: CallStatus, *, value: str = "", detail: str = "", seconds: float = 0.0) -> bool:
        """Report the first pending call's result; False, for this and all that follow, where it does not fit."""
        fields = {"index": self._pending[0], "kind": status.value, "detail": detail[:MAX_DETAIL], "seconds": seconds}
        if not self._send("result", value=value, **fields):
            if self._report.num_results:
                self._is_full = True
                return False
            detail = "more than the service returns of standard output"
            self._send("result", value="", **(fields | {"kind": "output_limit", "detail": detail}))
        del self._pending[0]
        self._num_kills = 0
        self._num_timeouts += status is CallStatus.TIMED_OUT
        self._has_answered |= status is not CallStatus.TIMED_OUT
        return True

    def _send(self, event: str, **fields: Any) -> bool:
        used = {"cpu_seconds": self._cpu_seconds, "used_seconds": self._used_seconds}
        return self._report.send(event=event, **fields, **used)

    def _settle(self, attempt: Attempt, stop: ExitReason) -> bool:
        """Charge an early end to the one call, or the load, it happened in; False when nothing can follow."""
        if stop in (ExitReason.FINISHED, ExitReason.FULL) or attempt.detail == TOTAL_SPENT:
            return True
        status, detail = attempt.early_end(stop)
        if stop is ExitReason.SETUP_FAILED:
            raise OSError(f"a program's process was lost before it started: {detail}")
        if stop is ExitReason.CLOSED and attempt.ending is not None and attempt.ending.was_killed:
            self._num_kills += 1
            if self._num_kills < KILLS:
                time.sleep(0.1 * self._num_kills)  # short of memory, a machine needs a moment
                return True
            detail = f"killed by SIGKILL in {KILLS} of {KILLS} tries"
        if attempt.has_loaded:
            self._report_result(status, detail=detail)
            return True
        reason = attempt.load_error or f"{status.value} while loading: {detail}"
        if not self._has_loaded:
            self._send("failed", detail=reason[:MAX_DETAIL])
            return False
        for _ in attempt.indices:
            self._report_result(CallStatus.DIED, detail=f"did not load again: {reason}")
        return True
