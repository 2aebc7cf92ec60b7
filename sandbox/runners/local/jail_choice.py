"""Chooses the jail of a fork server by trying jails in a fork, before any program runs."""

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
_SHARED_UID = "this user namespace has too few ids, so all programs share one uid and limits.threads has no effect"


def isolate(jail: Jail, *, given: Sequence[int]) -> None:
    """Close all descriptors that the program must not have, and leave the terminal.

    The process keeps /dev/null on 0 to 2, and the given descriptors from 3 on. The next descriptor is the Landlock
    ruleset, which ``Jail.enter`` closes.

    Args:
        given: the program's channel, and the file with the input of a program that reads standard input.
    """
    # A new session has no terminal that a program could write to.
    os.setsid()
    if jail.ruleset_fd is None:
        child.keep_only(given)
    else:
        child.keep_only([*given, jail.ruleset_fd])
        jail.ruleset_fd = child.CHANNEL_FD + len(given)


def choose_jail(
    features: list[str], roots: Sequence[str], facts: ForkServerFacts, scratch: Scratch | None
) -> tuple[Jail | None, list[str]]:
    """Choose the strongest uid policy under which a confined process can still import modules.

    Returns:
        The jail, and notes on why stronger policies do not work. If there is no jail, the notes say why no policy
        works. If there is neither a jail nor a note, somebody killed the trial, so nothing is known.
    """
    can_change = os.geteuid() == 0 and (facts.has_own_uids or facts.has_nobody)
    policies = list(UidPolicy) if can_change else [UidPolicy.SAME_USER]
    if "landlock" not in features and UidPolicy.OTHER_USER_READING in policies:
        policies.remove(UidPolicy.OTHER_USER_READING)  # without Landlock, such a program could read all files
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
    """Enter the jail in a fork. Return a description of the jail's fault, or an empty text if the jail has no fault.

    The result is None if somebody else killed the fork (an operator, or the kernel when memory is short), so nothing is
    known.
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
        return None  # the jail never kills by SIGKILL, so somebody else did
    return complaint if os.WIFEXITED(status) else f"the probe ended with wait status {status}"


def _inspect_jail(features: frozenset[str], *, can_write: bool) -> str:
    """Check the jail around this process: imports must work, and forbidden actions must fail.

    Returns:
        A description of the first fault, or an empty text.
    """
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
    in_force = set(features)
    if can_write:
        in_force.add("root")
    elif "seccomp" in features:
        in_force.add("no writing")
    # Each action is really tried, because a kernel or a container may accept a filter without applying it.
    for name, what, attempt in _FORBIDDEN:
        if name in in_force:
            with contextlib.suppress(OSError):
                attempt()
                return f"{name} does not refuse to {what}"
    return ""


_FORBIDDEN: tuple[tuple[str, str, Callable[[], object]], ...] = (  # protection, action, attempt of the action
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
