"""``python without_system_calls.py NAME... -- COMMAND...``: run it where a seccomp filter refuses these system calls.

With the names of namespaces and mounts it is Docker's default profile, as far as a program of ours can tell; with
``landlock_create_ruleset`` a kernel without Landlock. It ends with the command's status, or 125 without seccomp.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

_NUMBERS = {  # of x86-64 and arm64
    "unshare": (272, 97), "mount": (165, 40), "setns": (308, 268), "pivot_root": (155, 41), "umount2": (166, 39),
    "landlock_create_ruleset": (444, 444),
}  # fmt: skip
_LOAD_NUMBER, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NO_SECCOMP = 125


class _Header(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def main(arguments: list[str]) -> int:
    at = arguments.index("--")
    column = 0 if platform.machine() == "x86_64" else 1
    steps = [(_LOAD_NUMBER, 0, 0, 0)]
    for name in arguments[:at]:
        error = errno.ENOSYS if name.startswith("landlock") else errno.EPERM
        steps += [(_JUMP_EQUAL, 0, 1, _NUMBERS[name][column]), (_RETURN, 0, 0, _ERRNO | error)]
    code = b"".join(struct.pack("HBBI", *step) for step in [*steps, (_RETURN, 0, 0, _ALLOW)])
    kept = ctypes.create_string_buffer(code, len(code))
    header = _Header(len(code) // 8, ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(header), 0, 0):
        return _NO_SECCOMP
    return os.execvp(arguments[at + 1], arguments[at + 1 :])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
