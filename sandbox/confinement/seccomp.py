"""The seccomp filter: which system calls a program may make, as classic BPF.

The numbers are a table of ours and not libseccomp's, measured: the table becomes a filter in 0.14 ms,
libseccomp takes 0.26 ms for the same names without any rule on arguments, both once in a fork server. So
speed decides nothing, but the library is a system package that pip cannot install, and one
that is older than the kernel does not know its newest calls (2.5.4 has no ``fchmodat2``). What a library
would protect from, a wrong number, a test does: it compares every number of both architectures with the
kernel's headers and with libseccomp where they are installed. ``python tests/unit/sandbox/libseccomp.py``
prints the comparison.

Everything not named here answers EPERM. Program layout: ``include/uapi/linux/filter.h``, ``seccomp.h``.
"""

import ctypes
import errno
import platform
import struct
from dataclasses import dataclass

from .libc import check, libc

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERRNO = 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_SET, _AND, _RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
_JUMP, _JUMP_GREATER = 0x05, 0x25
_MAX_JUMP = 255
"""Of a conditional jump, in instructions."""
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARGS = 0, 4, 16
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, _SECCOMP_GET_ACTION_AVAIL = 22, 2, 2
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
_CHECKED_VALUES = {  # which argument must be one of which values, and the answer otherwise
    "fcntl": (1, _FCNTL_COMMANDS, errno.EPERM),
    "ioctl": (1, _IOCTL_REQUESTS, errno.ENOTTY),
    "socketpair": (0, (_AF_UNIX,), errno.EPERM),
    "prctl": (0, (15, 16), errno.EPERM),  # PR_SET_NAME and GET_NAME; not PDEATHSIG: programs die with their fork server
    **dict.fromkeys(
        ("clock_gettime", "clock_nanosleep", "clock_getres"),  # its own; other numbers are of processes by pid
        (0, (2, 3, 0, 1, 4, 5, 6, 7, 8, 9, 11), errno.EPERM),
    ),
    "setsockopt": (2, (7, 8), errno.EPERM),  # SO_SNDBUF, SO_RCVBUF; not SO_ATTACH_FILTER
    "getsockopt": (2, (3, 4, 7, 8, 30, 38, 39), errno.EPERM),  # SO_TYPE, ERROR...; not PEERCRED, PEERPIDFD
}

