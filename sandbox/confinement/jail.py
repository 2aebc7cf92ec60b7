"""Confinement of one process: rlimits, credentials, no_new_privs, Landlock, seccomp.

A ``Jail`` is prepared once in the fork server and entered once in every child; entering takes a fraction
of a millisecond and cannot be undone. Works without privileges, and inside a default container. This
is the whole of tier 0; the other tiers put it into namespaces and give each program a scratch folder.
"""

import ctypes
import enum
import errno
import os
import re
import resource
import struct
import sys
import sysconfig
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields

from ..errors import SandboxConfigError
from .libc import check, end_with_parent, libc
from .namespaces import NOBODY, SCRATCH_PARENT, Scratch
from .rlimits import set_rlimits
from .seccomp import SeccompProgram, has_seccomp

OWN_UIDS = 0x70000000
"""First of the ids that programs get, one each: a range that no distribution hands out to users,
services or containers. An id is this plus a pid."""
_MAX_PIDS = 1 << 22
_OWN_TASK_COUNTS_SINCE = (5, 14)
"""Kernel that first counted the processes of a user in each user namespace."""
_ZYGOTE_TASKS = 2
"""A fork server and the init of its programs, which are the same user there."""
OPTIONAL_FEATURES = ("landlock", "seccomp")
"""Protections that ``allow_missing`` may name."""
_LOST = {
    "landlock": "programs could read every file that this user can read, reference solutions included (at tier 1 "
    "and 2 they still find none but the readable paths)",
    "seccomp": "programs could start processes, open sockets and send signals",
}

_PR_SET_KEEPCAPS, _PR_SET_NO_NEW_PRIVS = 8, 38
_CAP_DAC_READ_SEARCH = 2
_CAPABILITY_VERSION_3 = 0x20080522
# Landlock's three system calls have the same numbers on every architecture.
_LANDLOCK_CREATE, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_RULE_PATH_BENEATH = 1
_ACCESS_WRITE_FILE, _ACCESS_READ_FILE, _ACCESS_READ_DIR = 2, 4, 8
# Everything but EXECUTE (bit 0), MAKE_CHAR, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK (6, 9, 10, 11) and IOCTL_DEV (15).
_ACCESS_SCRATCH = 0x71BE
# Rights the ruleset governs, by ABI version (include/uapi/linux/landlock.h): what is governed and not
# granted is refused. 2 adds REFER, 3 TRUNCATE, 5 IOCTL_DEV; 4 governs TCP, 6 abstract sockets and signals.
_FILE_RIGHTS_BY_ABI = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}
_NEWEST_FILE_RIGHTS = 0xFFFF


class UidPolicy(enum.StrEnum):
    """How a program's credentials differ from its fork server's, strongest first."""

    OTHER_USER = "other_user"
    OTHER_USER_READING = "other_user_reading"
    SAME_USER = "same_user"


UID_POLICY_MEANINGS = {
    UidPolicy.OTHER_USER: "an unprivileged uid and gid of each program's own, no groups, no capabilities",
    UidPolicy.OTHER_USER_READING: "an unprivileged uid and gid of each program's own that keeps "
    "CAP_DAC_READ_SEARCH, because the interpreter lies in a folder closed to others; Landlock decides what can be read",
    UidPolicy.SAME_USER: "the user who runs this, with every capability dropped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """The numbers a fork server needs to start one program; the order is the wire order."""

    memory_bytes: int
    stack_bytes: int
    cpu_seconds: int
    open_files: int
    threads: int
    scratch_bytes: int
    scratch_files: int

    LAYOUT = struct.Struct("=QQQQQQQ")

    def pack(self) -> bytes:
        return self.LAYOUT.pack(*(getattr(self, field.name) for field in fields(self)))

    @classmethod
    def unpack(cls, data: bytes) -> "ProcessLimits":
        names = (field.name for field in fields(cls))
        return cls(**dict(zip(names, cls.LAYOUT.unpack(data), strict=True)))


def landlock_abi() -> int:
    """Version of the kernel's Landlock interface; 0 without Landlock."""
    return max(0, int(libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1))))


def missing_features() -> tuple[str, ...]:
    """The optional protections that this machine lacks."""
    present = {"landlock": landlock_abi() > 0, "seccomp": has_seccomp()}
    return tuple(name for name in OPTIONAL_FEATURES if not present[name])


