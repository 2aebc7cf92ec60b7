"""The seccomp tables against the kernel's headers and libseccomp, and every verdict of the filter on both machines.

The filters are data, so that of the other architecture is interpreted here as well.
"""

import errno
import importlib.util
import os
import re
import resource
import signal
from pathlib import Path

import pytest

from sandbox.confinement.seccomp import ARCHITECTURES, build_filter
from sandbox.confinement.syscalls import ALLOWED, ALLOWED_WRITING, CHECKED, UNSUPPORTED_WRITING


def neighbour(name):
    """A helper file beside this one; test folders are no packages."""
    specification = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


bpf, libseccomp = neighbour("bpf"), neighbour("libseccomp")
HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}
TABLES = ALLOWED | CHECKED | ALLOWED_WRITING | UNSUPPORTED_WRITING
NEVER = set(
    """
    execve execveat fork vfork kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal ptrace
    process_vm_readv process_vm_writev socket connect bind listen accept accept4 sendmsg sendmmsg recvmsg recvmmsg
    mount umount2 pivot_root move_mount open_tree fsopen fsmount mount_setattr unshare setns bpf perf_event_open
    io_uring_setup io_uring_enter keyctl add_key request_key memfd_create memfd_secret userfaultfd open_by_handle_at
    name_to_handle_at pidfd_open pidfd_getfd setuid setgid setresuid setresgid setreuid setgroups capset chroot
    fchownat fchown mknodat shmget msgget semget openat2 timer_create mq_open inotify_init1 fanotify_init
    setrlimit setpriority sched_setaffinity sched_setscheduler setpgid setsid seccomp landlock_create_ruleset
    init_module finit_module kexec_load reboot swapon acct quotactl syslog personality arch_prctl modify_ldt
    clock_settime settimeofday adjtimex sethostname mlock mlockall remap_file_pages process_madvise kcmp vmsplice
    splice tee flock close_range io_setup lookup_dcookie
    """.split()  # noqa: SIM905 - a column of quoted names is harder to check against the manual
)
WRITING_ONLY = set(ALLOWED_WRITING) - {"open", "openat"}
STACK, CPU = resource.RLIMIT_STACK, resource.RLIMIT_CPU
HIGH = 1 << 40
"""A pointer whose low half is zero."""
THREAD = 0x3D0F00
"""The flags with which the C library starts a thread."""
# call, arguments, verdict without a scratch folder, verdict with one
ON_ARGUMENTS = [
    ("openat", (0, 0, os.O_RDONLY | os.O_CLOEXEC), "allow", "allow"),
    ("openat", (0, 0, os.O_WRONLY), errno.EACCES, "allow"),
    ("openat", (0, 0, os.O_RDWR), errno.EACCES, "allow"),
    ("openat", (0, 0, os.O_RDONLY | os.O_CREAT), errno.EACCES, "allow"),
    ("openat", (0, 0, os.O_RDONLY | os.O_TRUNC), errno.EACCES, "allow"),
    ("openat", (0, 0, os.O_TMPFILE | os.O_RDWR), errno.EACCES, "allow"),
    ("open", (0, os.O_RDONLY), "allow", "allow"),
    ("open", (0, os.O_WRONLY | os.O_APPEND), errno.EACCES, "allow"),
    *[(name, arguments, verdict, verdict) for name, arguments, verdict in [
        ("clone", (THREAD,), "allow"),
        ("clone", (signal.SIGCHLD,), errno.EPERM),
        ("clone", (THREAD | 0x10000000,), errno.EPERM),
        ("clone", (THREAD | 0x00020000,), errno.EPERM),
        ("clone", (THREAD | 0x40000000,), errno.EPERM),
        ("clone3", (), errno.ENOSYS),
        ("fcntl", (3, 1), "allow"),
        ("fcntl", (3, 4), "allow"),
        ("fcntl", (3, 8), errno.EPERM),
        ("fcntl", (3, 10), errno.EPERM),
        ("fcntl", (3, 1031), errno.EPERM),
        ("ioctl", (3, 0x5401), "allow"),
        ("ioctl", (3, 0x5412), errno.ENOTTY),
        ("ioctl", (3, 0x5401 | HIGH), "allow"),
        ("prlimit64", (0, CPU, 0, 1), "allow"),
        ("prlimit64", (0, CPU, HIGH, 1), errno.EPERM),
        ("prlimit64", (0, CPU, 1, 0), errno.EPERM),
        ("prlimit64", (0, STACK, 1, 0), "allow"),
        ("prlimit64", (1, STACK, 0, 1), errno.EPERM),
        ("prlimit64", (1, CPU, 0, 1), errno.EPERM),
        ("socketpair", (1,), "allow"),
        ("socketpair", (2,), errno.EPERM),
        ("prctl", (15,), "allow"),
        ("prctl", (1,), errno.EPERM),
        ("prctl", (4,), errno.EPERM),
        ("sendto", (3, 0, 0, 0, 0), "allow"),
        ("sendto", (3, 0, 0, 0, 1), errno.EPERM),
        ("sendto", (3, 0, 0, 0, HIGH), errno.EPERM),
    ]],
]  # fmt: skip
MACHINES = pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])


@pytest.fixture(scope="module")
def verdict():
    """``verdict(architecture, name, *arguments, can_write=...)`` of a call in our tables."""

    def ask(architecture, name, *arguments, can_write=False):
        machine = ARCHITECTURES[architecture]
        code = build_filter(machine, can_write=can_write)
        number = TABLES[name][machine.column]
        return bpf.run(code, audit_number=machine.audit_number, number=number, arguments=arguments)

    return ask


