"""The trusted side of one zygote: start it, have it fork, have it reap, stop it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass

from . import bubblewrap
from .confine import OPTIONAL_FEATURES, ProcessLimits, UidPolicy, missing_features
from .errors import SandboxConfigError, SandboxError, SandboxUnavailableError
from .namespaces import TMP, may_mount
from .zygote_main import END, MAX_MESSAGE, PID, STATUS

logger = logging.getLogger(__name__)

START_SECONDS = 60.0
"""A zygote starts in a fraction of a second; a machine that needs this long is out of order."""
_CONTROL_SECONDS = 60.0
"""Longest wait for a fork or a reap."""
_STOP_SECONDS = 5.0
_BOOTSTRAP = """\
import importlib, sys, types
package = types.ModuleType("sandbox")
package.__path__ = [sys.argv.pop(1)]
sys.modules["sandbox"] = package
importlib.import_module("sandbox." + sys.argv.pop(1)).main(sys.argv[1:])
"""
# -P and -s keep the working directory and the user's packages off the path, -B writes no byte code.
_FLAGS = ("-P", "-s", "-B", "-X", "utf8")
CLEAN_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "HOME": "/", "LANG": "C.UTF-8", "TZ": "UTC", "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
}  # fmt: skip


def clean_interpreter(module: str) -> list[str]:
    """The command that runs ``main`` of a module of this package, and nothing else of it, in a new interpreter."""
    return [sys.executable, *_FLAGS, "-c", _BOOTSTRAP, os.path.dirname(os.path.abspath(__file__)), module]


class ZygoteDiedError(SandboxError):
    """The zygote is gone; start another one. Never leaves the runner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZygoteSettings:
    """What distinguishes one zygote from another."""

    hash_seed: int
    """PYTHONHASHSEED, and the seed of ``random`` in its programs."""
    preload: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    tier: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How one program's process ended."""

    status: int
    """As ``os.wait`` reports it."""
    by_itself: bool
    """It had ended before it was killed."""


class Zygote:
    """A running zygote. One thread at a time."""

    def __init__(self, settings: ZygoteSettings) -> None:
        """Start it and wait until it can fork.

        Raises:
            SandboxConfigError: it cannot confine programs on this machine.
            SandboxUnavailableError: it did not start.
            ZygoteDiedError: somebody killed it, or its first process, before it could fork.
        """
        self.settings = settings
        features = [name for name in OPTIONAL_FEATURES if name not in missing_features()]
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(START_SECONDS)
        options = {
            "features": features, "readable": settings.readable, "preload": settings.preload,
            "seed": settings.hash_seed, "tier": settings.tier, "has_own_user": settings.tier > 0 and not may_mount(),
        }  # fmt: skip
        command = [*clean_interpreter("zygote_main"), str(theirs.fileno()), str(os.getpid()), json.dumps(options)]
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
        """Of the zygote itself; bubblewrap has another one."""
        self.uid_policy, self.notes = self._greeting()
        self._control.settimeout(_CONTROL_SECONDS)

    def _greeting(self) -> tuple[UidPolicy, tuple[str, ...]]:
        try:
            message = self._control.recv(MAX_MESSAGE)
        except OSError as error:
            message = b""
            logger.warning("zygote pid=%d did not answer: %s", self.pid, error)
        if not message:
            was_killed = self._was_killed()
            self._process.kill()
            assert self._process.stderr is not None
            said = self._process.stderr.read()[-2000:].decode("utf-8", "replace").strip()
            self.close()
            if reason := bubblewrap.explain(said):
                raise SandboxConfigError(reason)
            if was_killed:
                raise ZygoteDiedError(f"zygote pid={self.pid} was killed while it started")
            raise SandboxUnavailableError(f"the zygote did not start: {said or 'no message'}")
        greeting = json.loads(message)
        if "killed" in greeting:
            self.close()
            raise ZygoteDiedError(f"zygote pid={self.pid}: {greeting['killed']}")
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

    def fork(self, limits: ProcessLimits, *, value_bytes: int) -> tuple[socket.socket, int]:
        """Start one confined process; its channel (non-blocking) and its pid, which stays taken until ``end``.

        Raises:
            ZygoteDiedError: the zygote is gone.
            SandboxUnavailableError: the system refused another process.
        """
        ours, theirs = socket.socketpair()
        try:
            message = b"F" + value_bytes.to_bytes(8, "little") + limits.pack()
            try:
                socket.send_fds(self._control, [message], [theirs.fileno()])
                answer = self._control.recv(MAX_MESSAGE)
            except OSError as error:
                raise ZygoteDiedError(f"zygote pid={self.pid}: {error}") from error
            finally:
                theirs.close()
            if not answer:
                raise ZygoteDiedError(f"zygote pid={self.pid} hung up")
            if answer[:1] == b"!":
                raise SandboxUnavailableError(f"the system refused a fork: {answer[1:].decode()}")
            ours.setblocking(False)
            return ours, PID.unpack(answer)[1]
        except SandboxError:
            ours.close()
            raise

    def end(self, pid: int, *, is_closed: bool) -> Ending:
        """Kill and reap one process. ``is_closed``: its channel is closed, so it may be ending by itself.

        Raises:
            ZygoteDiedError: the zygote is gone, and its processes with it.
        """
        try:
            self._control.send(END.pack(b"E", pid, is_closed))
            answer = self._control.recv(MAX_MESSAGE)
        except OSError as error:
            raise ZygoteDiedError(f"zygote pid={self.pid}: {error}") from error
        if not answer:
            raise ZygoteDiedError(f"zygote pid={self.pid} hung up")
        _, status, by_itself = STATUS.unpack(answer)
        return Ending(status=status, by_itself=by_itself)

    def close(self) -> None:
        """Stop the zygote; the kernel kills its child with it. Idempotent."""
        with contextlib.suppress(OSError):
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
