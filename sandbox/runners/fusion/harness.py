"""The script that a SandboxFusion service runs for us: a parent that watches the clock, and forks that run the program.

The text of this file is sent to the service, with the texts of ``runner.MODULES``. So it imports nothing beside them
and the standard library, and runs on Python 3.10 or newer. It keeps ``LocalRunner``'s rules, since ``Progress``,
``Attempt`` and ``child`` are the same. It cannot confine as ``Jail`` does, which is the service's task. It takes what
it can get: rlimits, no_new_privs, and an unprivileged uid where root started it.

It reports to standard output as soon as something is known: one JSON object a line, behind the request's tag. Its
``event`` is ``ready``, ``loaded`` or ``result`` (of the next call). The last one is ``end``, ``failed`` (the program
did not load), ``more`` (standard output is full) or ``lost`` (the system refused a process: an outage). A program
inherits neither that descriptor nor, as far as the kernel allows, access to this process. One that finds a way in can
only change what it says about itself.
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
from collections.abc import Sequence
from typing import Any

from ...cases.case import Call
from ...errors import ProcessLostError
from ...limits import Limits
from ..attempt import Attempt, ExitReason
from ..base import CallResult, CallStatus, Program
from ..child import Server, keep_only
from ..clocks import process_cpu_seconds
from ..forker import ProcessExit
from ..progress import Progress

KILLS = 3
"""Times a process may be killed from outside, or by itself, in one call before the call counts as DIED."""
MAX_DETAIL = 400
_DYING_SECONDS = 2.0
_LAST_LINE_BYTES, _RECURSION_SLACK = 1024, 64
_NOBODY, _MAX_ORPHANS = 65534, 10_000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38


def main(task: dict[str, Any]) -> None:
    """Run one task (see ``FusionProgress.task``), report it, end this process."""
    fields = task["program"]
    calls = tuple(Call(**call) for call in fields["calls"])
    program = Program(**(fields | {"calls": calls, "limits": Limits(**fields["limits"])}))
    if any(call.awaited for call in calls):
        importlib.import_module("asyncio")  # here, where no program pays for it
    sys.setrecursionlimit(sys.getrecursionlimit() + _RECURSION_SLACK)
    sys.argv = [""]
    _prctl(_PR_SET_DUMPABLE, 0)  # a program of the same uid cannot read this process's memory
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what a program leaves behind becomes a child of this process
    progress = _ReportingProgress(program, task)
    progress.send(event="ready")
    gc.collect()
    gc.freeze()
    try:
        progress.run(progress.processes)
        progress.report_results()
    except (OSError, ProcessLostError) as error:
        progress.finish("lost", str(error))
    progress.finish("failed" if progress.load_error else "end", progress.load_error)


def _prctl(option: int, value: int) -> None:
    """Best effort: an interpreter without ctypes, or a service that refuses it, does without."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class _ReportingProgress(Progress):
    """Progress that says on standard output what becomes of each call."""

    def __init__(self, program: Program, task: dict[str, Any]) -> None:
        statuses = enumerate(task["statuses"])  # of the calls that earlier requests have made
        super().__init__(
            program=program,
            results={index: CallResult(status=CallStatus(status)) for index, status in statuses},
            has_loaded=task["has_loaded"],
            used_seconds=task["used_seconds"],
        )
        self.processes = _Processes(task["hash_seed"])
        self._fd = os.dup(1)
        self._tag = task["tag"]
        # The last line must always find room: without it a response counts as cut off.
        self._room = task["stdout_bytes"] - _LAST_LINE_BYTES
        self._num_earlier = self._num_reported = len(self.results)
        self._num_kills = 0
        self._is_full = False

    def finish(self, event: str, detail: str = "") -> None:
        """Write the last line and end this process. No process of the program runs any more."""
        self.send(event=event, detail=detail[:MAX_DETAIL])
        os._exit(0)

    def take(self, result: CallResult | None) -> bool:
        if result is not None:
            # In order: behind a call that will be asked once more, results wait for it.
            return self._num_reported in self._doubtful or self._report(result)
        if not self.has_loaded:
            self.has_loaded = True
            self.send(event="loaded")
        return True

    def try_again(self, attempt: Attempt, stop: ExitReason) -> bool:
        """Programs can send SIGKILL here, so after a few kills in one call the program has died."""
        was_killed = attempt.ending is not None and attempt.ending.was_killed
        if stop is not ExitReason.CLOSED or not was_killed:
            return False
        self._num_kills += 1
        if self._num_kills < KILLS:
            time.sleep(0.1 * self._num_kills)  # short of memory, a machine needs a moment
            return True
        attempt.detail = f"killed by SIGKILL in {KILLS} of {KILLS} tries"
        return False

    def settle(self, attempt: Attempt, stop: ExitReason) -> None:
        if not self._is_full:
            super().settle(attempt, stop)
        self.report_results()

    def report_results(self) -> None:
        """Report what was not known while a process ran: early ends and calls that are not made."""
        while self._num_reported in self.results:
            if self._is_full or not self._report(self.results[self._num_reported]):
                self.finish("more")

    def _report(self, result: CallResult) -> bool:
        """Report the first result that was not; False, and nothing is written, where it does not fit."""
        fields = {"event": "result", "index": self._num_reported, "status": result.status.value}
        fields["detail"] = result.detail[:MAX_DETAIL]
        if self.program.timed:  # as the program says; it cannot have used more than its process has
            fields["seconds"] = min(result.cpu_seconds, process_cpu_seconds(self.processes.pid))
        value = base64.b64encode(zlib.compress(result.value, 1)).decode() if result.value else ""
        if not self.send(value=value, **fields):
            if self._num_reported > self._num_earlier:
                self._is_full = True
                return False
            # The first of a request: no later request has more room for it.
            reason = "more than the service returns of standard output"
            self.send(**(fields | {"status": CallStatus.OUTPUT_LIMIT.value, "detail": reason}))
        self._num_reported += 1
        self._num_kills = 0
        return True

    def send(self, **fields: Any) -> bool:
        """Write one line; False for a result that does not fit, of which nothing was written."""
        used = {"cpu_seconds": self.cpu_seconds, "used_seconds": self.used_seconds}
        line = memoryview(f"\n{self._tag} {json.dumps(fields | used)}\n".encode())
        if fields["event"] == "result" and len(line) > self._room:
            return False
        self._room -= len(line)
        while line:
            line = line[os.write(self._fd, line) :]
        return True


