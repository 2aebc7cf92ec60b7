"""``python in_user_namespace.py COMMAND...``: run it as the root of 65,536 ids, as in a rootless container.

Needs root. It ends with the command's status, or with 125 where no such user namespace can be made.
"""

import contextlib
import ctypes
import os
import sys
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_NO_NAMESPACE = 125


def main(command: list[str]) -> int:
    is_apart, may_go = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(may_go[1])
        if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER):
            os._exit(_NO_NAMESPACE)
        os.write(is_apart[1], b"x")
        if not os.read(may_go[0], 1):
            os._exit(_NO_NAMESPACE)
        os.setgid(0)
        os.setuid(0)
        os.execvp(command[0], command)
    os.close(is_apart[1])
    if os.read(is_apart[0], 1):
        with contextlib.suppress(OSError):
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{pid}/{name}").write_text("0 0 65536")
            os.write(may_go[1], b"x")
    os.close(may_go[1])
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
