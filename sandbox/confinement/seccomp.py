"""The seccomp filter, written in classic BPF. The filter decides which system calls a sandboxed program may make.

A call that ``syscalls`` does not name fails with EPERM. Sources: ``include/uapi/linux/filter.h`` and ``seccomp.h`` of
the kernel.
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
# O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | __O_TMPFILE. They are the same on both architectures.
_WRITING_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000 | 0o20000000
_AF_UNIX = 1
_RLIMIT_STACK = 3
# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC. F_SETOWN is refused: it chooses who gets signals.
_FCNTL_COMMANDS = (0, 1, 2, 3, 4, 1030)
# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX.
_IOCTL_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# Numbers of the machine's clocks and the program's own clocks. Other numbers name clocks of other processes.
_OWN_CLOCKS = (2, 3, 0, 1, 4, 5, 6, 7, 8, 9, 11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Numbers of one architecture."""

    column: int
    """Position of this architecture in each pair of ``syscalls``."""
    audit_number: int
    """The kernel's AUDIT_ARCH_* number, which the filter sees."""
    seccomp_number: int
    """Number of the system call ``seccomp`` itself."""
    highest_number: int
    """Highest system call number. Higher numbers belong to another calling convention (x32)."""


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
    """Return this machine's architecture, or None if the tables do not cover it."""
    return ARCHITECTURES.get(platform.machine())


_Instruction = tuple[int, int, int, int]
"""An operation, two numbers and an operand. If the condition of a jump holds, the first number says how many
instructions are skipped; otherwise, the second number says it."""
_ACCEPT: _Instruction = (_RETURN, 0, 0, _ALLOW)


def _deny(code: int) -> _Instruction:
    return (_RETURN, 0, 0, _ERRNO | code)


_REFUSE = _deny(errno.EPERM)


def build_filter(architecture: Architecture, *, can_write: bool = False) -> bytes:
    """Build the filter as an array of ``struct sock_filter``.

    A call of another architecture or calling convention kills the process. A call that is not allowed fails with EPERM,
    or with EACCES if it would open a file for writing.

    Args:
        architecture: architecture of the calls.
        can_write: True also allows calls that write files, for programs with a scratch folder.
    """
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _OFFSET_ARCH),
        (_JUMP_EQUAL, 1, 0, architecture.audit_number),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _OFFSET_NUMBER),
        # x32 calls have the same audit number as x86-64 calls, but other meanings. The numbers of x32 calls are higher.
        (_JUMP_GREATER, 0, 1, architecture.highest_number),
        (_RETURN, 0, 0, _KILL),
    ]
    blocks = {name: [_ACCEPT] for name in ALLOWED} | _ARGUMENT_RULES
    if can_write:
        # The next line replaces the rules on the arguments of ``open`` and ``openat``.
        blocks |= {name: [_ACCEPT] for name in ALLOWED_WRITING}
        blocks |= {name: [_deny(errno.ENOTSUP)] for name in UNSUPPORTED_WRITING}
    by_number = {}
    for name, block in blocks.items():
        number = _NUMBERS[name][architecture.column]
        if number is not None:
            by_number[number] = block
    program += _search(_ranges(by_number))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _ranges(blocks: dict[int, list[_Instruction]]) -> list[tuple[int, list[_Instruction]]]:
    """Join neighbouring numbers that have equal blocks. Return the first number and the block of each range, in order.

    A number without a block gets a refusal.
    """
    may_begin_range = {0, *blocks} | {number + 1 for number in blocks}
    ranges: list[tuple[int, list[_Instruction]]] = []
    for number in sorted(may_begin_range):
        block = blocks.get(number, [_REFUSE])
        if not ranges or block != ranges[-1][1]:
            ranges.append((number, block))
    return ranges


def _search(ranges: list[tuple[int, list[_Instruction]]]) -> list[_Instruction]:
    """Build a binary search that jumps to the block of a call's number. Every block ends with a return.

    A binary search is faster than a chain of comparisons. Speed matters, because every child installs the filter. At
    each installation, the kernel runs the filter for every system call number, to find the calls that are always
    allowed.
    """
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, above = _search(ranges[:middle]), _search(ranges[middle:])
    first = ranges[middle][0]
    jumps = [(_JUMP_GREATER, len(below), 0, first - 1)]
    if len(below) > _MAX_JUMP:
        jumps = [(_JUMP_GREATER, 0, 1, first - 1), (_JUMP, 0, 0, len(below))]
    return [*jumps, *below, *above]


def _argument(index: int, *, high: bool = False) -> _Instruction:
    return (_LOAD, 0, 0, _OFFSET_ARGS + 8 * index + (4 if high else 0))


