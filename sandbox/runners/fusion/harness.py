"""The script that a SandboxFusion service runs for us. The script forks processes for the program and watches their
clocks.

The service gets the text of this file and of the other files in ``runner.MODULES``. So this file imports only those
files and the standard library, and it must run on Python 3.10. The harness follows the rules of ``LocalRunner``,
because it uses the same ``Progress``, ``Attempt`` and ``child``. The harness cannot confine programs as ``Jail`` does;
confinement is the service's task. The harness only sets what needs no ``Jail``: rlimits, no_new_privs, and an
unprivileged uid if the harness runs as root.

The harness reports each event by a line that holds the request's tag and a JSON object. A line goes to standard output
at once. After ``stdout_bytes``, the lines go to a file, because a service returns only as much of standard output as a
pipe holds. The harness writes the file when the program's processes have ended. The last line is always on standard
output and holds the SHA-256 of the file, so that nobody else can write the file.

=========  ==================================================================
``event``  meaning
=========  ==================================================================
ready      the harness has started; always the first line
loaded     the program has loaded
result     result of the next call
end        all calls have results
failed     the program did not load
more       the file is full; another request must make the other calls
lost       the system refused a process or the file, which is an outage
=========  ==================================================================

The last four events end the report. A program does not inherit the descriptor for reports. As far as the kernel allows,
a program cannot inspect this process. A program that does inspect this process can only change the report on itself.
"""

import base64
import contextlib
import gc
import hashlib
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
from ...confinement.rlimits import set_rlimits
from ...errors import ProcessLostError
from ...limits import Limits
from ..attempt import Attempt, ExitReason
from ..base import CallResult, CallStatus, Program
from ..child import Server, keep_only
from ..forker import ProcessExit
from ..progress import Progress

KILLS = 3
"""If SIGKILL ends one call this many times, the call gets the status DIED. In a service, programs can send this signal
themselves, so a single kill does not show who sent it."""
_DYING_SECONDS = 2.0
_RECURSION_SLACK = 64
_NOBODY, _MAX_ORPHANS = 65534, 10_000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38


def main(task: dict[str, Any]) -> None:
    """Run one task (see ``FusionProgress.task``), report its results and end this process."""
    fields = task["program"]
    fields["calls"] = tuple(Call(**call) for call in fields["calls"])
    fields["limits"] = Limits(**fields["limits"])
    program = Program(**fields)
    if any(call.awaited for call in program.calls):
        importlib.import_module("asyncio")  # imported before the fork, so that this time counts for no call
    sys.setrecursionlimit(sys.getrecursionlimit() + _RECURSION_SLACK)
    sys.argv = [""]
    _prctl(_PR_SET_DUMPABLE, 0)  # keeps a program with the same uid from reading this process's memory
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # processes that a program leaves behind become children of this one
    progress = _ReportingProgress(program, task)
    progress.send("ready", on_stdout=True)
    gc.collect()
    gc.freeze()
    try:
        progress.run(_Processes(task["hash_seed"]))
        progress.report_results()
    except (OSError, ProcessLostError) as error:
        progress.finish("lost", str(error))
    progress.finish("failed" if progress.load_error else "end", progress.load_error)


def _prctl(option: int, value: int) -> None:
    """Call ``prctl``. Nothing happens if the interpreter has no ctypes or the service refuses the call."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class _ReportingProgress(Progress):
    """Progress that reports the result of each call."""

    def __init__(self, program: Program, task: dict[str, Any]) -> None:
        statuses = enumerate(task["statuses"])  # statuses of the calls that earlier requests made
        super().__init__(
            program=program,
            results={index: CallResult(status=CallStatus(status)) for index, status in statuses},
            has_loaded=task["has_loaded"],
            used_seconds=task["used_seconds"],
        )
        self._fd = os.dup(1)
        self._tag = task["tag"]
        self._room: int = task["stdout_bytes"]
        self._file = bytearray()  # content of the file
        self._num_reported = len(self.results)
        self._num_kills = 0

    def finish(self, event: str, detail: str = "") -> None:
        """Write the file and the last line, and end this process. The program's processes must have ended before."""
        digest = ""
        if self._file:
            try:
                _write(self._tag, self._file)
                digest = hashlib.sha256(self._file).hexdigest()
            except OSError as error:
                event, detail = "lost", str(error)
        self.send(event, on_stdout=True, detail=detail, sha256=digest)
        os._exit(0)

    def take(self, result: CallResult | str) -> None:
        if not isinstance(result, str):
            # Results are reported in order, so later results wait for a call that will be made again.
            if self._num_reported not in self._doubtful and self._num_reported >= len(self.results):
                self._report(result)
        elif not self.has_loaded:
            self.has_loaded = True
            self.send("loaded", detail=result)

    def try_again(self, attempt: Attempt, stop: ExitReason) -> bool:
        """Return True after a SIGKILL, but only a few times for one call."""
        was_killed = attempt.ending is not None and attempt.ending.was_killed
        if stop is not ExitReason.CLOSED or not was_killed:
            return False
        self._num_kills += 1
        if self._num_kills < KILLS:
            time.sleep(0.1 * self._num_kills)  # a machine that is short of memory needs a moment
            return True
        attempt.detail = f"killed by SIGKILL in {KILLS} of {KILLS} tries"
        return False

    def settle(self, attempt: Attempt, stop: ExitReason) -> None:
        super().settle(attempt, stop)
        self.report_results()
        # `attempt` ends processes that send much. So the file is at most about twice as long as the limit.
        if len(self._file) > self.program.limits.total_output_bytes:
            self.finish("more")

    def report_results(self) -> None:
        """Report results that no process sent: those of early ends, and those of calls that are not made."""
        while self._num_reported in self.results:
            self._report(self.results[self._num_reported])

    def _report(self, result: CallResult) -> None:
        """Report the next result."""
        self.send(
            "result",
            index=self._num_reported,
            status=result.status.value,
            value=base64.b64encode(zlib.compress(result.value, 1)).decode(),
            detail=result.detail,
            seconds=result.cpu_seconds,
        )
        self._num_reported += 1
        self._num_kills = 0

    def send(self, event: str, *, on_stdout: bool = False, **fields: Any) -> None:
        """Write one line to standard output, or keep it for the file if the line does not fit or is not the first such
        line."""
        fields |= {"event": event, "cpu_seconds": self.cpu_seconds, "used_seconds": self.used_seconds}
        line = f"\n{self._tag} {json.dumps(fields)}\n".encode()
        if not on_stdout and (self._file or len(line) > self._room):
            self._file += line
            return
        self._room -= len(line)
        while line:
            line = line[os.write(self._fd, line) :]


