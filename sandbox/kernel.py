"""System calls that the standard library does not offer, through the C library."""

from __future__ import annotations

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def check(result: int, what: str) -> int:
    """``result`` of a call of ``libc``.

    Raises:
        OSError: the call failed; the message begins with ``what``.
    """
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result