# name: (x86-64, aarch64); None where the architecture has no such call. Hot ones first.
ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "write": (1, 64), "futex": (202, 98), "mmap": (9, 222), "munmap": (11, 215),
    "brk": (12, 214), "madvise": (28, 233), "mremap": (25, 216), "mprotect": (10, 226),
    "lseek": (8, 62), "close": (3, 57), "fstat": (5, 80),
    "newfstatat": (262, 79), "stat": (4, None), "lstat": (6, None), "statx": (332, 291),
    "getdents64": (217, 61), "readlink": (89, None), "readlinkat": (267, 78), "access": (21, None),
    "faccessat": (269, 48), "faccessat2": (439, 439), "getcwd": (79, 17), "pread64": (17, 67),
    "readv": (19, 65), "writev": (20, 66), "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24),
    "pipe": (22, None), "pipe2": (293, 59), "eventfd2": (290, 19), "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21), "epoll_wait": (232, None), "epoll_pwait": (281, 22), "epoll_pwait2": (441, 441),
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "recvfrom": (45, 207), "shutdown": (48, 210), "getsockname": (51, 204), "getpeername": (52, 205),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "rt_sigtimedwait": (128, 137), "sigaltstack": (131, 132), "pause": (34, None),
    "alarm": (37, None), "setitimer": (38, 103), "getitimer": (36, 102), "nanosleep": (35, 101),
    "gettimeofday": (96, 169), "time": (201, None),
    "times": (100, 153), "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "getcpu": (309, 168),
    "set_robust_list": (273, 99), "set_tid_address": (218, 96), "rseq": (334, 293), "membarrier": (324, 283),
    "restart_syscall": (219, 128), "exit": (60, 93), "exit_group": (231, 94), "getrandom": (318, 278),
    "getpid": (39, 172), "gettid": (186, 178), "getppid": (110, 173), "getpgrp": (111, None),
    "getpgid": (121, 155), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176),
    "getegid": (108, 177), "getgroups": (115, 158), "getresuid": (118, 148), "getresgid": (120, 150),
    "uname": (63, 160), "sysinfo": (99, 179), "getrusage": (98, 165), "getrlimit": (97, 163),
    "umask": (95, 166), "wait4": (61, 260), "waitid": (247, 95),
}  # fmt: skip
# Allowed beside these where a program has a scratch folder; Landlock and read-only mounts say where. No locks:
# they would reach the files of the library, which all programs share.
ALLOWED_WRITING: dict[str, tuple[int | None, int | None]] = {
    "openat": (257, 56), "open": (2, None), "creat": (85, None), "unlink": (87, None), "unlinkat": (263, 35),
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "mkdir": (83, None), "mkdirat": (258, 34),
    "rmdir": (84, None), "link": (86, None), "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36),
    "truncate": (76, 45), "ftruncate": (77, 46), "fallocate": (285, 47), "fsync": (74, 82), "fdatasync": (75, 83),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "chdir": (80, 49), "fchdir": (81, 50), "pwrite64": (18, 68), "preadv": (295, 69), "pwritev": (296, 70),
    "preadv2": (327, 286), "pwritev2": (328, 287), "copy_file_range": (326, 285), "sendfile": (40, 71),
    "statfs": (137, 43), "fstatfs": (138, 44),
}  # fmt: skip
# Answer ENOTSUP there: shutil.copy2 takes that, and no other refusal, for a file system without attributes.
UNSUPPORTED_WRITING: dict[str, tuple[int | None, int | None]] = {
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "getxattr": (191, 8), "lgetxattr": (192, 9),
    "fgetxattr": (193, 10), "listxattr": (194, 11), "llistxattr": (195, 12), "flistxattr": (196, 13),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
}  # fmt: skip
# Allowed for some arguments only; see _argument_rules.
CHECKED: dict[str, tuple[int | None, int | None]] = {
    "openat": (257, 56), "open": (2, None), "clone": (56, 220), "clone3": (435, 435), "fcntl": (72, 25),
    "ioctl": (16, 29), "prlimit64": (302, 261), "socketpair": (53, 199), "sendto": (44, 206), "prctl": (157, 167),
    "clock_gettime": (228, 113), "clock_nanosleep": (230, 115), "clock_getres": (229, 114),
    "setsockopt": (54, 208), "getsockopt": (55, 209),
}  # fmt: skip


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
    "x86_64": Architecture(column=0, audit_number=0xC000003E, seccomp_number=317, highest_number=0x3FFFFFFF),
    "aarch64": Architecture(column=1, audit_number=0xC00000B7, seccomp_number=277, highest_number=0xFFFFFFFE),
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
        (_JUMP_GREATER, 0, 1, architecture.highest_number),
        (_RETURN, 0, 0, _KILL),
    ]
    blocks = {name: (numbers, [(_RETURN, 0, 0, _ALLOW)]) for name, numbers in ALLOWED.items()}
    blocks |= {name: (numbers, _argument_rules(name)) for name, numbers in CHECKED.items()}
    if can_write:
        blocks |= {name: (numbers, [(_RETURN, 0, 0, _ALLOW)]) for name, numbers in ALLOWED_WRITING.items()}
        blocks |= {name: (numbers, [_deny(errno.ENOTSUP)]) for name, numbers in UNSUPPORTED_WRITING.items()}
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
            _argument(0), (_JUMP_EQUAL, 0, 6, 0),
            _argument(1), (_JUMP_EQUAL, 5, 0, _RLIMIT_STACK),
            _argument(2), (_JUMP_EQUAL, 0, 2, 0), _argument(2, high=True), (_JUMP_EQUAL, 1, 0, 0),
            refuse, allow,
        ]  # fmt: skip
    if name == "sendto":  # to the connected end only: no address
        return [
            _argument(4), (_JUMP_EQUAL, 0, 3, 0), _argument(4, high=True), (_JUMP_EQUAL, 0, 1, 0), allow, refuse
        ]  # fmt: skip
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
