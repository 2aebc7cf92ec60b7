"""Tells the user how to resume if the trainer's process is killed.

A killed process cannot print a message, so a small second process waits for the trainer's end. The trainer may be
killed by a user, by Ray, or by the kernel if memory runs out. Ray's C++ code ends a driver when Ray's own processes
have died.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_END = b"end"
# The waiting process ends when the pipe ends. It ignores signals of the terminal, which reach all processes of a run.
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
