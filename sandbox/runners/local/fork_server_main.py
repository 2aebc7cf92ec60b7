"""The fork server: a clean interpreter that forks one confined child for each program.

The fork server starts with a clean environment and only receives descriptors and numbers. So its memory, which every
child inherits, holds no program, no output and no expected value. Other processes of the same user cannot inspect the
fork server. The fork server ignores interrupts from the terminal, and it ends when its parent ends. At tier 1, the
fork server and its children live in namespaces, and their root holds only the paths that programs may read.

Each control message is one SOCK_SEQPACKET message:

- ``F`` + limits asks for a fork. The child's socket is attached. For a program that reads standard input, the file with
  the input is attached, too. The answer is ``P`` + pid, or ``!`` + reason.
- ``E`` + pid + a flag asks to kill and reap a child. The flag says whether the child's socket is already closed. The
  answer is ``S`` + wait status + a flag that says whether the child had ended by itself.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ...confinement.jail import ForkServerFacts, Jail, ProcessLimits, readable_paths
from ...confinement.libc import forbid_inspection
from ...confinement.namespaces import NamespaceError, Namespaces, plan_layout
from .. import child
from .jail_choice import choose_jail, isolate

PID = struct.Struct("=ci")
END = struct.Struct("=ci?")
STATUS = struct.Struct("=ci?")
MAX_MESSAGE = 65536
_PARENT_CHECK_MS = 1000
_DYING_SECONDS = 0.2
"""Time that a process with a closed socket gets to end by itself, so that its own exit status is seen."""
_EXITING_SECONDS = 20.0
"""Time that a process gets to end by itself if the kernel is already ending it. On a loaded machine, this takes
long."""
_PF_EXITING = 0x4
_KILLED = "the process that tries the confinement was killed"
_THREAD_STACK_BYTES = 8 << 20
_RECURSION_SLACK = 64
"""Stack frames below the program's first frame. The recursion limit grows by this number, so that a program has the
usual thousand frames."""


def main(argv: list[str]) -> None:
    """Run the fork server until its parent ends or hangs up.

    Args:
        argv: number of the control descriptor, pid of the parent, settings as JSON.
    """
    _set_stack_of_threads()
    control = socket.socket(fileno=int(argv[0]))
    settings = json.loads(argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Otherwise the modes of files that programs create would depend on the parent's umask.
    os.umask(0o022)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as handle:
        handle.write("1000")  # when memory is short, the kernel kills programs before the trainer
    try:
        # The namespaces come first, because unshare needs a process that has one thread and that its own user may
        # inspect.
        namespaces = Namespaces() if settings["tier"] else None
        preload(settings["preload"])
        forbid_inspection()
        sys.setrecursionlimit(sys.getrecursionlimit() + _RECURSION_SLACK)
        sys.argv = sys.orig_argv = [""]
        facts = ForkServerFacts.read(has_own_user=namespaces is not None and namespaces.has_own_user)
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
    control.send(json.dumps({"uid_policy": jail.uid_policy, "notes": notes}).encode())
    fork_server = _ForkServer(
        control=control, parent=int(argv[1]), jail=jail, namespaces=namespaces, server=child.Server()
    )
    if settings["seed"]:
        # Each process of a reference gets another seed, so that the judge notices random answers of a reference.
        os.register_at_fork(after_in_child=sys.modules["random"].seed)
    else:
        sys.modules["random"].seed(0)
    _freeze()
    fork_server.serve()


def _freeze() -> None:
    """Keep the garbage collector away from inherited objects. Each page that the collector changes in a fork would be
    copied."""
    gc.collect()
    gc.freeze()
    gc.disable()


def preload(extra: Sequence[str]) -> None:
    """Import the modules that programs find already imported."""
    register = os.register_at_fork
    # Otherwise `random` would seed itself anew in every child, and programs need the fixed seed of the fork server.
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
        # The loop checks the parent every second, because the parent may have ended before the kernel watched it.
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
            # A pid namespace without its init refuses new processes. The judge then starts another fork server.
            if self.namespaces is not None and self.namespaces.is_over():
                sys.exit("the init of the programs' pid namespace was killed")
            return b"!" + str(error).encode()
        else:
            if pid == 0:
                self._run_child(limits, given, value_bytes)
        finally:
            for descriptor in given:
                os.close(descriptor)
        return PID.pack(b"P", pid)

    def _run_child(self, limits: ProcessLimits, given: list[int], value_bytes: int) -> None:
        """Confine this forked process, run its program and end the process. Never returns."""
        try:
            isolate(self.jail, given=given)
            try:
                self.jail.enter(limits)
            except OSError as error:
                reason = str(error).encode()[:200]
                os.write(child.CHANNEL_FD, child.HEADER.pack(b"!", len(reason)) + reason)
                return
            gc.enable()
            self.server.serve(value_bytes)
        finally:
            os._exit(1)  # no clean-up, because exit handlers and destructors belong to the program


def _end(pid: int, is_closed: bool) -> bytes:
    """Kill and reap one child. A child that is about to end by itself gets time for that."""
    started = time.monotonic()
    while True:
        # The child's status shows whether it exited or crashed. A kill would hide this status.
        ended_pid, status = os.waitpid(pid, os.WNOHANG)
        if ended_pid:
            return STATUS.pack(b"S", status, True)
        waited = time.monotonic() - started
        may_still_end = waited < _DYING_SECONDS or (waited < _EXITING_SECONDS and _is_ending(pid))
        if not (is_closed and may_still_end):
            break
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return STATUS.pack(b"S", status, False)


def _is_ending(pid: int) -> bool:
    """Return True if the kernel is ending the process, or will do so as soon as the process gets a processor.

    All threads must be ending. If a thread still runs, the program itself has closed the channel.
    """
    try:
        return all(_is_thread_ending(f"{pid}/task/{thread}") for thread in _list_threads(pid))
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
    except (FileNotFoundError, ProcessLookupError):  # the thread ended after it was listed
        return True
    pending = [int(line.split()[1], 16) for line in lines if line.startswith((b"SigPnd:", b"ShdPnd:"))]
    return any(mask & 1 << (signal.SIGKILL - 1) for mask in pending)


def _read_proc(path: str) -> bytes:
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags, dir_fd=open_proc())) as handle:
        return handle.read()


@functools.cache
def open_proc() -> int:
    """Return a descriptor of /proc. The first call must be made before this process enters a root without /proc."""
    return os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _set_stack_of_threads() -> None:
    """Start this interpreter again if its threads would get a larger stack, because a stack counts as address space.

    glibc takes the stack size of threads from the limit of the main thread at the start of a process.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if not 0 < soft <= _THREAD_STACK_BYTES:  # no limit is -1
        resource.setrlimit(resource.RLIMIT_STACK, (_THREAD_STACK_BYTES, hard))
        os.execv(sys.executable, sys.orig_argv)
