"""The fork server: a clean interpreter that forks one confined child per program.

It is exec'd with a scrubbed environment and only ever receives descriptors and numbers, so its memory,
which every child inherits, holds no program, no output and no expected value. It cannot be inspected
by its own user, ignores the terminal, and ends when its parent does. From tier 1 on it and its children
live in namespaces, in a root that holds what programs may read and nothing else.

Control messages (one SOCK_SEQPACKET datagram each):

- ``F`` + limits, with a socket attached, and its input's file for a program that reads one: fork; answers ``P`` + pid,
  or ``!`` + reason.
- ``E`` + pid + whether its socket is already closed: kill and reap; answers ``S`` + wait status +
  whether it had ended by itself.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ...confinement.jail import ForkServerFacts, Jail, ProcessLimits, readable_paths
from ...confinement.libc import end_with_parent, forbid_inspection
from ...confinement.namespaces import NamespaceError, Namespaces, plan_layout
from .. import child
from .jail_choice import choose_jail, isolate

PID = struct.Struct("=ci")
END = struct.Struct("=ci?")
STATUS = struct.Struct("=ci?")
MAX_MESSAGE = 65536
_PARENT_CHECK_MS = 1000
_DYING_SECONDS = 0.2
"""A process whose socket is closed gets this long to finish dying by itself, so that its own status is seen."""
_EXITING_SECONDS = 20.0
"""The same for one that the kernel is ending already: on a loaded machine its last instructions wait for a core."""
_PF_EXITING = 0x4
_KILLED = "the process that tries the confinement was killed"
_RECURSION_SLACK = 64
"""Frames of the harness below the program's first one, so that programs get the usual thousand."""


