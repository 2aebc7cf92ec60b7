"""The seccomp tables against the kernel's own headers, and the shape of the filter."""

import re
from pathlib import Path

import pytest

from sandbox.syscalls import ALLOWED, ARCHITECTURES, CHECKED, build_filter

HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}
FORBIDDEN = set(
    """
    execve execveat fork vfork kill tkill tgkill rt_sigqueueinfo ptrace process_vm_readv process_vm_writev
    socket connect bind sendmsg recvmsg mount unshare setns bpf perf_event_open io_uring_setup keyctl
    memfd_create userfaultfd open_by_handle_at name_to_handle_at pidfd_open pidfd_getfd setuid setresuid
    capset chroot unlinkat mkdirat renameat symlinkat linkat fchmodat fchownat truncate ftruncate shmget
    msgget semget openat2
    """.split()  # noqa: SIM905 - a column of quoted names is harder to check against the manual
)


def header_numbers(architecture):
    paths = [Path(path) for path in HEADERS[architecture] if Path(path).exists()]
    if not paths:
        pytest.skip(f"the kernel headers for {architecture} are not installed")
    text = paths[0].read_text()
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    return numbers | ({"newfstatat": numbers["fstatat"]} if "fstatat" in numbers else {})


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_every_number_is_the_kernels(architecture):
    numbers = header_numbers(architecture)
    column = ARCHITECTURES[architecture].column
    ours = {name: pair[column] for name, pair in (ALLOWED | CHECKED).items()}
    assert ours == {name: numbers.get(name) for name in ours}
    assert ARCHITECTURES[architecture].seccomp_number == numbers["seccomp"]


def test_nothing_dangerous_is_in_the_tables():
    assert not FORBIDDEN & set(ALLOWED | CHECKED)


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_no_number_is_listed_twice(architecture):
    column = ARCHITECTURES[architecture].column
    numbers = [pair[column] for pair in [*ALLOWED.values(), *CHECKED.values()] if pair[column] is not None]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_the_filter_is_within_the_kernels_size_and_ends_in_a_refusal(architecture):
    code = build_filter(ARCHITECTURES[architecture])
    assert len(code) % 8 == 0
    assert len(code) // 8 <= 4096
    assert code[-8:] == b"\x06\x00\x00\x00\x01\x00\x05\x00"  # return ERRNO(EPERM)
