"""What a fork costs in a zygote: bare, and confined. Runs as the main module of a clean interpreter, like a zygote.

Set up as ``zygote_main`` sets itself up, then fork + exit + wait in a loop, with nothing in the child,
or with its confinement and nothing else. The result goes to standard output as JSON.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time

from .confine import Jail, ProcessLimits, ZygoteFacts, forbid_inspection, readable_paths
from .limits import Limits
from .namespaces import plan_layout
from .zygote_main import _choose_jail, _isolate, _proc_folder, preload

_BLOCK = 20
"""Forks of one kind before the other kind's turn."""


def main(argv: list[str]) -> None:
    """``argv``: JSON list of features, then orders on standard input, one a line; see ``_obey``."""
    preload()
    forbid_inspection()
    facts = ZygoteFacts.read(has_own_user=False)
    layout = plan_layout(readable_paths(()))
    _proc_folder()
    jail, notes = _choose_jail(json.loads(argv[0]), layout.binds, facts, None)
    if jail is None:
        raise SystemExit("; ".join(notes))
    gc.collect()
    gc.freeze()
    gc.disable()
    _say("ready")
    for line in sys.stdin:
        _obey(jail, line.split())


def _obey(jail: Jail, order: list[str]) -> None:
    """``rate SECONDS``: bare forks a second. ``confine SECONDS``: milliseconds that confinement adds to a fork."""
    seconds = float(order[1])
    if order[0] == "rate":
        count, started = 0, time.monotonic()
        while (spent := time.monotonic() - started) < seconds:
            _fork(None, 0)
            count += 1
        _say(count / spent)
        return
    reading, writing = os.pipe()
    bare, confined = [], []
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        bare += [_fork(None, writing) for _ in range(_BLOCK)]
        confined += [_fork(jail, writing) for _ in range(_BLOCK)]
    os.close(reading)
    os.close(writing)
    _say(1e3 * (statistics.median(confined) - statistics.median(bare)))


def _fork(jail: Jail | None, channel: int) -> float:
    """Seconds from the fork to the end of the wait."""
    started = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        try:
            if jail is not None:
                _isolate(jail, channel=channel)
                jail.enter(_LIMITS)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    return time.perf_counter() - started


def _say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _process_limits() -> ProcessLimits:
    limits = Limits()
    return ProcessLimits(
        memory_bytes=limits.memory_bytes,
        stack_bytes=limits.stack_bytes,
        cpu_seconds=int(limits.total_seconds),
        open_files=limits.open_files,
        threads=limits.threads,
        scratch_bytes=limits.scratch_bytes,
        scratch_files=limits.scratch_files,
    )


_LIMITS = _process_limits()
