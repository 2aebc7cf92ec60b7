"""The seccomp filter: which system calls a program may make, as classic BPF.

Every call that ``syscalls`` does not name answers EPERM. The layout of the program stands in
``include/uapi/linux/filter.h`` and ``seccomp.h``.
"""

import ctypes
import errno
import platform
import struct
from dataclasses import dataclass

from .libc import check, libc
from .syscalls import ALLOWED, ALLOWED_WRITING, CHECKED, UNSUPPORTED_WRITING

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERRNO = 0x00050000
# Operations of classic BPF (include/uapi/linux/bpf_common.h).
_LOAD = 0x20
_JUMP = 0x05
_JUMP_EQUAL = 0x15
_JUMP_GREATER = 0x25
_JUMP_SET = 0x45
_AND = 0x54
_RETURN = 0x06
_MAX_JUMP = 255
"""Longest conditional jump, in instructions."""
# Offsets in ``struct seccomp_data``.
_OFFSET_NUMBER = 0
_OFFSET_ARCH = 4
_OFFSET_ARGS = 16
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_SECCOMP_GET_ACTION_AVAIL = 2
_CLONE_THREAD = 0x00010000
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
_CLONE_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
# O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | __O_TMPFILE; equal on both architectures.
_WRITING_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000 | 0o20000000
_AF_UNIX = 1
_RLIMIT_STACK = 3
# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC. Not F_SETOWN: it aims signals.
_FCNTL_COMMANDS = (0, 1, 2, 3, 4, 1030)
# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX.
_IOCTL_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# The machine's clocks and its own; other numbers are clocks of processes by pid.
_OWN_CLOCKS = (2, 3, 0, 1, 4, 5, 6, 7, 8, 9, 11)
_CHECKED_VALUES = {  # which argument must be one of which values, and the answer otherwise
    "fcntl": (1, _FCNTL_COMMANDS, errno.EPERM),
    "ioctl": (1, _IOCTL_REQUESTS, errno.ENOTTY),
    "socketpair": (0, (_AF_UNIX,), errno.EPERM),
    "prctl": (0, (15, 16), errno.EPERM),  # PR_SET_NAME and GET_NAME; not PDEATHSIG: programs die with their fork server
    "clock_gettime": (0, _OWN_CLOCKS, errno.EPERM),
    "clock_nanosleep": (0, _OWN_CLOCKS, errno.EPERM),
    "clock_getres": (0, _OWN_CLOCKS, errno.EPERM),
    "setsockopt": (2, (7, 8), errno.EPERM),  # SO_SNDBUF, SO_RCVBUF; not SO_ATTACH_FILTER
    "getsockopt": (2, (3, 4, 7, 8, 30, 38, 39), errno.EPERM),  # SO_TYPE, ERROR...; not PEERCRED, PEERPIDFD
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One architecture's column of the tables."""

    column: int
    audit_number: int
    """AUDIT_ARCH_*, as the filter sees it."""
    seccomp_number: int
    """The seccomp system call itself."""
    highest_number: int
    """Numbers above belong to another calling convention (x32)."""


ARCHITECTURES = {
    "x86_64": Architecture(
        column=0,
        audit_number=0xC000003E,
        seccomp_number=317,
        highest_number=0x3FFFFFFF,
    ),
    "aarch64": Architecture(
        column=1,
        audit_number=0xC00000B7,
        seccomp_number=277,
        highest_number=0xFFFFFFFE,
    ),
}


def this_architecture() -> Architecture | None:
    """The running machine's tables, or None where the filter has none."""
    return ARCHITECTURES.get({"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine(), platform.machine()))


_Instruction = tuple[int, int, int, int]


def build_filter(architecture: Architecture, *, can_write: bool = False) -> bytes:
    """The filter as an array of ``struct sock_filter``.

    A call of a foreign architecture or calling convention kills the process; one that is not allowed
    answers EPERM, or EACCES when it would open a file for writing.

    Args:
        can_write: allow what writing files takes, for programs with a scratch folder.
    """
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _OFFSET_ARCH),
        (_JUMP_EQUAL, 1, 0, architecture.audit_number),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _OFFSET_NUMBER),
        # x32 calls have the same audit number and other meanings, hence a bound on numbers.
        (_JUMP_GREATER, 0, 1, architecture.highest_number),
        (_RETURN, 0, 0, _KILL),
    ]
    blocks = {name: (numbers, [(_RETURN, 0, 0, _ALLOW)]) for name, numbers in ALLOWED.items()}
    blocks |= {name: (numbers, _argument_rules(name)) for name, numbers in CHECKED.items()}
    if can_write:
        blocks |= {name: (numbers, [(_RETURN, 0, 0, _ALLOW)]) for name, numbers in ALLOWED_WRITING.items()}
        blocks |= {name: (numbers, [_deny(errno.ENOTSUP)]) for name, numbers in UNSUPPORTED_WRITING.items()}
    # Blocks and not names from here on: neighbours with one answer become one range.
    by_number = {numbers[architecture.column]: block for numbers, block in blocks.values()}
    program += _search(_ranges({number: block for number, block in by_number.items() if number is not None}))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _ranges(blocks: dict[int, list[_Instruction]]) -> list[tuple[int, list[_Instruction]]]:
    """``(first number, block)`` of each run of numbers with one block, in order; EPERM for those without."""
    denied = [_deny(errno.EPERM)]
    ranges: list[tuple[int, list[_Instruction]]] = [(0, denied)]
    for number in sorted({0, *blocks, *(number + 1 for number in blocks)}):
        block = blocks.get(number, denied)
        if block != ranges[-1][1]:
            ranges.append((number, block))
    return ranges if ranges[1:] and ranges[1][0] > 0 else ranges[1:]