def _write(path: str, data: bytearray) -> None:
    """Write a new file of this user. Anything that a program has put there is moved away; a link is not followed."""
    with contextlib.suppress(OSError):
        os.rename(path, path + os.urandom(8).hex())
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


class _Processes:
    """Starts and ends the processes of one program; a ``Forker``."""

    def __init__(self, hash_seed: int) -> None:
        self._server = Server()
        self._hash_seed = hash_seed

    def fork(self, limits: Limits, *, cpu_seconds: int, given: Sequence[int]) -> tuple[socket.socket, int]:
        """See ``Forker.fork``.

        Raises:
            OSError: the system refused a process.
        """
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            self._run_child(limits, [theirs.fileno(), *given], cpu_seconds)
        theirs.close()
        ours.setblocking(False)
        return ours, pid

    def end(self, pid: int, *, is_closed: bool) -> ProcessExit:
        """See ``Forker.end``. Processes that the program left behind are killed too."""
        deadline = time.monotonic() + (_DYING_SECONDS if is_closed else 0.0)
        while True:
            # The status of the process shows whether it exited or crashed. A kill would hide this status.
            ended_pid, status = os.waitpid(pid, os.WNOHANG)
            if ended_pid or time.monotonic() >= deadline:
                break
            time.sleep(0.001)
        if not ended_pid:
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
        _end_orphans()
        return ProcessExit(status=status, by_itself=bool(ended_pid))

    def _run_child(self, limits: Limits, given: Sequence[int], cpu_seconds: int) -> None:
        """Run the program in this forked process and end the process. Never returns."""
        try:
            keep_only(given)  # this also closes the descriptor for reports
            os.chdir("/")
            _drop_root()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            _prctl(_PR_SET_NO_NEW_PRIVS, 1)
            with open("/proc/self/statm") as handle:
                own_bytes = int(handle.read().split()[0]) * resource.getpagesize()
            set_rlimits(
                address_bytes=own_bytes + limits.memory_bytes,
                cpu_seconds=cpu_seconds,
                open_files=limits.open_files,
                file_bytes=0,
                stack_bytes=limits.stack_bytes,
                threads=None,  # the kernel would count all threads of this uid
            )
            if not self._hash_seed:
                # `random` is seeded after the fork, because `random` seeds itself again at the fork. A reference's
                # process keeps the seed that `random` chose itself.
                random.seed(0)
            gc.enable()
            self._server.serve(limits.value_bytes)
        finally:
            os._exit(1)


def _end_orphans() -> None:
    """Kill the processes that the program left behind. The kernel has made them children of this process."""
    for _ in range(_MAX_ORPHANS):
        children = []
        with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as handle:
            children = handle.read().split()
        if not children:
            return
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(int(child), signal.SIGKILL)
                os.waitpid(int(child), 0)


def _drop_root() -> None:
    """Switch to the user ``nobody`` if root started this process and ``nobody`` can read the standard library."""
    if os.geteuid() != 0:
        return
    with contextlib.suppress(OSError):
        os.seteuid(_NOBODY)
        try:  # the files are read as nobody while this process can still become root again
            for folder in filter(os.path.isdir, (os.path.dirname(os.__file__), *sys.path)):
                os.listdir(folder)
            with open(os.__file__, "rb") as handle:
                handle.read(1)
        finally:
            os.seteuid(0)
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
