"""Tells the user how to resume after the trainer's process was killed.

The killed process cannot print this, so a small second process waits for its end. The killer may be a user, the kernel
(out of memory), or Ray, whose C++ code ends a driver after Ray's own processes have died.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_END = b"end"
# The waiting process ignores signals of the terminal, which reach all processes of a run. It reads until the pipe ends.
_WAITER = """
import signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if sys.stdin.buffer.read() != b"end":
    sys.stderr.write(sys.argv[1])
"""


_waiting: list[subprocess.Popen[bytes]] = []


def dismiss_notifier() -> None:
    """End the waiting process without a message. A process that prints its own last message calls this first."""
    while _waiting:
        _waiting.pop().communicate(_END)  # `communicate` does not fail if the waiting process is gone


@contextmanager
def crash_notifier(message: str) -> Iterator[None]:
    """Print ``message`` on stderr if this process is killed inside the block."""
    _waiting.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", _WAITER, message], stdin=subprocess.PIPE))
    try:
        yield
    finally:
        dismiss_notifier()