def reason_missing(name: str) -> str:
    """Say what is lost without a protection that this kernel lacks."""
    return f"this kernel ({os.uname().release}, {os.uname().machine}) offers no {name}: without it {_LOST[name]}"


def check_features(allow_missing: Collection[str]) -> None:
    """Refuse a machine that lacks a protection which nobody agreed to do without.

    Raises:
        SandboxConfigError: the platform or a protection is missing, or ``allow_missing`` is misspelled.
    """
    if isinstance(allow_missing, str):
        raise SandboxConfigError(f"allow_missing must be a list of names, got the text {allow_missing!r}")
    if unknown := sorted(set(allow_missing) - set(OPTIONAL_FEATURES)):
        raise SandboxConfigError(f"allow_missing names {unknown}; known: {list(OPTIONAL_FEATURES)}")
    if not sys.platform.startswith("linux"):
        raise SandboxConfigError(f"the sandbox needs Linux, this is {sys.platform}")
    for name in missing_features():
        if name not in allow_missing:
            raise SandboxConfigError(
                f"{reason_missing(name)}. "
                f"Run on a kernel that has it, or accept the loss with allow_missing=({name!r},)"
            )


def readable_paths(extra: Iterable[str] = ()) -> tuple[str, ...]:
    """List what programs may read: the standard library, installed packages, shared libraries, time zones.

    Paths are spelled as programs and the loader spell them, links included. Every path exists.
    """
    paths = sysconfig.get_paths()
    roots = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    roots |= {os.path.join(sys.base_exec_prefix, "lib"), *(path for path in sys.path if _is_package_folder(path))}
    roots |= {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"}
    roots |= {"/usr/share/zoneinfo", "/etc/localtime", "/dev/null", "/dev/urandom", "/dev/zero", *extra}
    return tuple(sorted(os.path.abspath(root) for root in roots if os.path.exists(root)))


def _is_package_folder(path: str) -> bool:
    return os.path.basename(path) in ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkServerFacts:
    """Facts that a fork server reads about itself in /proc, while it still sees one."""

    address_bytes: int
    """Address space of the interpreter and its modules."""
    has_own_uids: bool
    """The ids from ``OWN_UIDS`` on exist in its user namespace."""
    has_nobody: bool
    """``NOBODY`` exists in it."""
    counts_own_tasks: bool
    """Its user namespace is new, and the kernel counts a user's processes in each one by itself."""

    @classmethod
    def read(cls, *, has_own_user: bool) -> "ForkServerFacts":
        with open("/proc/self/statm") as handle:
            address_bytes = int(handle.read().split()[0]) * resource.getpagesize()
        version = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
        return cls(
            address_bytes=address_bytes,
            has_own_uids=_are_mapped(OWN_UIDS, _MAX_PIDS),
            has_nobody=_are_mapped(NOBODY, 1),
            counts_own_tasks=has_own_user and version >= _OWN_TASK_COUNTS_SINCE,
        )


def _are_mapped(first: int, count: int) -> bool:
    """Whether uids and gids of this range exist in this user namespace."""
    found = True
    for kind in ("uid", "gid"):
        with open(f"/proc/self/{kind}_map") as handle:
            ranges = [[int(number) for number in line.split()] for line in handle]
        found &= any(start <= first <= start + size - count for start, _, size in ranges)
    return found


class Jail:
    """Confinement prepared once, entered in each child.

    Args:
        features: the optional protections to apply.
        uid_policy: how to change credentials.
        roots: real paths that stay readable.
        facts: of the fork server, which is the process that prepares.
        scratch: where programs may write; None refuses every write.
    """

    def __init__(
        self,
        *,
        features: Collection[str],
        uid_policy: UidPolicy,
        roots: Iterable[str],
        facts: ForkServerFacts,
        scratch: Scratch | None = None,
    ) -> None:
        self.features = frozenset(features)
        self.uid_policy = uid_policy
        self.scratch = scratch
        self._facts = facts
        self._fork_server_pid = os.getpid()
        can_write = scratch is not None
        self.ruleset_fd = _landlock_ruleset(roots, can_write=can_write) if "landlock" in self.features else None
        self._filter = SeccompProgram(can_write=can_write) if "seccomp" in self.features else None

    def enter(self, limits: ProcessLimits) -> None:
        """Confine this process for good.

        Raises:
            OSError: a step failed; the process must then end without running anything.
        """
        uid = self._program_uid()
        if self.scratch is not None:
            self.scratch.enter(
                size_bytes=limits.scratch_bytes,
                num_files=limits.scratch_files,
                uid=os.geteuid() if uid is None else uid,
                gid=os.getegid() if uid is None else uid,
            )
        set_rlimits(
            # The setting is relative to the interpreter's own size, but the kernel's limit is absolute.
            address_bytes=self._facts.address_bytes + limits.memory_bytes,
            cpu_seconds=limits.cpu_seconds,
            open_files=limits.open_files,
            file_bytes=0 if self.scratch is None else limits.scratch_bytes,
            stack_bytes=limits.stack_bytes,
            threads=self._thread_limit(limits, uid),
        )
        _change_credentials(self.uid_policy, uid)
        # After the credentials: a change of uid clears the signal of the parent's end.
        end_with_parent()
        # A fork server that ended before that sends no signal any more. One outside our pid namespace is 0 to us.
        if os.getppid() not in (0, self._fork_server_pid):
            raise ProcessLookupError(errno.ESRCH, "the fork server ended while its child was being confined")
        check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
        # After no_new_privs, which the kernel demands of a process without privileges.
        if self.ruleset_fd is not None:
            restricted = libc.syscall(_LANDLOCK_RESTRICT, ctypes.c_int(self.ruleset_fd), ctypes.c_uint(0))
            check(restricted, "landlock_restrict_self")
            os.close(self.ruleset_fd)
        # Last, because the filter refuses the calls of the steps before it.
        if self._filter is not None:
            self._filter.install()

    def _program_uid(self) -> int | None:
        """Uid and gid of this process's program; None keeps those of the fork server.

        A program with an id of its own shares no kernel account (signals, pipe pages, watches) with
        another one, and its threads can be counted. Pids name it, as they are unique while it runs; with
        a pid namespace it is the fork server's, whose programs see no other ones.
        """
        if self.uid_policy is UidPolicy.SAME_USER:
            return None
        if not self._facts.has_own_uids:
            return NOBODY
        return OWN_UIDS + (os.getpid() if self.scratch is None else self._fork_server_pid)

    def _thread_limit(self, limits: ProcessLimits, uid: int | None) -> int | None:
        """Return the limit on threads of this process's uid, or None if only memory bounds its threads.

        The kernel counts the threads of a whole uid. Programs that share a uid would use up each other's limit. They
        cannot fork in any case.
        """
        if uid not in (None, NOBODY):
            return limits.threads
        return limits.threads + _ZYGOTE_TASKS if self._facts.counts_own_tasks else None


_capset = libc.capset
"""Looked up here, once: the search through every loaded library costs a child more than all its limits."""


def _change_credentials(policy: UidPolicy, uid: int | None) -> None:
    capabilities = 0
    if uid is not None:
        if policy is UidPolicy.OTHER_USER_READING:
            capabilities = 1 << _CAP_DAC_READ_SEARCH
            check(libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0), "PR_SET_KEEPCAPS")
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    sets = struct.pack("=IIIIII", capabilities, capabilities, 0, 0, 0, 0)  # effective, permitted, inheritable
    check(_capset(header, sets), "capset")


