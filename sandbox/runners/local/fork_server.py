"""The trusted side of one fork server: starts the server, asks it to fork and to end processes, and stops it."""

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

from ...confinement.clean_interpreter import CLEAN_ENVIRONMENT, clean_interpreter
from ...confinement.jail import OPTIONAL_FEATURES, ProcessLimits, UidPolicy, missing_features
from ...confinement.namespaces import TMP
from ...errors import ProcessLostError, SandboxConfigError, SandboxError, SandboxUnavailableError
from ...limits import Limits
from ..forker import ProcessExit
from .fork_server_main import END, MAX_MESSAGE, PID, STATUS

logger = logging.getLogger(__name__)

START_SECONDS = 60.0
"""Longest wait for the start of a fork server, which normally takes a fraction of a second."""
_CONTROL_SECONDS = 60.0
"""Longest wait for a fork, or for the end of a process."""
_STOP_SECONDS = 5.0
_START = "from sandbox.runners.local.fork_server_main import main; main(sys.argv[1:])"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkServerSettings:
    """Settings that distinguish one fork server from another."""

    hash_seed: int
    """Value of PYTHONHASHSEED. With 0, ``random`` also gets the seed 0; otherwise ``random`` gets a new seed in each
    program."""
    preload: tuple[str, ...]
    """Modules that are imported before programs are forked, in addition to ``child.PRELOADED``."""
    readable: tuple[str, ...]
    """Further paths that programs may read."""
    tier: int


class ForkServer:
    """A running fork server. Only one thread at a time may use it."""

    def __init__(self, settings: ForkServerSettings) -> None:
        """Start the fork server and wait until it can fork.

        Raises:
            SandboxConfigError: programs cannot be confined on this machine.
            SandboxUnavailableError: the fork server did not start.
            ProcessLostError: somebody killed the fork server before it could fork, or killed the process that tries the
                confinement.
        """
        home = {"HOME": TMP} if settings.tier else {}
        # SEQPACKET keeps the boundaries of messages. Unlike a datagram socket, such a socket reports that the other
        # side has closed.
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(START_SECONDS)
        options = {
            "features": [name for name in OPTIONAL_FEATURES if name not in missing_features()],
            "readable": settings.readable,
            "preload": settings.preload,
            "seed": settings.hash_seed,
            "tier": settings.tier,
        }
        try:
            self._process = subprocess.Popen(
                [*clean_interpreter(_START), str(theirs.fileno()), str(os.getpid()), json.dumps(options)],
                pass_fds=(theirs.fileno(),),
                env=CLEAN_ENVIRONMENT | {"PYTHONHASHSEED": str(settings.hash_seed)} | home,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                # The fork server gets a new session, so that Ctrl-C in the terminal reaches only the parent.
                start_new_session=True,
            )
        except OSError as error:
            self._control.close()
            raise SandboxUnavailableError(f"cannot start {sys.executable}: {error}") from error
        finally:
            theirs.close()
        self.pid = self._process.pid
        self.uid_policy, self.notes = self._greeting()
        self._control.settimeout(_CONTROL_SECONDS)

    def _greeting(self) -> tuple[UidPolicy, tuple[str, ...]]:
        try:
            message = self._control.recv(MAX_MESSAGE)
        except OSError as error:
            message = b""
            logger.warning("fork server pid=%d did not answer: %s", self.pid, error)
        if not message:
            # If somebody killed the fork server, the next start may work. Any other failure will happen again.
            was_killed = self._was_killed()
            self._process.kill()
            assert self._process.stderr is not None
            said = self._process.stderr.read()[-2000:].decode("utf-8", "replace").strip()
            self.close()
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
        return UidPolicy(greeting["uid_policy"]), tuple(greeting["notes"])

    def _was_killed(self) -> bool:
        """Return True if somebody killed the fork server, whose channel has closed."""
        try:
            return self._process.wait(_STOP_SECONDS) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            return False

    def fork(self, limits: Limits, *, cpu_seconds: int, given: Sequence[int] = ()) -> tuple[socket.socket, int]:
        """See ``Forker.fork``. No other process gets the same pid before ``end`` is called.

        Raises:
            ProcessLostError: the fork server is gone.
            SandboxUnavailableError: the system refused another process.
        """
        ours, theirs = socket.socketpair()
        try:
            names = {field.name for field in fields(ProcessLimits)} - {"cpu_seconds"}
            numbers = ProcessLimits(cpu_seconds=cpu_seconds, **{name: getattr(limits, name) for name in names})
            message = b"F" + limits.value_bytes.to_bytes(8, "little") + numbers.pack()
            # This process's copy of the child's socket must be closed. Otherwise the channel would stay open when the
            # child ends.
            with theirs:
                answer = self._ask(message, theirs.fileno(), *given)
            if answer[:1] == b"!":
                raise SandboxUnavailableError(f"the system refused a fork: {answer[1:].decode()}")
            # The reader must never block, because it also watches the program's clock.
            ours.setblocking(False)
            return ours, PID.unpack(answer)[1]
        except SandboxError:
            ours.close()
            raise

    def end(self, pid: int, *, is_closed: bool) -> ProcessExit:
        """Kill and reap one process; see ``Forker.end``.

        Raises:
            ProcessLostError: the fork server and its processes are gone.
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
        """Stop the fork server. The kernel then kills the fork server's child. Idempotent."""
        with contextlib.suppress(OSError):
            # The fork server ends when its control channel closes.
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
        """Stop the fork server by SIGKILL."""
        self._process.kill()
        self.close()
