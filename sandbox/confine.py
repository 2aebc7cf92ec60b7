"""Confinement of one process, tier 0: rlimits, credentials, no_new_privs, Landlock, seccomp.

A ``Jail`` is prepared once in the zygote and entered once in every child; entering takes a fraction
of a millisecond and cannot be undone. Works without privileges, and inside a default container.
"""

from __future__ import annotations

import ctypes
import enum
import os
import resource
import signal
import struct
import sys
import sysconfig
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from .errors import SandboxConfigError
from .syscalls import build_filter, this_architecture

NOBODY = 65534
"""The kernel's overflow id: mapped in every user namespace, and owner of no file."""
OPTIONAL_FEATURES = ("landlock", "seccomp")
"""Protections that ``allow_missing`` may name."""
_LOST = {
    "landlock": "programs could read every file that this user can read, reference solutions included",
    "seccomp": "programs could start processes, open sockets and send signals",
}

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS = 1, 4, 8
_PR_GET_SECCOMP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 21, 22, 38
_SECCOMP_MODE_FILTER, _SECCOMP_GET_ACTION_AVAIL, _SECCOMP_RET_ERRNO = 2, 2, 0x00050000
_CAP_DAC_READ_SEARCH = 2
_CAPABILITY_VERSION_3 = 0x20080522
# Landlock's three system calls have the same numbers on every architecture.
_LANDLOCK_CREATE, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_RULE_PATH_BENEATH = 1
_ACCESS_EXECUTE, _ACCESS_READ_FILE, _ACCESS_READ_DIR = 1, 4, 8
# Rights the ruleset governs, by ABI version (include/uapi/linux/landlock.h): what is governed and not
# granted is refused. 2 adds REFER, 3 TRUNCATE, 5 IOCTL_DEV; 4 governs TCP, 6 abstract sockets and signals.
_FILE_RIGHTS_BY_ABI = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}
_NEWEST_FILE_RIGHTS = 0xFFFF

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class UidPolicy(enum.StrEnum):
    """How a program's credentials differ from its zygote's, strongest first."""

    OTHER_USER = "other_user"
    OTHER_USER_READING = "other_user_reading"
    SAME_USER = "same_user"


UID_POLICY_MEANINGS = {
    UidPolicy.OTHER_USER: "an unprivileged uid and gid, no groups, no capabilities",
    UidPolicy.OTHER_USER_READING: "an unprivileged uid and gid that keeps CAP_DAC_READ_SEARCH, because the "
    "interpreter lies in a folder closed to others; Landlock decides what can be read",
    UidPolicy.SAME_USER: "the user who runs this, with every capability dropped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """The numbers a zygote needs to start one program; the order is the wire order."""

    memory_bytes: int
    stack_bytes: int
    cpu_seconds: int
    open_files: int

    LAYOUT = struct.Struct("=QQQQ")

    def pack(self) -> bytes:
        return self.LAYOUT.pack(self.memory_bytes, self.stack_bytes, self.cpu_seconds, self.open_files)

    @classmethod
    def unpack(cls, data: bytes) -> ProcessLimits:
        memory_bytes, stack_bytes, cpu_seconds, open_files = cls.LAYOUT.unpack(data)
        return cls(memory_bytes=memory_bytes, stack_bytes=stack_bytes, cpu_seconds=cpu_seconds, open_files=open_files)


def landlock_abi() -> int:
    """Version of the kernel's Landlock interface; 0 without Landlock."""
    return max(0, int(_libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1))))


def has_seccomp() -> bool:
    """True when the kernel takes filters and this architecture has tables."""
    architecture = this_architecture()
    if architecture is None:
        return False
    action = ctypes.c_uint32(_SECCOMP_RET_ERRNO)
    number = ctypes.c_long(architecture.seccomp_number)
    available = _libc.syscall(number, ctypes.c_uint(_SECCOMP_GET_ACTION_AVAIL), ctypes.c_uint(0), ctypes.byref(action))
    return bool(available == 0)


def missing_features() -> tuple[str, ...]:
    """The optional protections that this machine lacks."""
    present = {"landlock": landlock_abi() > 0, "seccomp": has_seccomp()}
    return tuple(name for name in OPTIONAL_FEATURES if not present[name])


def check_features(allow_missing: Collection[str]) -> None:
    """Refuse a machine that lacks a protection which nobody agreed to do without.

    Raises:
        SandboxConfigError: the platform or a protection is missing, or ``allow_missing`` is misspelled.
    """
    if unknown := sorted(set(allow_missing) - set(OPTIONAL_FEATURES)):
        raise SandboxConfigError(f"allow_missing names {unknown}; known: {list(OPTIONAL_FEATURES)}")
    if not sys.platform.startswith("linux"):
        raise SandboxConfigError(f"the sandbox needs Linux, this is {sys.platform}")
    for name in missing_features():
        if name not in allow_missing:
            raise SandboxConfigError(
                f"this kernel ({os.uname().release}, {os.uname().machine}) offers no {name}: without it "
                f"{_LOST[name]}. Run on a kernel that has it, or accept the loss with allow_missing=({name!r},)"
            )


