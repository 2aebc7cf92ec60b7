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
# Flags of an opened file, and the verdict without a scratch folder. With a scratch folder all of them are allowed.
OPENING = [
    (os.O_RDONLY | os.O_CLOEXEC, "allow"),
    (os.O_WRONLY, errno.EACCES),
    (os.O_RDWR, errno.EACCES),
    (os.O_RDONLY | os.O_CREAT, errno.EACCES),
    (os.O_RDONLY | os.O_TRUNC, errno.EACCES),
    (os.O_WRONLY | os.O_APPEND, errno.EACCES),
    (os.O_TMPFILE | os.O_RDWR, errno.EACCES),
]
# For each call, lists of arguments that are allowed and of arguments that are refused with EPERM.
ON_ARGUMENTS = {
    "clone": ([(THREAD,)], [(signal.SIGCHLD,), (THREAD | 1 << 28,), (THREAD | 1 << 17,), (THREAD | 1 << 30,)]),
    "fcntl": ([(3, 1), (3, 4)], [(3, 8), (3, 10), (3, 1031)]),
    "ioctl": ([(3, 0x5401), (3, 0x5401 | HIGH)], []),
    "prlimit64": (
        [(0, CPU, 0, 1), (0, STACK, 1, 0)],
        [(0, CPU, HIGH, 1), (0, CPU, 1, 0), (1, STACK, 0, 1), (1, CPU, 0, 1)],
    ),
    "socketpair": ([(1,)], [(2,)]),
    "prctl": ([(15,)], [(1,), (4,)]),
    "sendto": ([(3, 0, 0, 0, 0)], [(3, 0, 0, 0, 1), (3, 0, 0, 0, HIGH)]),
}
MACHINES = pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])


def run(architecture, number, *arguments, can_write=False, audit_number=None):
    """The verdict of an architecture's filter on the call with this number."""
    machine = ARCHITECTURES[architecture]
    code = build_filter(machine, can_write=can_write)
    return bpf.run(code, audit_number=audit_number or machine.audit_number, number=number, arguments=arguments)


def verdicts(architecture, names, *arguments, can_write=False):
    """The different verdicts on those of the named calls that the architecture has."""
    numbers = {TABLES[name][ARCHITECTURES[architecture].column] for name in names} - {None}
    return {run(architecture, number, *arguments, can_write=can_write) for number in numbers}


def header_numbers(architecture):
    paths = [Path(path) for path in HEADERS[architecture] if Path(path).exists()]
    if not paths:
        pytest.skip(f"the kernel headers for {architecture} are not installed")
    numbers = {
        name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", paths[0].read_text())
    }
    return {"newfstatat": numbers.get("fstatat")} | numbers


def library_numbers(architecture):
    library = libseccomp.load()
    if library is None:
        pytest.skip("libseccomp.so.2 is not installed")
    assert ARCHITECTURES[architecture].audit_number == libseccomp.ARCHITECTURE_TOKENS[architecture]
    return {name: libseccomp.number(library, architecture, name) for name in (*TABLES, "seccomp")}


@MACHINES
@pytest.mark.parametrize("known_numbers", [header_numbers, library_numbers])
def test_every_number_is_the_one_that_the_kernels_headers_and_libseccomp_know(architecture, known_numbers):
    known = known_numbers(architecture)
    machine = ARCHITECTURES[architecture]
    ours = {name: pair[machine.column] for name, pair in TABLES.items()} | {"seccomp": machine.seccomp_number}
    differing = {name: known.get(name) for name, number in ours.items() if known.get(name) != number}
    # This call is newer than the headers and the library of today's stable distributions, which then do not know it.
    assert differing in ({}, {"fchmodat2": None})


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
@pytest.mark.parametrize(
    ("names", "plain", "writing"),
    [
        pytest.param(set(ALLOWED), "allow", "allow", id="allowed"),
        pytest.param(WRITING_ONLY, errno.EPERM, "allow", id="allowed with a scratch folder only"),
        pytest.param(set(UNSUPPORTED_WRITING), errno.EPERM, errno.ENOTSUP, id="unsupported, so that copies work"),
        pytest.param({"clone3"}, errno.ENOSYS, errno.ENOSYS, id="clone3, so that the C library calls clone"),
    ],
)
def test_every_call_of_a_table_has_its_verdict(architecture, names, plain, writing):
    assert verdicts(architecture, names) == {plain}
    assert verdicts(architecture, names, can_write=True) == {writing}


@MACHINES
@pytest.mark.parametrize(("flags", "verdict"), OPENING)
def test_the_flags_of_an_opened_file_decide(architecture, flags, verdict):
    assert verdicts(architecture, ["openat"], 0, 0, flags) == {verdict}
    assert verdicts(architecture, ["open"], 0, flags) <= {verdict}  # aarch64 has no such call
    assert verdicts(architecture, ["openat", "open"], 0, flags, flags, can_write=True) == {"allow"}


@MACHINES
@pytest.mark.parametrize("can_write", [False, True])
@pytest.mark.parametrize("name", ON_ARGUMENTS)
def test_arguments_decide(architecture, name, can_write):
    allowed, refused = ON_ARGUMENTS[name]
    for arguments in allowed:
        assert verdicts(architecture, [name], *arguments, can_write=can_write) == {"allow"}
    for arguments in refused:
        assert verdicts(architecture, [name], *arguments, can_write=can_write) == {errno.EPERM}


@MACHINES
def test_other_requests_of_ioctl_look_like_no_terminal(architecture):
    assert verdicts(architecture, ["ioctl"], 3, 0x5412) == {errno.ENOTTY}


@MACHINES
@pytest.mark.parametrize("can_write", [False, True])
def test_every_number_that_is_not_named_is_refused(architecture, can_write):
    tables = ALLOWED | CHECKED | (ALLOWED_WRITING | UNSUPPORTED_WRITING if can_write else {})
    named = {pair[ARCHITECTURES[architecture].column] for pair in tables.values()}
    unnamed = set(range(600)) - named
    assert {run(architecture, number, can_write=can_write) for number in unnamed} == {errno.EPERM}


@MACHINES
def test_a_foreign_architecture_is_fatal(architecture):
    known = {machine.audit_number for machine in ARCHITECTURES.values()}
    for other in {0x40000003, 0x40000028, *known} - {ARCHITECTURES[architecture].audit_number}:
        assert run(architecture, 0, audit_number=other) == "kill"


@pytest.mark.parametrize("number", [0x40000000, 0x40000000 + 39, 0x7FFFFFFF, 0xFFFFFFFF])
def test_the_x32_convention_is_fatal(number):
    assert run("x86_64", number) == "kill"
