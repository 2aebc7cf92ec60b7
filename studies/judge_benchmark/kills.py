"""Kills processes at random moments while candidates are judged: candidates, fork servers, judge workers and parents.

Every candidate must still get the same verdict as in a run without kills. No process, file or shared-memory segment may
be left over.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import psutil

from sandbox import CandidateVerdict, JudgeProcesses, JudgeRequest, SandboxUnavailableError, WorkerSettings

from .programs import workload

TARGETS = ("candidate", "candidate", "candidate", "fork server", "worker", "parent")
"""Kinds of processes that are killed. Each item is drawn with the same probability, so candidates are killed most
often."""
PAUSE_SECONDS = (0.0, 0.3)
SETTLE_SECONDS = 30.0
SETTINGS = WorkerSettings(questions_at_once=2)
PARENT_CODE = """\
import sys
sys.path[:] = {path!r}
from {module} import judge_for_ever
judge_for_ever({seed})
"""

Outcomes = list[list[str]]


def run_kills(
    num_kills: int, *, seed: int, num_questions: int = 12, report: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Judge the same workload repeatedly, until ``num_kills`` processes were killed.

    Returns:
        Numbers of kills for each target, compared verdicts, differing verdicts, outages after which a candidate was
        judged again, and remaining processes (``orphans``). ``leftovers`` lists the remaining files. ``ok`` is True if
        no verdict differs and nothing is left over.
    """
    requests = _requests(num_questions, seed)
    files_before = _files()
    counts: Counter[str] = Counter()
    with JudgeProcesses(2, settings=SETTINGS) as judges:
        quiet = [_outcomes(result) for result in judges.judge_all(requests)]
        saboteur = Saboteur(judges, num_kills, seed=seed, report=report)
        saboteur.start()
        while saboteur.is_alive():
            _judge_round(judges, requests, quiet, counts)
    saboteur.join()
    num_orphans = _wait_for_the_end(saboteur.seen)
    leftovers = sorted(_files() - files_before)
    is_clean = not counts["differing"] and not num_orphans and not leftovers
    return {
        "ok": is_clean and saboteur.kills.total() >= num_kills,
        "kills": dict(saboteur.kills),
        "verdicts": counts["verdicts"],
        "differing": counts["differing"],
        "outages_asked_again": counts["outages"],
        "orphans": num_orphans,
        "leftovers": leftovers,
    }


def judge_for_ever(seed: int) -> None:
    """Print a line when judging begins, then judge until the process is killed: the main function of a parent."""
    requests = _requests(4, seed)
    with JudgeProcesses(1, settings=SETTINGS) as judges:
        sys.stdout.write("judging\n")
        sys.stdout.flush()
        while True:
            list(judges.judge_all(requests))


def _requests(num_questions: int, seed: int) -> list[JudgeRequest]:
    requests = []
    for question in workload(num_questions, seed=seed):
        requests += question.requests()
    return requests


def _outcomes(result: CandidateVerdict | SandboxUnavailableError) -> Outcomes | None:
    if isinstance(result, SandboxUnavailableError):
        return None
    return [[case.outcome.value for case in suite.cases] for suite in result.suites]


def _judge_round(
    judges: JudgeProcesses, requests: Sequence[JudgeRequest], quiet: Sequence[Outcomes | None], counts: Counter[str]
) -> None:
    """Judge all requests once. After an outage, a request is judged again until it has a verdict."""
    pending = list(range(len(requests)))
    while pending:
        results = judges.judge_all([requests[place] for place in pending])
        lost = []
        for place, result in zip(pending, results, strict=True):
            outcomes = _outcomes(result)
            if outcomes is None:
                lost.append(place)
            else:
                counts["verdicts"] += 1
                counts["differing"] += outcomes != quiet[place]
        counts["outages"] += len(lost)
        pending = lost


class Saboteur(threading.Thread):
    """Kills random processes one after another, and stores every process that it has seen."""

    def __init__(self, judges: JudgeProcesses, num_kills: int, *, seed: int, report: Callable[[str], None]) -> None:
        super().__init__(name="saboteur")
        self.kills: Counter[str] = Counter()
        self.seen: set[psutil.Process] = set()
        self._judges = judges
        self._num_kills = num_kills
        self._seed = seed
        self._rng = random.Random(seed)
        self._report = report

    def run(self) -> None:
        """Kill processes until the number of kills is reached."""
        while self.kills.total() < self._num_kills:
            time.sleep(self._rng.uniform(*PAUSE_SECONDS))
            target = self._rng.choice(TARGETS)
            if self._kill_parent() if target == "parent" else self._kill_inside(target):
                self.kills[target] += 1
                self._report(f"{self.kills.total()} of {self._num_kills} kills: {dict(self.kills)}")

    def _kill_inside(self, target: str) -> bool:
        generation = _alive(self._judges.worker_pids())
        for name in ("worker", "fork server", "candidate"):
            self.seen.update(generation)
            if name == target and generation:
                with contextlib.suppress(psutil.NoSuchProcess):
                    self._rng.choice(generation).send_signal(signal.SIGKILL)
                    return True
            generation = [child for process in generation for child in _children(process)]
        return False

    def _kill_parent(self) -> bool:
        """Start another judging process, let it work for a moment, and kill only this process, not its children."""
        code = PARENT_CODE.format(path=sys.path, module=__name__, seed=self._seed)
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as parent:
            assert parent.stdout is not None
            parent.stdout.readline()
            time.sleep(self._rng.uniform(*PAUSE_SECONDS))
            self.seen.update(_children(psutil.Process(parent.pid), recursive=True))
            parent.kill()
        return True


def _alive(pids: Sequence[int]) -> list[psutil.Process]:
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def _children(process: psutil.Process, *, recursive: bool = False) -> list[psutil.Process]:
    try:
        return process.children(recursive=recursive)
    except psutil.NoSuchProcess:
        return []


def _wait_for_the_end(processes: Iterable[psutil.Process]) -> int:
    """Give the processes time to end. Returns the number of processes that still run."""
    deadline = time.monotonic() + SETTLE_SECONDS
    alive = list(processes)
    while alive and time.monotonic() < deadline:
        time.sleep(0.05)
        alive = [process for process in alive if _is_running(process)]
    return len(alive)


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def _files() -> set[str]:
    found = set()
    for folder in ("/dev/shm", tempfile.gettempdir()):
        if os.path.isdir(folder):
            found.update(os.path.join(folder, name) for name in os.listdir(folder))
    return found