def main(argv: list[str]) -> None:
    """``argv``: control descriptor, pid of the parent, JSON settings."""
    control = socket.socket(fileno=int(argv[0]))
    parent = int(argv[1])
    settings = json.loads(argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The parent's own would show in the modes of files that programs make.
    os.umask(0o022)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as handle:
        handle.write("1000")  # short of memory, the kernel takes programs before it takes the trainer
    if settings["tier"] == 2:  # bubblewrap, which has one thread and is waiting for us, stands between
        parent = os.getppid()
        end_with_parent()
    try:
        # First, because unshare wants a process of one thread that its own user may inspect.
        namespaces = Namespaces() if settings["tier"] else None
        preload(settings["preload"])
        forbid_inspection()
        sys.setrecursionlimit(sys.getrecursionlimit() + _RECURSION_SLACK)
        sys.argv = sys.orig_argv = [""]
        facts = ForkServerFacts.read(has_own_user=settings["has_own_user"])
        layout = plan_layout(readable_paths(settings["readable"]))
        open_proc()
        scratch = namespaces.enter_root(layout) if namespaces is not None else None
    except NamespaceError as error:
        control.send(json.dumps({"error": f"tier {settings['tier']} does not work here: {error}"}).encode())
        return
    jail, notes = choose_jail(settings["features"], layout.binds, facts, scratch)
    if jail is None:
        control.send(json.dumps({"error": "; ".join(notes)} if notes else {"killed": _KILLED}).encode())
        return
    control.send(json.dumps({"pid": os.getpid(), "uid_policy": jail.uid_policy, "notes": notes}).encode())
    fork_server = _ForkServer(control=control, parent=parent, jail=jail, namespaces=namespaces, server=child.Server())
    if settings["seed"]:
        # A reference whose answers are chance must show it: each of its processes draws anew.
        os.register_at_fork(after_in_child=sys.modules["random"].seed)
    else:
        sys.modules["random"].seed(0)
    _freeze()
    fork_server.serve()


def _freeze() -> None:
    """Leave the collector nothing to do in any fork: what it touches would be copied."""
    gc.collect()
    gc.freeze()
    gc.disable()


def preload(extra: Sequence[str]) -> None:
    """Import what programs shall find imported."""
    register = os.register_at_fork
    # random would seed itself anew in every child, where its programs get the fork server's own, fixed seed.
    os.register_at_fork = lambda **hooks: None
    try:
        for name in child.PRELOADED.split():
            importlib.import_module(name)
    finally:
        os.register_at_fork = register
    for name in extra:
        importlib.import_module(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ForkServer:
    control: socket.socket
    parent: int
    jail: Jail
    namespaces: Namespaces | None
    server: child.Server

    def serve(self) -> None:
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        # It looks each second, too: the parent may have ended before its signal was set.
        while os.getppid() == self.parent:
            if not poller.poll(_PARENT_CHECK_MS):
                continue
            message, descriptors, _, _ = socket.recv_fds(self.control, MAX_MESSAGE, 2)
            if not message:
                return
            if message[:1] == b"F":
                self.control.send(self._fork(message[1:], descriptors))
            else:
                self.control.send(_end(*END.unpack(message)[1:]))

    def _fork(self, numbers: bytes, given: list[int]) -> bytes:
        value_bytes = int.from_bytes(numbers[:8], "little")
        limits = ProcessLimits.unpack(numbers[8:])
        try:
            pid = os.fork()
        except OSError as error:
            # Without its init the namespace takes no process any more, so this fork server is of no use.
            if self.namespaces is not None and self.namespaces.is_over():
                sys.exit("the init of the programs' pid namespace was killed")  # the judge starts another fork server
            return b"!" + str(error).encode()
        else:
            if pid == 0:
                run_child(self.jail, self.server, limits, given=given, value_bytes=value_bytes)
        finally:
            for descriptor in given:
                os.close(descriptor)
        return PID.pack(b"P", pid)


def run_child(jail: Jail, server: child.Server, limits: ProcessLimits, *, given: list[int], value_bytes: int) -> None:
    """Confine this forked process, run its program, end it. Never returns."""
    try:
        isolate(jail, given=given)
        try:
            jail.enter(limits)
        except OSError as error:
            reason = str(error).encode()[:200]
            os.write(child.CHANNEL_FD, child.HEADER.pack(b"!", len(reason)) + reason)
            return
        gc.enable()
        server.serve(value_bytes)
    finally:
        os._exit(1)  # no clean-up: exit handlers and destructors are the program's, not ours


def _end(pid: int, is_closed: bool) -> bytes:
    """Kill and reap one child. One that is ending by itself is left the time to, for its own status."""
    now = time.monotonic()
    deadline, latest = (now + _DYING_SECONDS, now + _EXITING_SECONDS) if is_closed else (now, now)
    while True:
        # Its own status tells an exit from a crash. A kill would hide it.
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return STATUS.pack(b"S", status, True)
        now = time.monotonic()
        if now >= latest or (now >= deadline and not _is_ending(pid)):
            break
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return STATUS.pack(b"S", status, False)


def _is_ending(pid: int) -> bool:
    """True once the kernel is ending the process, or holds a SIGKILL for it that it had no processor to obey.

    All of its threads must be ending: one that has left the others running is the program's own doing.
    """
    try:
        threads = _list_threads(pid)
        return all(_is_thread_ending(f"{pid}/task/{thread}") for thread in threads)
    except (OSError, ValueError, IndexError):
        return False


def _list_threads(pid: int) -> list[str]:
    folder = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=open_proc())
    try:
        return os.listdir(folder)
    finally:
        os.close(folder)


def _is_thread_ending(path: str) -> bool:
    try:
        flags = int(_read_proc(f"{path}/stat").rpartition(b")")[2].split()[6])
        if flags & _PF_EXITING:
            return True
        lines = _read_proc(f"{path}/status").splitlines()
    except (FileNotFoundError, ProcessLookupError):  # ended in between
        return True
    pending = [int(line.split()[1], 16) for line in lines if line.startswith((b"SigPnd:", b"ShdPnd:"))]
    return any(mask & 1 << (signal.SIGKILL - 1) for mask in pending)


def _read_proc(path: str) -> bytes:
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags, dir_fd=open_proc())) as handle:
        return handle.read()


@functools.cache
def open_proc() -> int:
    """/proc, opened before this process leaves for a root without one."""
    return os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
