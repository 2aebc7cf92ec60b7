"""A message for the user when the trainer's process is ended from outside and cannot print one itself.

A small process waits for that end and prints how to resume. The end may come by a SIGKILL, by the kernel's
out-of-memory killer, or by Ray, whose C++ code ends a driver after its Ray processes have died.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_END = b"end"
# It ignores the signals of a terminal, which reach all processes of a run, and waits for the pipe's end.
_WAITER = """
import signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if sys.stdin.buffer.read() != b"end":
    sys.stderr.write(sys.argv[1])
"""


_waiting: list[subprocess.Popen[bytes]] = []


def dismiss_notifier() -> None:
    """End the waiting process without a message. Call this before the process ends itself with its own message."""
    while _waiting:
        _waiting.pop().communicate(_END)  # ignores a pipe whose other end is gone


@contextmanager
def crash_notifier(message: str) -> Iterator[None]:
    """Print ``message`` on stderr if this process ends before it has left the block."""
    _waiting.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", _WAITER, message], stdin=subprocess.PIPE))
    try:
        yield
    finally:
        dismiss_notifier()