def exists(architecture, name):
    return TABLES[name][ARCHITECTURES[architecture].column] is not None


def header_numbers(architecture):
    paths = [Path(path) for path in HEADERS[architecture] if Path(path).exists()]
    if not paths:
        pytest.skip(f"the kernel headers for {architecture} are not installed")
    text = paths[0].read_text()
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    return numbers | ({"newfstatat": numbers["fstatat"]} if "fstatat" in numbers else {})


@MACHINES
def test_every_number_is_the_kernels(architecture):
    numbers = header_numbers(architecture)
    column = ARCHITECTURES[architecture].column
    ours = {name: pair[column] for name, pair in TABLES.items()}
    too_new = {
        name for name, number in ours.items() if name not in numbers and number and number > max(numbers.values())
    }
    assert {name: number for name, number in ours.items() if name not in too_new} == {
        name: numbers.get(name) for name in ours if name not in too_new
    }
    assert too_new <= {"fchmodat2"}
    assert ARCHITECTURES[architecture].seccomp_number == numbers["seccomp"]


@MACHINES
def test_every_number_is_the_one_libseccomp_knows(architecture):
    library = libseccomp.load()
    if library is None:
        pytest.skip("libseccomp.so.2 is not installed")
    machine = ARCHITECTURES[architecture]
    assert machine.audit_number == libseccomp.ARCHITECTURE_TOKENS[architecture]
    wrong = {
        name: (pair[machine.column], libseccomp.number(library, architecture, name))
        for name, pair in (TABLES | {"seccomp": (317, 277)}).items()
        if pair[machine.column] != libseccomp.number(library, architecture, name)
    }
    assert set(wrong) <= {"fchmodat2"}  # newer than the library of today's stable distributions
    assert all(theirs is None for _, theirs in wrong.values())


def test_nothing_dangerous_is_in_the_tables():
    assert not NEVER & set(TABLES)


@MACHINES
def test_no_number_is_listed_twice(architecture):
    column = ARCHITECTURES[architecture].column
    numbers = [pair[column] for pair in TABLES.values() if pair[column] is not None]
    assert len(numbers) == len(set(numbers))


@MACHINES
@pytest.mark.parametrize("can_write", [False, True])
def test_the_filter_is_within_the_kernels_size_and_ends_in_a_refusal(architecture, can_write):
    code = build_filter(ARCHITECTURES[architecture], can_write=can_write)
    assert len(code) % 8 == 0
    assert len(code) // 8 <= 4096
    assert code[-8:] == b"\x06\x00\x00\x00\x01\x00\x05\x00"  # return ERRNO(EPERM)


@MACHINES
def test_every_call_of_the_table_is_allowed(verdict, architecture):
    names = [name for name in ALLOWED if exists(architecture, name)]
    assert {name for name in names if verdict(architecture, name) != "allow"} == set()


@MACHINES
def test_what_writes_is_allowed_with_a_scratch_folder_only(verdict, architecture):
    names = [name for name in WRITING_ONLY if exists(architecture, name)]
    assert {verdict(architecture, name) for name in names} == {errno.EPERM}
    assert {verdict(architecture, name, can_write=True) for name in names} == {"allow"}


@MACHINES
def test_extended_attributes_are_unsupported_so_that_copies_work(verdict, architecture):
    assert {verdict(architecture, name, can_write=True) for name in UNSUPPORTED_WRITING} == {errno.ENOTSUP}
    assert {verdict(architecture, name) for name in UNSUPPORTED_WRITING} == {errno.EPERM}


@MACHINES
@pytest.mark.parametrize(("name", "arguments", "plain", "writing"), ON_ARGUMENTS)
def test_arguments_decide(verdict, architecture, name, arguments, plain, writing):
    if exists(architecture, name):
        assert verdict(architecture, name, *arguments) == plain
        assert verdict(architecture, name, *arguments, can_write=True) == writing


@MACHINES
@pytest.mark.parametrize("can_write", [False, True])
def test_every_number_that_is_not_named_is_refused(architecture, can_write):
    machine = ARCHITECTURES[architecture]
    code = build_filter(machine, can_write=can_write)
    tables = ALLOWED | CHECKED | (ALLOWED_WRITING | UNSUPPORTED_WRITING if can_write else {})
    named = {pair[machine.column] for pair in tables.values()}
    verdicts = {
        bpf.run(code, audit_number=machine.audit_number, number=number) for number in range(600) if number not in named
    }
    assert verdicts == {errno.EPERM}


@MACHINES
def test_a_foreign_architecture_is_fatal(architecture):
    machine = ARCHITECTURES[architecture]
    others = {0x40000003, 0x40000028} | {other.audit_number for other in ARCHITECTURES.values()} - {
        machine.audit_number
    }
    code = build_filter(machine)
    assert {bpf.run(code, audit_number=other, number=0) for other in others} == {"kill"}


def test_the_x32_convention_is_fatal():
    machine = ARCHITECTURES["x86_64"]
    code = build_filter(machine)
    for number in (0x40000000, 0x40000000 + 39, 0x7FFFFFFF, 0xFFFFFFFF):
        assert bpf.run(code, audit_number=machine.audit_number, number=number) == "kill"