def _one_of(index: int, *values: int, otherwise: int = errno.EPERM) -> list[_Instruction]:
    """Allow a call if an argument is one of ``values``. Only the low 32 bits of the argument count, because the kernel
    reads an int."""
    # A test that finds an equal value jumps over the remaining tests and the refusal.
    tests = [(_JUMP_EQUAL, len(values) - number, 0, value) for number, value in enumerate(values)]
    return [_argument(index), *tests, _deny(otherwise), _ACCEPT]


def _read_only(flags: int) -> list[_Instruction]:
    """Allow a call that opens a file for reading and not for writing. ``flags`` is the position of the argument with
    the flags."""
    return [
        _argument(flags),
        (_AND, 0, 0, _WRITING_FLAGS),
        (_JUMP_EQUAL, 0, 1, 0),
        _ACCEPT,
        _deny(errno.EACCES),
    ]


_ARGUMENT_RULES: dict[str, list[_Instruction]] = {
    "open": _read_only(1),
    "openat": _read_only(2),
    # A program may start threads, but no processes and no namespaces.
    "clone": [
        _argument(0),
        (_JUMP_SET, 0, 2, _CLONE_THREAD),
        (_JUMP_SET, 1, 0, _CLONE_NAMESPACES),
        _ACCEPT,
        _REFUSE,
    ],
    # The flags of clone3 lie behind a pointer, which a filter cannot follow. After ENOSYS the C library calls clone.
    "clone3": [_deny(errno.ENOSYS)],
    # A program may read all of its own limits. The only limit that a program may set is the one on its stack; some
    # programs set it for deep recursion. If a program could lower its limit on CPU time, the kernel would kill it with
    # SIGKILL at that limit, and the judge would take this for a kill by somebody else.
    "prlimit64": [
        _argument(0),
        (_JUMP_EQUAL, 0, 6, 0),
        _argument(1),
        (_JUMP_EQUAL, 5, 0, _RLIMIT_STACK),
        _argument(2),
        (_JUMP_EQUAL, 0, 2, 0),
        _argument(2, high=True),
        (_JUMP_EQUAL, 1, 0, 0),
        _REFUSE,
        _ACCEPT,
    ],
    # A program may send only without an address, that is, to the other end of its own connection.
    "sendto": [
        _argument(4),
        (_JUMP_EQUAL, 0, 3, 0),
        _argument(4, high=True),
        (_JUMP_EQUAL, 0, 1, 0),
        _ACCEPT,
        _REFUSE,
    ],
    "fcntl": _one_of(1, *_FCNTL_COMMANDS),
    "ioctl": _one_of(1, *_IOCTL_REQUESTS, otherwise=errno.ENOTTY),
    "socketpair": _one_of(0, _AF_UNIX),
    # PR_SET_NAME and PR_GET_NAME. PR_SET_PDEATHSIG is refused, because programs must end with their fork server.
    "prctl": _one_of(0, 15, 16),
    "clock_gettime": _one_of(0, *_OWN_CLOCKS),
    "clock_nanosleep": _one_of(0, *_OWN_CLOCKS),
    "clock_getres": _one_of(0, *_OWN_CLOCKS),
    # SO_SNDBUF and SO_RCVBUF. SO_ATTACH_FILTER is refused.
    "setsockopt": _one_of(2, 7, 8),
    # SO_TYPE, SO_ERROR and others that tell nothing about other processes. SO_PEERCRED and SO_PEERPIDFD are refused.
    "getsockopt": _one_of(2, 3, 4, 7, 8, 30, 38, 39),
}
_NUMBERS = ALLOWED | ALLOWED_WRITING | UNSUPPORTED_WRITING | CHECKED


def has_seccomp() -> bool:
    """Return True if the kernel accepts filters and the tables cover this architecture."""
    architecture = this_architecture()
    if architecture is None:
        return False
    action = ctypes.c_uint32(_ERRNO)
    number = ctypes.c_long(architecture.seccomp_number)
    available = libc.syscall(number, ctypes.c_uint(_SECCOMP_GET_ACTION_AVAIL), ctypes.c_uint(0), ctypes.byref(action))
    return bool(available == 0)


class SeccompProgram:
    """The filter as the kernel's ``struct sock_fprog``. The fork server builds it once, and every child installs it."""

    class _Header(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    def __init__(self, *, can_write: bool) -> None:
        architecture = this_architecture()
        assert architecture is not None, "call has_seccomp() first"
        code = build_filter(architecture, can_write=can_write)
        self._code = ctypes.create_string_buffer(code, len(code))
        self._header = self._Header(len(code) // 8, ctypes.addressof(self._code))

    def install(self) -> None:
        """Install the filter in this process for good.

        Raises:
            OSError: the kernel refused the filter.
        """
        installed = libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(self._header), 0, 0)
        check(installed, "PR_SET_SECCOMP")
