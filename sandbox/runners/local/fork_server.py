"""The trusted side of one fork server: start it, have it fork, have it reap, stop it."""

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields

from ...confinement import bubblewrap
from ...confinement.clean_interpreter import CLEAN_ENVIRONMENT, clean_interpreter
from ...confinement.jail import OPTIONAL_FEATURES, ProcessLimits, UidPolicy, missing_features
from ...confinement.namespaces import TMP, may_mount
from ...errors import ProcessLostError, SandboxConfigError, SandboxError, SandboxUnavailableError
from ...limits import Limits
from ..forker import ProcessExit
from .fork_server_main import END, MAX_MESSAGE, PID, STATUS

logger = logging.getLogger(__name__)

START_SECONDS = 60.0
"""A fork server starts in a fraction of a second; a machine that needs this long is out of order."""
_CONTROL_SECONDS = 60.0
"""Longest wait for a fork or a reap."""
_STOP_SECONDS = 5.0
_START = "from sandbox.runners.local.fork_server_main import main; main(sys.argv[1:])"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkServerSettings:
    """Settings that distinguish one fork server from another."""

    hash_seed: int
    """PYTHONHASHSEED; with 0 also the seed of ``random`` in its programs, which else draw anew."""
    preload: tuple[str, ...]
    readable: tuple[str, ...]
    tier: int


class ForkServer:
    """A running fork server. One thread at a time."""

    def __init__(self, settings: ForkServerSettings) -> None:
        """Start it and wait until it can fork.

        Raises:
            SandboxConfigError: it cannot confine programs on this machine.
            SandboxUnavailableError: it did not start.
            ProcessLostError: somebody killed it, or its first process, before it could fork.
        """
        # SEQPACKET keeps the bounds of messages, as datagrams do, and tells a hang-up apart.
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(START_SECONDS)
        options = {
            "features": [name for name in OPTIONAL_FEATURES if name not in missing_features()],
            "readable": settings.readable,
            "preload": settings.preload,
            "seed": settings.hash_seed,
            "tier": settings.tier,
            "has_own_user": settings.tier > 0 and not may_mount(),
        }
        command = [*clean_interpreter(_START), str(theirs.fileno()), str(os.getpid()), json.dumps(options)]
        home = {"HOME": TMP} if settings.tier else {}
        try:
            if settings.tier == 2:
                command = bubblewrap.wrap(command, readable=settings.readable)
            self._process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                env=CLEAN_ENVIRONMENT | {"PYTHONHASHSEED": str(settings.hash_seed)} | home,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                # Signals of the terminal are for the parent alone.
                start_new_session=True,
            )
        except SandboxConfigError:
            self._control.close()
            raise
        except OSError as error:
            self._control.close()
            raise SandboxUnavailableError(f"cannot start {sys.executable}: {error}") from error
        finally:
            theirs.close()
        self.pid = self._process.pid
        """Pid of the fork server itself; bubblewrap has another one."""
        self.uid_policy, self.notes = self._greeting()
        self._control.settimeout(_CONTROL_SECONDS)

    def _greeting(self) -> tuple[UidPolicy, tuple[str, ...]]:
        try:
            message = self._control.recv(MAX_MESSAGE)
        except OSError as error:
            message = b""
            logger.warning("fork server pid=%d did not answer: %s", self.pid, error)
        if not message:
            # A killed one may start the next time; any other silence will repeat itself.
            was_killed = self._was_killed()
            self._process.kill()
            assert self._process.stderr is not None
            said = self._process.stderr.read()[-2000:].decode("utf-8", "replace").strip()
            self.close()
            if reason := bubblewrap.explain(said):
                raise SandboxConfigError(reason)
            if was_killed:
                raise ProcessLostError(f"fork server pid={self.pid} was killed while it started")
            silence = f"no word within {START_SECONDS:g} s; is the machine overloaded?"
            raise SandboxUnavailableError(f"the fork server did not start: {said or silence}")
        greeting = json.loads(message)
        if "killed" in greeting:
            self.close()
            raise ProcessLostError(f"fork server pid={self.pid}: {greeting['killed']}")
        if "error" in greeting:
            self.close()
            raise SandboxConfigError(f"programs cannot be confined on this machine: {greeting['error']}")
        self.pid = greeting["pid"]
        return UidPolicy(greeting["uid_policy"]), tuple(greeting["notes"])

    def _was_killed(self) -> bool:
        """Its channel has closed: did somebody kill it?"""
        try:
            return self._process.wait(_STOP_SECONDS) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            return False

    def fork(self, limits: Limits, *, cpu_seconds: int, given: Sequence[int] = ()) -> tuple[socket.socket, int]:
        """See ``Forker.fork``. The pid stays taken until ``end``.

        Raises:
            ProcessLostError: the fork server is gone.
            SandboxUnavailableError: the system refused another process.
        """
        ours, theirs = socket.socketpair()
        try:
            names = {field.name for field in fields(ProcessLimits)} - {"cpu_seconds"}
            numbers = ProcessLimits(cpu_seconds=cpu_seconds, **{name: getattr(limits, name) for name in names})
            message = b"F" + limits.value_bytes.to_bytes(8, "little") + numbers.pack()
            # Our copy closes at once. Otherwise the end of the child would not hang up.
            with theirs:
                answer = self._ask(message, theirs.fileno(), *given)
            if answer[:1] == b"!":
                raise SandboxUnavailableError(f"the system refused a fork: {answer[1:].decode()}")
            # The reader must be able to look at the clock whatever the program sends.
            ours.setblocking(False)
            return ours, PID.unpack(answer)[1]
        except SandboxError:
            ours.close()
            raise

    def end(self, pid: int, *, is_closed: bool) -> ProcessExit:
        """Kill and reap one process. ``is_closed``: its channel is closed, so it may be ending by itself.

        Raises:
            ProcessLostError: the fork server is gone, and its processes with it.
        """
        _, status, by_itself = STATUS.unpack(self._ask(END.pack(b"E", pid, is_closed)))
        return ProcessExit(status=status, by_itself=by_itself)

    def _ask(self, message: bytes, *descriptors: int) -> bytes:
        try:
            if descriptors:
                socket.send_fds(self._control, [message], descriptors)
            else:
                self._control.send(message)
            answer = self._control.recv(MAX_MESSAGE)
        except OSError as error:
            raise ProcessLostError(f"fork server pid={self.pid}: {error}") from error
        if not answer:
            raise ProcessLostError(f"fork server pid={self.pid} hung up")
        return answer

    def close(self) -> None:
        """Stop the fork server; the kernel kills its child with it. Idempotent."""
        with contextlib.suppress(OSError):
            # The fork server ends when its control channel does.
            self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def kill(self) -> None:
        """Stop it without waiting for it to notice."""
        self._process.kill()
        self.close()
