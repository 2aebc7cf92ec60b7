"""System calls that the standard library does not offer, through the C library."""

import ctypes
import os
import signal

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def check(result: int, what: str) -> int:
    """Return ``result``, the result of a call of ``libc``.

    Raises:
        OSError: the result is negative, so the call failed. The message begins with ``what``.
    """
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends. Credential changes undo this, so call it after them."""
    check(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "PR_SET_PDEATHSIG")


def forbid_inspection() -> None:
    """Forbid this process's own user to read its memory and /proc entries, also for its forks."""
    check(libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "PR_SET_DUMPABLE")
