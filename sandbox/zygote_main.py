"""The zygote: a clean interpreter that forks one confined child per program.

It is exec'd with a scrubbed environment and only ever receives descriptors and numbers, so its memory,
which every child inherits, holds no program, no output and no expected value. It cannot be inspected
by its own user, ignores the terminal, and ends when its parent does.

Control messages (one SOCK_SEQPACKET datagram each):

- ``F`` + limits, with a socket attached: fork; answers ``P`` + pid, or ``!`` + reason.
- ``E`` + pid + whether its socket is already closed: kill and reap; answers ``S`` + wait status +
  whether it had ended by itself.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable

from . import child
from .confine import Jail, ProcessLimits, UidPolicy, forbid_inspection, readable_roots

PRELOADED = (
    "abc array asyncio base64 bisect calendar cmath collections.abc concurrent.futures contextlib copy "
    "dataclasses datetime decimal enum fractions functools hashlib heapq inspect io itertools json logging math "
    "numbers operator pprint queue random re secrets statistics string struct textwrap threading time traceback "
    "types typing unicodedata uuid warnings weakref zoneinfo encodings.idna"
)
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
_RECURSION_SLACK = 64
"""Frames of the harness below the program's first one, so that programs get the usual thousand."""


def main(argv: list[str]) -> None:
    """``argv``: control descriptor, pid of the parent, JSON settings."""
    control = socket.socket(fileno=int(argv[0]))
    parent = int(argv[1])
    settings = json.loads(argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as handle:
        handle.write("1000")  # short of memory, the kernel takes programs before it takes the trainer
    for name in (*PRELOADED.split(), *settings["preload"]):
        importlib.import_module(name)
    forbid_inspection()
    sys.setrecursionlimit(sys.getrecursionlimit() + _RECURSION_SLACK)
    sys.argv = [""]
    devnull = os.open(os.devnull, os.O_RDWR)
    jail, notes = _choose_jail(settings["features"], settings["readable"], devnull)
    if jail is None:
        control.send(json.dumps({"error": "; ".join(notes)}).encode())
        return
    control.send(json.dumps({"uid_policy": jail.uid_policy, "notes": notes}).encode())
    gc.collect()
    gc.freeze()
    gc.disable()
    _Zygote(control, parent=parent, jail=jail, devnull=devnull, seed=settings["seed"]).serve()


class _Zygote:
    def __init__(self, control: socket.socket, *, parent: int, jail: Jail, devnull: int, seed: int) -> None:
        self._control = control
        self._parent = parent
        self._jail = jail
        self._devnull = devnull
        self._seed = seed

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
            return b"!" + str(error).encode()
        if pid == 0:
            run_child(
                self._jail,
                limits,
                channel=channel,
                devnull=self._devnull,
                value_bytes=value_bytes,
                seed=self._seed,
            )
        os.close(channel)
        return PID.pack(b"P", pid)


def run_child(jail: Jail, limits: ProcessLimits, *, channel: int, devnull: int, value_bytes: int, seed: int) -> None:
    """Confine this forked process, run its program, end it. Never returns."""
    try:
        _isolate(jail, channel=channel, devnull=devnull)
        try:
            jail.enter(limits)
        except OSError as error:
            reason = str(error).encode()[:200]
            os.write(child.CHANNEL_FD, child.HEADER.pack(b"!", len(reason)) + reason)
            return
        random.seed(seed)
        gc.enable()
        child.serve(value_bytes)
    finally:
        os._exit(1)  # no clean-up: exit handlers and destructors are the program's, not ours


def _isolate(jail: Jail, *, channel: int, devnull: int) -> None:
    """Leave only /dev/null on 0-2, the program's channel on 3 and, until it is used, the ruleset on 4."""
    os.setsid()
    high = os.dup2(channel, 64)
    ruleset = os.dup2(jail.ruleset_fd, 65) if jail.ruleset_fd is not None else None
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
    """True once the kernel is ending the process, or holds a SIGKILL for it that it had no processor to obey."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            flags = int(handle.read().rpartition(b")")[2].split()[6])
        with open(f"/proc/{pid}/status", "rb") as handle:
            pending = [int(line.split()[1], 16) for line in handle if line.startswith((b"SigPnd:", b"ShdPnd:"))]
    except (OSError, ValueError, IndexError):
        return False
    return bool(flags & _PF_EXITING) or any(mask & 1 << (signal.SIGKILL - 1) for mask in pending)


def _choose_jail(features: list[str], readable: list[str], devnull: int) -> tuple[Jail | None, list[str]]:
    """The first uid policy under which a confined process can still import and cannot do anything else."""
    policies = list(UidPolicy) if os.geteuid() == 0 else [UidPolicy.SAME_USER]
    if "landlock" not in features and UidPolicy.OTHER_USER_READING in policies:
        policies.remove(UidPolicy.OTHER_USER_READING)  # it would read the whole machine
    notes: list[str] = []
    roots = readable_roots(readable)
    for policy in policies:
        jail = Jail(features=features, uid_policy=policy, roots=roots)
        complaint = _try_jail(jail, devnull)
        if not complaint:
            return jail, notes
        notes.append(f"uid policy {policy} does not work here: {complaint}")
        if jail.ruleset_fd is not None:
            os.close(jail.ruleset_fd)
    return None, notes


def _try_jail(jail: Jail, devnull: int) -> str:
    """Enter the jail in a fork; what is wrong with it, or nothing."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        complaint = "it ended early"
        try:
            _isolate(jail, channel=writing, devnull=devnull)
            jail.enter(ProcessLimits(memory_bytes=1 << 28, stack_bytes=1 << 20, cpu_seconds=10, open_files=32))
            complaint = _inspect_jail(jail.features)
        except (OSError, ValueError, ImportError) as error:
            complaint = f"{type(error).__name__}: {error}"
        finally:
            os.write(child.CHANNEL_FD, complaint.encode()[:1000])
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as handle:
        complaint = handle.read().decode()
    _, status = os.waitpid(pid, 0)
    return complaint if os.WIFEXITED(status) else f"the probe ended with wait status {status}"


def _inspect_jail(features: frozenset[str]) -> str:
    """From inside: what an import needs must be readable, what a program may not do must be refused."""
    for folder in sys.path:
        if os.path.isdir(folder):
            with contextlib.suppress(FileNotFoundError):
                os.listdir(folder)
    with open(os.__file__, "rb") as handle:
        handle.read(1)
    forbidden: dict[str, list[tuple[str, Callable[[], object]]]] = {
        "landlock": [
            ("list /", lambda: os.listdir("/")),
            ("read /proc", lambda: os.open("/proc/self/status", os.O_RDONLY)),
        ],
        "seccomp": [
            ("fork", os.fork),
            ("open a socket", socket.socket),
            ("signal", lambda: os.kill(os.getpid(), 0)),
            ("write a file", lambda: os.open("/dev/null", os.O_WRONLY)),
        ],
    }
    for feature in features:
        for what, attempt in forbidden[feature]:
            try:
                attempt()
            except OSError:
                continue
            return f"{feature} does not refuse to {what}"
    return ""