def readable_roots(extra: Iterable[str] = ()) -> tuple[str, ...]:
    """What programs may read: the standard library, installed packages, shared libraries, time zones."""
    paths = sysconfig.get_paths()
    roots = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    roots |= {
        os.path.join(sys.base_exec_prefix, "lib"),
        *(path for path in sys.path if _is_package_folder(path)),
    }
    roots |= {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"}
    roots |= {"/usr/share/zoneinfo", "/etc/localtime", "/dev/null", "/dev/urandom", "/dev/zero", *extra}
    return tuple(sorted(root for root in map(os.path.realpath, roots) if os.path.exists(root)))


def _is_package_folder(path: str) -> bool:
    return os.path.basename(path) in ("site-packages", "dist-packages")


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends. Credential changes undo it; call it after them."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "PR_SET_PDEATHSIG")


def forbid_inspection() -> None:
    """Make this process's memory and /proc entries unreadable for its own user, forks included."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "PR_SET_DUMPABLE")


class Jail:
    """Confinement prepared once, entered in each child.

    Args:
        features: the optional protections to apply.
        uid_policy: how to change credentials.
        roots: paths that stay readable.
    """

    def __init__(self, *, features: Collection[str], uid_policy: UidPolicy, roots: Iterable[str]) -> None:
        self.features = frozenset(features)
        self.uid_policy = uid_policy
        self.ruleset_fd = _landlock_ruleset(roots) if "landlock" in self.features else None
        self._filter = _SeccompProgram() if "seccomp" in self.features else None
        # Address space limits are absolute, the setting is relative to the interpreter's own size.
        with open("/proc/self/statm") as handle:
            self._base_bytes = int(handle.read().split()[0]) * resource.getpagesize()

    def enter(self, limits: ProcessLimits) -> None:
        """Confine this process for good.

        Raises:
            OSError: a step failed; the process must then end without running anything.
        """
        self._set_rlimits(limits)
        _change_credentials(self.uid_policy)
        end_with_parent()
        _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
        if self.ruleset_fd is not None:
            restricted = _libc.syscall(_LANDLOCK_RESTRICT, ctypes.c_int(self.ruleset_fd), ctypes.c_uint(0))
            _check(restricted, "landlock_restrict_self")
            os.close(self.ruleset_fd)
        if self._filter is not None:
            self._filter.install()

    def _set_rlimits(self, limits: ProcessLimits) -> None:
        memory = self._base_bytes + limits.memory_bytes
        _lower(resource.RLIMIT_AS, memory, memory)
        _lower(resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1)
        _lower(resource.RLIMIT_NOFILE, limits.open_files, limits.open_files)
        _lower(resource.RLIMIT_FSIZE, 0, 0)
        _lower(resource.RLIMIT_CORE, 0, 0)
        # The hard limit stays: programs raise their own stack for deep recursion. No RLIMIT_NPROC: it
        # counts a whole uid, so programs would fail one another; fork is refused, memory bounds threads.
        _, hard = resource.getrlimit(resource.RLIMIT_STACK)
        _lower(resource.RLIMIT_STACK, limits.stack_bytes, hard)


def _lower(which: int, soft: int, hard: int) -> None:
    _, ceiling = resource.getrlimit(which)
    if ceiling != resource.RLIM_INFINITY:
        hard = ceiling if hard == resource.RLIM_INFINITY else min(hard, ceiling)
    soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(which, (soft, hard))


def _change_credentials(policy: UidPolicy) -> None:
    capabilities = 0
    if policy is not UidPolicy.SAME_USER:
        if policy is UidPolicy.OTHER_USER_READING:
            capabilities = 1 << _CAP_DAC_READ_SEARCH
            _check(_libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0), "PR_SET_KEEPCAPS")
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    sets = struct.pack("=IIIIII", capabilities, capabilities, 0, 0, 0, 0)  # effective, permitted, inheritable
    _check(_libc.capset(header, sets), "capset")


def _landlock_ruleset(roots: Iterable[str]) -> int:
    abi = landlock_abi()
    attributes = struct.pack(
        "=QQQ",
        _FILE_RIGHTS_BY_ABI.get(abi, _NEWEST_FILE_RIGHTS),
        0b11 if abi >= 4 else 0,  # bind and connect TCP
        0b11 if abi >= 6 else 0,  # abstract unix sockets, signals
    )
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = _libc.syscall(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(size), ctypes.c_uint(0))
    _check(ruleset, "landlock_create_ruleset")
    for root in roots:
        handle = os.open(root, os.O_PATH | os.O_CLOEXEC)
        try:
            access = _ACCESS_READ_FILE | (_ACCESS_READ_DIR if os.path.isdir(root) else 0)
            rule = struct.pack("=Qi", access, handle)
            added = _libc.syscall(
                _LANDLOCK_ADD_RULE,
                ctypes.c_int(ruleset),
                ctypes.c_int(_LANDLOCK_RULE_PATH_BENEATH),
                rule,
                ctypes.c_uint(0),
            )
            _check(added, f"landlock_add_rule {root}")
        finally:
            os.close(handle)
    return int(ruleset)


class _SeccompProgram:
    """``struct sock_fprog`` kept alive for every child."""

    class _Header(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    def __init__(self) -> None:
        architecture = this_architecture()
        assert architecture is not None, "has_seccomp() was not asked"
        code = build_filter(architecture)
        self._code = ctypes.create_string_buffer(code, len(code))
        self._header = self._Header(len(code) // 8, ctypes.addressof(self._code))

    def install(self) -> None:
        installed = _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(self._header), 0, 0)
        _check(installed, "PR_SET_SECCOMP")


def _check(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
