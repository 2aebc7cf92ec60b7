"""The zygote: a clean interpreter that forks one confined child per program.

It is exec'd with a scrubbed environment and only ever receives descriptors and numbers, so its memory,
which every child inherits, holds no program, no output and no expected value. It cannot be inspected
by its own user, ignores the terminal, and ends when its parent does. From tier 1 on it and its children
live in namespaces, in a root that holds what programs may read and nothing else.

Control messages (one SOCK_SEQPACKET datagram each):

- ``F`` + limits, with a socket attached: fork; answers ``P`` + pid, or ``!`` + reason.
- ``E`` + pid + whether its socket is already closed: kill and reap; answers ``S`` + wait status +
  whether it had ended by itself.
"""

from __future__ import annotations

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
from collections.abc import Callable, Sequence

from . import child
from .confine import (
    Jail,
    ProcessLimits,
    UidPolicy,
    ZygoteFacts,
    end_with_parent,
    forbid_inspection,
    readable_paths,
)
from .namespaces import NamespaceError, Namespaces, Scratch, plan_layout
from .preloaded import PRELOADED

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
_PROBE_LIMITS = ProcessLimits(
    memory_bytes=1 << 28,
    stack_bytes=1 << 20,
    cpu_seconds=10,
    open_files=32,
    threads=8,
    scratch_bytes=1 << 16,
    scratch_files=8,
)
_RECURSION_SLACK = 64
"""Frames of the harness below the program's first one, so that programs get the usual thousand."""


def main(argv: list[str]) -> None:
    """``argv``: control descriptor, pid of the parent, JSON settings."""
    control = socket.socket(fileno=int(argv[0]))
    parent = int(argv[1])
    settings = json.loads(argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o022)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as handle:
        handle.write("1000")  # short of memory, the kernel takes programs before it takes the trainer
    if settings["tier"] == 2:  # bubblewrap, which has one thread and is waiting for us, stands between
        parent = os.getppid()
        end_with_parent()
    try:
        namespaces = Namespaces() if settings["tier"] else None
        preload(settings["preload"])
        forbid_inspection()
        sys.setrecursionlimit(sys.getrecursionlimit() + _RECURSION_SLACK)
        sys.argv = [""]
        facts = ZygoteFacts.read(has_own_user=settings["has_own_user"])
        layout = plan_layout(readable_paths(settings["readable"]))
        _proc_folder()
        scratch = namespaces.enter_root(layout) if namespaces is not None else None
    except NamespaceError as error:
        control.send(json.dumps({"error": f"tier {settings['tier']} does not work here: {error}"}).encode())
        return
    try:
        jail, notes = _choose_jail(settings["features"], layout.binds, facts, scratch)
    except _ProbeKilledError:
        control.send(json.dumps({"killed": "the process that tries the confinement was killed"}).encode())
        return
    if jail is None:
        control.send(json.dumps({"error": "; ".join(notes)}).encode())
        return
    control.send(json.dumps({"pid": os.getpid(), "uid_policy": jail.uid_policy, "notes": notes}).encode())
    zygote = _Zygote(control, parent=parent, jail=jail, namespaces=namespaces, server=child.Server())
    sys.modules["random"].seed(settings["seed"])
    gc.collect()
    gc.freeze()
    gc.disable()
    zygote.serve()


def preload(extra: Sequence[str] = ()) -> None:
    """Import what programs shall find imported."""
    register = os.register_at_fork
    # random would seed itself anew in every child, where its programs get the zygote's own, fixed seed.
    os.register_at_fork = lambda **hooks: None
    try:
        for name in PRELOADED.split():
            importlib.import_module(name)
    finally:
        os.register_at_fork = register
    for name in extra:
        importlib.import_module(name)


class _Zygote:
    def __init__(
        self,
        control: socket.socket,
        *,
        parent: int,
        jail: Jail,
        namespaces: Namespaces | None,
        server: child.Server,
    ) -> None:
        self._control = control
        self._parent = parent
        self._jail = jail
        self._namespaces = namespaces
        self._server = server

    def serve(self) -> None:
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        while os.getppid() == self._parent:
            if not poller.poll(_PARENT_CHECK_MS):
                continue
            message, descriptors, _, _ = socket.recv_fds(self._control, MAX_MESSAGE, 1)
            if not message:
                return
            if message[:1] == b"F":
                self._control.send(self._fork(message[1:], descriptors[0]))
            else:
                self._control.send(_end(*END.unpack(message)[1:]))

    def _fork(self, numbers: bytes, channel: int) -> bytes:
        value_bytes = int.from_bytes(numbers[:8], "little")
        limits = ProcessLimits.unpack(numbers[8:])
        try:
            pid = os.fork()
        except OSError as error:
            if self._namespaces is not None and self._namespaces.is_over():
                sys.exit("the init of the programs' pid namespace was killed")  # the judge starts another zygote
            return b"!" + str(error).encode()
        if pid == 0:
            run_child(self._jail, self._server, limits, channel=channel, value_bytes=value_bytes)
        os.close(channel)
        return PID.pack(b"P", pid)


