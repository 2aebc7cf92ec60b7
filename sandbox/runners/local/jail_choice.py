"""Choosing the jail of a fork server: which one works on this machine is tried in a fork, before any program."""

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence

from ...confinement.jail import ForkServerFacts, Jail, ProcessLimits, UidPolicy
from ...confinement.namespaces import Scratch
from .. import child

PROBE_LIMITS = ProcessLimits(
    memory_bytes=1 << 28,
    stack_bytes=1 << 20,
    cpu_seconds=10,
    open_files=32,
    threads=8,
    scratch_bytes=1 << 16,
    scratch_files=8,
)
_SHARED_UID = "the uid is one for all programs in this user namespace, which lacks ids of their own: no limits.threads"


def isolate(jail: Jail, *, given: Sequence[int]) -> None:
    """Leave /dev/null on 0-2, what is given from 3 on, and, until it is used, the ruleset behind it.

    Args:
        given: the program's channel, and its input's file if it has one.
    """
    # In a session of its own a program has no terminal to write to.
    os.setsid()
    if jail.ruleset_fd is None:
        child.keep_only(given)
    else:
        child.keep_only([*given, jail.ruleset_fd])
        jail.ruleset_fd = child.CHANNEL_FD + len(given)


def choose_jail(
    features: list[str], roots: Sequence[str], facts: ForkServerFacts, scratch: Scratch | None
) -> tuple[Jail | None, list[str]]:
    """The first uid policy under which a confined process can still import and cannot do anything else.

    Returns:
        The jail, and what is wrong with stronger policies. No jail and no word: nothing was found out.
    """
    can_change = os.geteuid() == 0 and (facts.has_own_uids or facts.has_nobody)
    policies = list(UidPolicy) if can_change else [UidPolicy.SAME_USER]
    if "landlock" not in features and UidPolicy.OTHER_USER_READING in policies:
        policies.remove(UidPolicy.OTHER_USER_READING)  # it would read the whole machine
    notes = [_SHARED_UID] if can_change and not facts.has_own_uids else []
    if scratch is not None:
        roots = [scratch.place_of(root) for root in roots]
    for policy in policies:
        jail = Jail(features=features, uid_policy=policy, roots=roots, facts=facts, scratch=scratch)
        complaint = try_jail(jail)
        if complaint is None:
            return None, []
        if not complaint:
            return jail, notes
        notes.append(f"uid policy {policy} does not work here: {complaint}")
        if jail.ruleset_fd is not None:
            os.close(jail.ruleset_fd)
    return None, notes


def try_jail(jail: Jail) -> str | None:
    """Enter the jail in a fork; what is wrong with it, or nothing.

    None where nothing was found out, for somebody else killed the fork: an operator, or the kernel short of memory.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        complaint = "it ended early"
        try:
            isolate(jail, given=[writing])
            jail.enter(PROBE_LIMITS)
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
        return None  # not by the jail, which has no SIGKILL: it says nothing about this machine
    return complaint if os.WIFEXITED(status) else f"the probe ended with wait status {status}"


def _inspect_jail(features: frozenset[str], *, can_write: bool) -> str:
    """Try a jail from inside: what an import needs must be readable, what a program may not do must be refused."""
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
    # Tried and not assumed: a kernel or container may take a filter and not obey it.
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
