"""What a fork costs, bare and confined, in an interpreter set up as a fork server of tier 0 is.

Fork + exit + wait in a loop, with nothing in the child, or with its confinement and nothing else. The result goes to
standard output as JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from sandbox.confinement.clean_interpreter import CLEAN_ENVIRONMENT, clean_interpreter
from sandbox.confinement.jail import OPTIONAL_FEATURES, ForkServerFacts, missing_features, readable_paths
from sandbox.confinement.libc import forbid_inspection
from sandbox.confinement.namespaces import plan_layout
from sandbox.runners.local.fork_server_main import _freeze, open_proc, preload
from sandbox.runners.local.jail_choice import PROBE_LIMITS, choose_jail, isolate

Confine = Callable[[int], None]
_BLOCK = 20
"""Forks of one kind before the other kind's turn."""


def start() -> subprocess.Popen[str]:
    """This file in an interpreter of its own; standard input and output are pipes."""
    features = json.dumps([name for name in OPTIONAL_FEATURES if name not in missing_features()])
    statement = f"import runpy; runpy.run_path({__file__!r})['main'](sys.argv[1])"
    command = [*clean_interpreter(statement), features]
    return subprocess.Popen(
        command, env=CLEAN_ENVIRONMENT, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def main(features: str) -> None:
    """Requests come on standard input, one a line; see ``_measure``."""
    preload()
    forbid_inspection()
    facts = ForkServerFacts.read(has_own_user=False)
    open_proc()
    jail, notes = choose_jail(json.loads(features), plan_layout(readable_paths()).binds, facts, None)
    if jail is None:
        sys.exit("; ".join(notes) or "the process that tries the confinement was killed")

    def confine(channel: int) -> None:
        isolate(jail, channel=channel)
        jail.enter(PROBE_LIMITS)

    _freeze()
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
