"""libseccomp through ctypes: the numbers it knows, and what building the same filter with it costs.

``python tests/unit/sandbox/libseccomp.py`` prints the comparison that the choice of a table rests on.
"""

import ctypes
import ctypes.util
import errno
import os
import time

from sandbox.confinement.seccomp import ARCHITECTURES, build_filter, this_architecture
from sandbox.confinement.syscalls import ALLOWED, CHECKED

NAMES = ("libseccomp.so.2",)
ARCHITECTURE_TOKENS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def load():
    """The library, or None where it is not installed."""
    try:
        library = ctypes.CDLL(NAMES[0], use_errno=True)
    except OSError:
        return None
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_release.argtypes = [ctypes.c_void_p]
    library.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.seccomp_rule_add_exact_array.argtypes = [
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p,
    ]  # fmt: skip
    library.seccomp_syscall_resolve_name_arch.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
    return library


def number(library, architecture, name):
    """What the library says the number is; None where the architecture has no such call, or it is too new for it."""
    found = library.seccomp_syscall_resolve_name_arch(ARCHITECTURE_TOKENS[architecture], name.encode())
    return found if found >= 0 else None


def export_allow_list(library):
    """The names of our table as a filter of the library: its bytes. Without any rule on arguments."""
    column = this_architecture().column
    context = library.seccomp_init(ERRNO | errno.EPERM)
    try:
        for numbers in (ALLOWED | CHECKED).values():
            if numbers[column] is not None:
                assert library.seccomp_rule_add_exact_array(context, ALLOW, numbers[column], 0, None) == 0
        handle = os.memfd_create("filter")
        try:
            assert library.seccomp_export_bpf(context, handle) == 0
            return os.pread(handle, 1 << 20, 0)
        finally:
            os.close(handle)
    finally:
        library.seccomp_release(context)


def seconds(action, *, rounds=50):
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - started)
    return best


def main():
    library = load()
    ours = build_filter(this_architecture())
    print(f"our table    {len(ours) // 8} instructions, built in "
          f"{1e3 * seconds(lambda: build_filter(this_architecture())):.2f} ms")  # fmt: skip
    if library is None:
        print("libseccomp   not installed")
        return
    theirs = export_allow_list(library)
    print(f"libseccomp   {len(theirs) // 8} instructions (no argument rules), built and exported in "
          f"{1e3 * seconds(lambda: export_allow_list(library)):.2f} ms")  # fmt: skip
    for architecture in ARCHITECTURES:
        known = sum(number(library, architecture, name) is not None for name in ALLOWED | CHECKED)
        print(f"{architecture}: the library knows {known} of {len(ALLOWED | CHECKED)} names")


if __name__ == "__main__":
    main()