class _Processes:
    """The processes of one program: a ``Forker``."""

    def __init__(self, hash_seed: int) -> None:
        self._server = Server()
        self._hash_seed = hash_seed
        self.pid = 0
        """Pid of the process that runs now."""

    def fork(self, limits: Limits, *, cpu_seconds: int, given: Sequence[int]) -> tuple[socket.socket, int]:
        """See ``Forker.fork``.

        Raises:
            OSError: the system refused a process.
        """
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            self._run_child(limits, [theirs.fileno(), *given], cpu_seconds)
        theirs.close()
        ours.setblocking(False)
        return ours, self.pid

    def end(self, pid: int, *, is_closed: bool) -> ProcessExit:
        """See ``Forker.end``. What the program started and left behind ends too."""
        # Its own status tells an exit from a crash. A kill would hide it.
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

    def _run_child(self, limits: Limits, given: Sequence[int], cpu_seconds: int) -> None:
        """Run the program in this forked process and end it. Never returns."""
        try:
            keep_only(given)  # above all not the descriptor on which this side reports
            os.chdir("/")
            _drop_root()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            _prctl(_PR_SET_NO_NEW_PRIVS, 1)
            _set_rlimits(limits, cpu_seconds)
            if not self._hash_seed:
                random.seed(0)  # here, because random seeds itself anew after a fork, as a reference's process shall
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
        try:  # as nobody, before it is final
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
