"""Prints a message when the trainer's process is ended from outside and cannot print one itself.

A SIGKILL, the kernel's out-of-memory killer, or Ray's own end (a driver whose Ray processes died is ended by Ray's C++
code): a small process waits for that and prints how to resume.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_END = b"end"
_WAITER = """
import signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if sys.stdin.buffer.read() != b"end":
    sys.stderr.write(sys.argv[1])
"""


_waiting: list[subprocess.Popen[bytes]] = []


def dismiss_notifier() -> None:
    """To be called before a process ends itself inside the block, after a message of its own."""
    while _waiting:
        _waiting.pop().communicate(_END)  # passes over a pipe whose other end is gone


@contextmanager
def crash_notifier(message: str) -> Iterator[None]:
    """Print ``message`` on stderr if this process ends inside the block without leaving it."""
    _waiting.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", _WAITER, message], stdin=subprocess.PIPE))
    try:
        yield
    finally:
        dismiss_notifier()
