"""Confines one process by rlimits, credentials, no_new_privs, Landlock and seccomp.

The fork server prepares a ``Jail`` once, and each of its children enters the jail. Entering a jail takes a fraction of
a millisecond and cannot be undone. A jail needs no privileges and works inside a default container. Tier 0 is this jail
alone. Tier 1 adds namespaces around it and a scratch folder for each program.
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
from dataclasses import astuple, dataclass

from ..errors import SandboxConfigError
from .libc import check, end_with_parent, libc
from .namespaces import NOBODY, SCRATCH_PARENT, Scratch
from .rlimits import set_rlimits
from .seccomp import SeccompProgram, has_seccomp

OWN_UIDS = 0x70000000
"""Lowest uid and gid of a program. A program's id is this number plus a pid. No distribution gives ids of this range
to users, services or containers."""
_MAX_PIDS = 1 << 22
_OWN_TASK_COUNTS_SINCE = (5, 14)
"""First kernel version that counts a user's processes separately in each user namespace."""
_ZYGOTE_TASKS = 2
"""Number of further processes with a program's uid in a user namespace of the sandbox: the fork server and the init."""
OPTIONAL_FEATURES = ("landlock", "seccomp")
"""Protections that ``allow_missing`` may name."""
_LOST = {
    "landlock": "programs could read every file that this user can read, reference solutions included (at tier 1 they "
    "still find only the readable paths)",
    "seccomp": "programs could start processes, open sockets and send signals",
}

_PR_SET_KEEPCAPS, _PR_SET_NO_NEW_PRIVS = 8, 38
_CAP_DAC_READ_SEARCH = 2
_CAPABILITY_VERSION_3 = 0x20080522
# Landlock's three system calls have the same numbers on every architecture.
_LANDLOCK_CREATE, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_RULE_PATH_BENEATH = 1
_ACCESS_WRITE_FILE, _ACCESS_READ_FILE, _ACCESS_READ_DIR = 2, 4, 8
# All rights except EXECUTE (bit 0), MAKE_CHAR, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK (6, 9, 10, 11) and IOCTL_DEV (15).
_ACCESS_SCRATCH = 0x71BE
# File rights that the ruleset governs, by ABI version (include/uapi/linux/landlock.h). The kernel refuses a governed
# right that no rule grants. Version 2 adds the right REFER, version 3 TRUNCATE, version 5 IOCTL_DEV. Version 4 can also
# govern TCP, and version 6 abstract sockets and signals.
_FILE_RIGHTS_BY_ABI = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}
_NEWEST_FILE_RIGHTS = 0xFFFF


class UidPolicy(enum.StrEnum):
    """Says how a program's credentials differ from the fork server's. The strongest policy comes first."""

    OTHER_USER = "other_user"
    OTHER_USER_READING = "other_user_reading"
    SAME_USER = "same_user"


UID_POLICY_MEANINGS = {
    UidPolicy.OTHER_USER: "each program has an unprivileged uid and gid of its own, no groups and no capabilities",
    UidPolicy.OTHER_USER_READING: "each program has an unprivileged uid and gid of its own, and keeps "
    "CAP_DAC_READ_SEARCH because other users cannot read the interpreter's folder; Landlock decides what it can read",
    UidPolicy.SAME_USER: "programs have the uid of the user who runs the sandbox, and no capabilities",
}


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of one program, in the order in which the fork server receives them."""

    memory_bytes: int
    stack_bytes: int
    cpu_seconds: int
    open_files: int
    threads: int
    scratch_bytes: int
    scratch_files: int

    LAYOUT = struct.Struct("=QQQQQQQ")

    def pack(self) -> bytes:
        return self.LAYOUT.pack(*astuple(self))

    @classmethod
    def unpack(cls, data: bytes) -> "ProcessLimits":
        return cls(*cls.LAYOUT.unpack(data))


def landlock_abi() -> int:
    """Return the version of the kernel's Landlock interface, or 0 without Landlock."""
    return max(0, int(libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1))))


def missing_features() -> tuple[str, ...]:
    """Return the optional protections that this machine lacks."""
    present = {"landlock": landlock_abi() > 0, "seccomp": has_seccomp()}
    return tuple(name for name in OPTIONAL_FEATURES if not present[name])


def reason_missing(name: str) -> str:
    """Say that this kernel lacks a protection, and what programs could then do."""
    return f"this kernel ({os.uname().release}, {os.uname().machine}) offers no {name}: without it {_LOST[name]}"