def _search(ranges: list[tuple[int, list[_Instruction]]]) -> list[_Instruction]:
    """A binary search for the number's block. Every block returns.

    Not one comparison after another: at each installation the kernel runs the filter for every number
    there is, to know those that are always allowed, and every child installs it.
    """
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, above = _search(ranges[:middle]), _search(ranges[middle:])
    first = ranges[middle][0]
    if len(below) <= _MAX_JUMP:
        return [(_JUMP_GREATER, len(below), 0, first - 1), *below, *above]
    return [(_JUMP_GREATER, 0, 1, first - 1), (_JUMP, 0, 0, len(below)), *below, *above]


def _deny(code: int) -> _Instruction:
    return (_RETURN, 0, 0, _ERRNO | code)


def _argument(index: int, *, high: bool = False) -> _Instruction:
    return (_LOAD, 0, 0, _OFFSET_ARGS + 8 * index + (4 if high else 0))


def _one_of(index: int, values: tuple[int, ...], otherwise: int) -> list[_Instruction]:
    """Allow when the low 32 bits of an argument are one of ``values``; the kernel reads an int there."""
    tests = [(_JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_argument(index), *tests, _deny(otherwise), (_RETURN, 0, 0, _ALLOW)]


def _argument_rules(name: str) -> list[_Instruction]:
    allow, refuse = (_RETURN, 0, 0, _ALLOW), _deny(errno.EPERM)
    if name in ("open", "openat"):
        flags = _argument(1 if name == "open" else 2)
        return [flags, (_AND, 0, 0, _WRITING_FLAGS), (_JUMP_EQUAL, 0, 1, 0), allow, _deny(errno.EACCES)]
    if name == "clone":  # threads, not processes, in the namespaces they are in
        return [_argument(0), (_JUMP_SET, 0, 2, _CLONE_THREAD), (_JUMP_SET, 1, 0, _CLONE_NAMESPACES), allow, refuse]
    if name == "clone3":  # its flags are behind a pointer; the C library then falls back to clone
        return [_deny(errno.ENOSYS)]
    if name in _CHECKED_VALUES:
        return _one_of(*_CHECKED_VALUES[name])
    if name == "prlimit64":
        # Its own limits: any may be read; only the stack's may be set, which programs do for deep recursion.
        # Not the CPU time's: the kernel's SIGKILL at its end would look like somebody else's.
        return [
            _argument(0),
            (_JUMP_EQUAL, 0, 6, 0),
            _argument(1),
            (_JUMP_EQUAL, 5, 0, _RLIMIT_STACK),
            _argument(2),
            (_JUMP_EQUAL, 0, 2, 0),
            _argument(2, high=True),
            (_JUMP_EQUAL, 1, 0, 0),
            refuse,
            allow,
        ]
    if name == "sendto":  # to the connected end only: no address
        return [_argument(4), (_JUMP_EQUAL, 0, 3, 0), _argument(4, high=True), (_JUMP_EQUAL, 0, 1, 0), allow, refuse]
    raise AssertionError(f"no argument rule for {name}")


def has_seccomp() -> bool:
    """True when the kernel takes filters and this architecture has tables."""
    architecture = this_architecture()
    if architecture is None:
        return False
    action = ctypes.c_uint32(_ERRNO)
    number = ctypes.c_long(architecture.seccomp_number)
    available = libc.syscall(number, ctypes.c_uint(_SECCOMP_GET_ACTION_AVAIL), ctypes.c_uint(0), ctypes.byref(action))
    return bool(available == 0)


class SeccompProgram:
    """The filter as the kernel takes it, ``struct sock_fprog``, kept alive for every child."""

    class _Header(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    def __init__(self, *, can_write: bool) -> None:
        architecture = this_architecture()
        assert architecture is not None, "has_seccomp() was not asked"
        code = build_filter(architecture, can_write=can_write)
        self._code = ctypes.create_string_buffer(code, len(code))
        self._header = self._Header(len(code) // 8, ctypes.addressof(self._code))

    def install(self) -> None:
        installed = libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(self._header), 0, 0)
        check(installed, "PR_SET_SECCOMP")
