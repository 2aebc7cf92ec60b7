"""An interpreter of classic BPF, as far as seccomp filters use it: filters of any machine, run on this one."""

import struct

ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000


def run(code, *, audit_number, number, arguments=()):
    """The filter's verdict on one system call: "allow", "kill" or an errno.

    Data layout: ``struct seccomp_data`` of ``include/uapi/linux/seccomp.h``.
    """
    arguments = [value & (1 << 64) - 1 for value in (*arguments, *[0] * (6 - len(arguments)))]
    data = struct.pack("=iIQ6Q", number - (1 << 32) if number >= 1 << 31 else number, audit_number, 0, *arguments)
    instructions = list(struct.iter_unpack("=HBBI", code))
    at = accumulator = 0
    while True:
        operation, if_true, if_false, operand = instructions[at]
        at += 1
        if operation == 0x20:  # load a word
            (accumulator,) = struct.unpack_from("=I", data, operand)
        elif operation == 0x54:  # and
            accumulator &= operand
        elif operation == 0x06:  # return
            return _verdict(operand)
        elif operation == 0x05:  # jump always
            at += operand
        elif operation in _JUMPS:
            at += if_true if _JUMPS[operation](accumulator, operand) else if_false
        else:
            raise AssertionError(f"instruction {at - 1} has an unknown operation {operation:#x}")


_JUMPS = {0x15: lambda a, k: a == k, 0x25: lambda a, k: a > k, 0x45: lambda a, k: bool(a & k)}


def _verdict(value):
    if value & 0xFFFF0000 == ERRNO:
        return value & 0xFFFF
    return {ALLOW: "allow", KILL: "kill"}[value]