def run_child(jail: Jail, server: child.Server, limits: ProcessLimits, *, channel: int, value_bytes: int) -> None:
    """Confine this forked process, run its program, end it. Never returns."""
    try:
        _isolate(jail, channel=channel)
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


def _isolate(jail: Jail, *, channel: int) -> None:
    """Leave only /dev/null on 0-2, the program's channel on 3 and, until it is used, the ruleset on 4."""
    os.setsid()
    high = os.dup2(channel, 64)
    ruleset = os.dup2(jail.ruleset_fd, 65) if jail.ruleset_fd is not None else None
    # Opened anew: one that all programs inherit would carry its status flags (O_APPEND, say) from one to the next.
    devnull = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(devnull, standard)
    os.dup2(high, child.CHANNEL_FD)
    if ruleset is not None:
        jail.ruleset_fd = os.dup2(ruleset, child.CHANNEL_FD + 1)
    os.closerange(child.CHANNEL_FD + (1 if ruleset is None else 2), 1 << 20)


def _end(pid: int, is_closed: bool) -> bytes:
    """Kill and reap one child. One that is ending by itself is left the time to, for its own status."""
    now = time.monotonic()
    deadline, latest = (now + _DYING_SECONDS, now + _EXITING_SECONDS) if is_closed else (now, now)
    while True:
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
    folder = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=_proc_folder())
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
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags, dir_fd=_proc_folder())) as handle:
        return handle.read()


@functools.cache
def _proc_folder() -> int:
    """/proc, opened before this process leaves for a root without one."""
    return os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _choose_jail(
    features: list[str], roots: Sequence[str], facts: ZygoteFacts, scratch: Scratch | None
) -> tuple[Jail | None, list[str]]:
    """The first uid policy under which a confined process can still import and cannot do anything else."""
    can_change = os.geteuid() == 0 and (facts.has_own_uids or facts.has_nobody)
    policies = list(UidPolicy) if can_change else [UidPolicy.SAME_USER]
    if "landlock" not in features and UidPolicy.OTHER_USER_READING in policies:
        policies.remove(UidPolicy.OTHER_USER_READING)  # it would read the whole machine
    notes: list[str] = []
    if scratch is not None:
        roots = [scratch.place_of(root) for root in roots]
    for policy in policies:
        jail = Jail(features=features, uid_policy=policy, roots=roots, facts=facts, scratch=scratch)
        complaint = _try_jail(jail)
        if not complaint:
            return jail, notes
        notes.append(f"uid policy {policy} does not work here: {complaint}")
        if jail.ruleset_fd is not None:
            os.close(jail.ruleset_fd)
    return None, notes


class _ProbeKilledError(Exception):
    """Somebody else killed the process that tried a jail: an operator, or the kernel short of memory."""


def _try_jail(jail: Jail) -> str:
    """Enter the jail in a fork; what is wrong with it, or nothing.

    Raises:
        _ProbeKilledError: nothing was found out.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        complaint = "it ended early"
        try:
            _isolate(jail, channel=writing)
            jail.enter(_PROBE_LIMITS)
            complaint = _inspect_jail(jail.features, can_write=jail.scratch is not None)
        except (OSError, ValueError, ImportError) as error:
            complaint = f"{type(error).__name__}: {error}"
        finally:
            os.write(child.CHANNEL_FD, complaint.encode()[:1000])
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as handle:
        complaint = handle.read().decode()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        raise _ProbeKilledError  # not by the jail, which has no SIGKILL: it says nothing about this machine
    return complaint if os.WIFEXITED(status) else f"the probe ended with wait status {status}"


def _inspect_jail(features: frozenset[str], *, can_write: bool) -> str:
    """From inside: what an import needs must be readable, what a program may not do must be refused."""
    for folder in sys.path:
        if os.path.isdir(folder):
            with contextlib.suppress(FileNotFoundError):
                os.listdir(folder)
    with open(os.__file__, "rb") as handle:
        handle.read(1)
    if can_write:
        with open("probe", "xb") as handle:
            handle.write(b"x")
        os.unlink("probe")
    in_force = {*features, "root" if can_write else "no writing" if "seccomp" in features else ""}
    for name, what, attempt in _FORBIDDEN:
        if name not in in_force:
            continue
        try:
            attempt()
        except OSError:
            continue
        return f"{name} does not refuse to {what}"
    return ""


_FORBIDDEN: tuple[tuple[str, str, Callable[[], object]], ...] = (
    ("landlock", "list /", lambda: os.listdir("/")),
    ("landlock", "read /proc", lambda: os.open("/proc/self/status", os.O_RDONLY)),
    ("seccomp", "fork", os.fork),
    ("seccomp", "open a socket", socket.socket),
    ("seccomp", "signal", lambda: os.kill(os.getpid(), 0)),
    ("seccomp", "make a pipe with a name", lambda: os.mkfifo("probe")),
    ("no writing", "write a file", lambda: os.open(os.devnull, os.O_WRONLY)),
    ("root", "make a folder", lambda: os.mkdir("/probe")),
    ("root", "write into the library", lambda: os.open(os.__file__, os.O_WRONLY)),
)