def _landlock_ruleset(roots: Iterable[str], *, can_write: bool) -> int:
    abi = landlock_abi()
    governed = _FILE_RIGHTS_BY_ABI.get(abi, _NEWEST_FILE_RIGHTS)
    attributes = struct.pack(
        "=QQQ",
        governed,
        0b11 if abi >= 4 else 0,  # bind and connect TCP
        0b11 if abi >= 6 else 0,  # abstract unix sockets, signals
    )
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = check(libc.syscall(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(size), ctypes.c_uint(0)), "landlock")
    for root in roots:
        _grant(ruleset, root, _ACCESS_READ_FILE | (_ACCESS_READ_DIR if os.path.isdir(root) else 0))
    if can_write:
        _grant(ruleset, SCRATCH_PARENT, _ACCESS_SCRATCH & governed)
        _grant(ruleset, os.devnull, _ACCESS_READ_FILE | _ACCESS_WRITE_FILE)
    return int(ruleset)


def _grant(ruleset: int, path: str, access: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", access, handle)
        arguments = (ctypes.c_int(ruleset), ctypes.c_int(_LANDLOCK_RULE_PATH_BENEATH), rule, ctypes.c_uint(0))
        check(libc.syscall(_LANDLOCK_ADD_RULE, *arguments), f"landlock_add_rule {path}")
    finally:
        os.close(handle)
