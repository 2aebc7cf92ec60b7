"""System calls that Python's standard library lacks, made through the C library."""

import ctypes
import os
import signal

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def check(result: int, what: str) -> int:
    """Return ``result``, which a function of ``libc`` returned.

    Raises:
        OSError: the result is negative, because the call failed. The message begins with ``what``.
    """
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def end_with_parent() -> None:
    """Tell the kernel to kill this process when its parent ends. A later change of credentials would undo this
    setting."""
    check(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "PR_SET_PDEATHSIG")


def forbid_inspection() -> None:
    """Forbid this process's own user to read the memory and /proc entries of this process and its forks."""
    check(libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "PR_SET_DUMPABLE")