def check_features(allow_missing: Collection[str]) -> None:
    """Raise an error if this machine lacks a protection that ``allow_missing`` does not name.

    Raises:
        SandboxConfigError: this is not Linux, a protection is missing, or ``allow_missing`` has an unknown name.
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
    """Return a sorted list of paths that programs may read: standard library, packages, shared libraries, time zones.

    Every path exists. Symbolic links are not resolved, because programs and the loader open files by the names of the
    links.
    """
    installed = sysconfig.get_paths()
    roots = {installed[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    roots |= {path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")}
    roots |= {os.path.join(sys.base_exec_prefix, "lib"), "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"}
    roots |= {"/etc/ld.so.cache", "/usr/share/zoneinfo", "/etc/localtime"}
    roots |= {"/dev/null", "/dev/urandom", "/dev/zero", *extra}
    return tuple(sorted(map(os.path.abspath, filter(os.path.exists, roots))))


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkServerFacts:
    """Facts that a fork server reads about itself in /proc, before it enters a root without /proc."""

    address_bytes: int
    """Address space of the interpreter and its modules, in bytes."""
    has_own_uids: bool
    """True if the ids from ``OWN_UIDS`` on exist in the fork server's user namespace."""
    has_nobody: bool
    """True if ``NOBODY`` exists in the fork server's user namespace."""
    counts_own_tasks: bool
    """True if the sandbox made the user namespace, and the kernel counts the processes in this namespace separately."""

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
    """Return True if ``count`` uids and gids from ``first`` on exist in this user namespace."""
    for kind in ("uid", "gid"):
        with open(f"/proc/self/{kind}_map") as handle:
            ranges = [map(int, line.split()) for line in handle]
        if not any(start <= first <= start + size - count for start, _, size in ranges):
            return False
    return True


class Jail:
    """A confinement that the fork server prepares and each child enters.

    Args:
        features: optional protections to apply.
        uid_policy: change of credentials.
        roots: real paths that programs may read.
        facts: facts about the fork server, which is this process.
        scratch: folder in which programs may write. None refuses every write.
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
            OSError: a step failed. The process must then end without running the program.
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
            # ``memory_bytes`` leaves out the interpreter's own size, but the kernel's limit includes it.
            address_bytes=self._facts.address_bytes + limits.memory_bytes,
            cpu_seconds=limits.cpu_seconds,
            open_files=limits.open_files,
            file_bytes=0 if self.scratch is None else limits.scratch_bytes,
            stack_bytes=limits.stack_bytes,
            threads=self._thread_limit(limits, uid),
        )
        _change_credentials(self.uid_policy, uid)
        # This setting comes after the change of credentials, which would clear it.
        end_with_parent()
        # If the fork server ended before this setting, the kernel sends no signal. ``getppid`` is 0 here if the parent
        # is outside of our pid namespace.
        if os.getppid() not in (0, self._fork_server_pid):
            raise ProcessLookupError(errno.ESRCH, "the fork server ended while its child was being confined")
        check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
        # Landlock comes after no_new_privs, which the kernel requires of a process without privileges.
        if self.ruleset_fd is not None:
            restricted = libc.syscall(_LANDLOCK_RESTRICT, ctypes.c_int(self.ruleset_fd), ctypes.c_uint(0))
            check(restricted, "landlock_restrict_self")
            os.close(self.ruleset_fd)
        # The filter comes last, because it refuses the system calls of the earlier steps.
        if self._filter is not None:
            self._filter.install()

    def _program_uid(self) -> int | None:
        """Return the number that becomes the program's uid and gid, or None to keep the ids of the fork server.

        A program with its own id shares no kernel quota (signals, pipe pages, watches) with other programs, and the
        kernel can count its threads. The number contains a pid, because a pid is unique while its process runs. With a
        scratch folder, this process is in a pid namespace, where its own pid is not unique on the machine. So with a
        scratch folder, the number contains the fork server's pid.
        """
        if self.uid_policy is UidPolicy.SAME_USER:
            return None
        if not self._facts.has_own_uids:
            return NOBODY
        return OWN_UIDS + (os.getpid() if self.scratch is None else self._fork_server_pid)

    def _thread_limit(self, limits: ProcessLimits, uid: int | None) -> int | None:
        """Return the limit on threads of this process's uid, or None if only memory bounds its threads.

        The kernel counts the threads of a uid. So programs that share a uid would use up each other's limit. Even
        without this limit, a program cannot start processes.
        """
        if uid not in (None, NOBODY):
            return limits.threads
        return limits.threads + _ZYGOTE_TASKS if self._facts.counts_own_tasks else None


_capset = libc.capset
"""The function is looked up only once, because a search through all loaded libraries takes longer than setting a
child's limits."""


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
    # An older kernel knows a shorter structure, but accepts a longer one if the additional bytes are zero.
    size = ctypes.c_size_t(len(attributes))
    ruleset = check(libc.syscall(_LANDLOCK_CREATE, attributes, size, ctypes.c_uint(0)), "landlock")
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
