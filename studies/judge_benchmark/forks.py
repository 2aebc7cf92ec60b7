"""What a fork costs, bare and confined. Runs in an interpreter set up as a fork server, see ``start_as_fork_server``.

Fork + exit + wait in a loop, with nothing in the child, or with its confinement and nothing else. The result goes to
standard output as JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable

Confine = Callable[[int], None]
_BLOCK = 20
"""Forks of one kind before the other kind's turn."""


def main(confine: Confine) -> None:
    """Requests come on standard input, one a line; see ``_measure``."""
    _send("ready")
    for line in sys.stdin:
        _measure(confine, line.split())


def _measure(confine: Confine, request: list[str]) -> None:
    """``rate SECONDS``: bare forks a second. ``confine SECONDS``: milliseconds that confinement adds to a fork."""
    seconds = float(request[1])
    if request[0] == "rate":
        count, started = 0, time.monotonic()
        while (spent := time.monotonic() - started) < seconds:
            _fork(None, 0)
            count += 1
        _send(count / spent)
        return
    reading, writing = os.pipe()
    bare, confined = [], []
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        bare += [_fork(None, writing) for _ in range(_BLOCK)]
        confined += [_fork(confine, writing) for _ in range(_BLOCK)]
    os.close(reading)
    os.close(writing)
    _send(1e3 * (statistics.median(confined) - statistics.median(bare)))


def _fork(confine: Confine | None, channel: int) -> float:
    """Seconds from the fork to the end of the wait."""
    started = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        try:
            if confine is not None:
                confine(channel)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    return time.perf_counter() - started


def _send(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
