"""Kills at random moments: candidates, fork servers, judge workers and whole parents, while candidates are judged.

No verdict may differ from the quiet run's, no candidate may be left without one, and no process, file
or shared-memory segment may be left over.
"""

from __future__ import annotations

import contextlib
import glob
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

from sandbox import CandidateVerdict, JudgeProcesses, JudgeRequest, SandboxUnavailableError, WorkerSettings

from .programs import workload

TARGETS = ("candidate", "candidate", "candidate", "fork server", "worker", "parent")
"""Drawn from evenly."""
_PAUSE_SECONDS = (0.0, 0.3)
_SETTLE_SECONDS = 30.0
_SETTINGS = WorkerSettings(questions_at_once=2)
_PARENT_CODE = """\
import sys
sys.path[:] = {path!r}
from {module} import judge_for_ever
judge_for_ever({seed})
"""

Outcomes = tuple[tuple[str, ...], ...]


def run_kills(
    num_kills: int, *, seed: int, num_questions: int = 12, report: Callable[[str], None] = lambda line: None
) -> dict[str, object]:
    """Judge the same workload again and again under ``num_kills`` kills.

    Returns:
        Kills by target, verdicts compared, ``differing`` ones, outages that were asked again,
        ``orphans``, ``leftovers``, and ``ok``: the last three of these are as they must be.
    """
    requests = _requests(num_questions, seed)
    files_before = _files()
    saboteur = _Saboteur(num_kills, seed=seed, report=report)
    counts: Counter[str] = Counter()
    with JudgeProcesses(2, settings=_SETTINGS) as judges:
        quiet = [_outcomes(result) for result in judges.judge_all(requests)]
        saboteur.start(judges)
        while saboteur.is_alive():
            _judge_round(judges, requests, quiet, counts)
    saboteur.join()
    orphans = saboteur.wait_for_the_dead()
    leftovers = sorted(_files() - files_before)
    is_fine = not counts["differing"] and not orphans and not leftovers and sum(saboteur.kills.values()) >= num_kills
    return {
        "ok": is_fine,
        "kills": dict(saboteur.kills),
        "verdicts": counts["verdicts"],
        "differing": counts["differing"],
        "outages_asked_again": counts["outages"],
        "orphans": orphans,
        "leftovers": leftovers,
    }


def judge_for_ever(seed: int) -> None:
    """Body of a parent that is to be killed: says when it begins, then judges until it is."""
    requests = _requests(4, seed)
    with JudgeProcesses(1, settings=_SETTINGS) as judges:
        sys.stdout.write("judging\n")
        sys.stdout.flush()
        while True:
            list(judges.judge_all(requests))


def _requests(num_questions: int, seed: int) -> list[JudgeRequest]:
    return [
        JudgeRequest(
            question_id=question.question_id,
            reference=question.reference,
            candidate=candidate.source,
            suites=candidate.suites,
        )
        for question in workload(num_questions, seed=seed)
        for candidate in question.candidates
    ]


def _outcomes(result: CandidateVerdict | SandboxUnavailableError) -> Outcomes | None:
    if isinstance(result, SandboxUnavailableError):
        return None
    return tuple(tuple(case.outcome.value for case in suite.cases) for suite in result.suites)


def _judge_round(
    judges: JudgeProcesses, requests: Sequence[JudgeRequest], quiet: Sequence[Outcomes | None], counts: Counter[str]
) -> None:
    """Judge everything once; what ends in an outage is asked again until there is a verdict."""
    pending = list(range(len(requests)))
    while pending:
        results = list(judges.judge_all([requests[place] for place in pending]))
        lost = []
        for place, result in zip(pending, results, strict=True):
            outcomes = _outcomes(result)
            if outcomes is None:
                lost.append(place)
                continue
            counts["verdicts"] += 1
            counts["differing"] += outcomes != quiet[place]
        counts["outages"] += len(lost)
        pending = lost


class _Saboteur(threading.Thread):
    """Kills one process after another, chosen by seed, and remembers every process it has ever seen."""

    def __init__(self, num_kills: int, *, seed: int, report: Callable[[str], None]) -> None:
        super().__init__(name="saboteur")
        self.kills: Counter[str] = Counter()
        self._num_kills = num_kills
        self._seed = seed
        self._rng = random.Random(seed)
        self._report = report
        self._seen: set[tuple[int, str]] = set()
        self._judges: JudgeProcesses | None = None

    def start(self, judges: JudgeProcesses | None = None) -> None:
        self._judges = judges
        super().start()

    def run(self) -> None:
        while sum(self.kills.values()) < self._num_kills:
            time.sleep(self._rng.uniform(*_PAUSE_SECONDS))
            target = self._rng.choice(TARGETS)
            if self._kill_parent() if target == "parent" else self._kill_inside(target):
                self.kills[target] += 1
                self._report(f"{sum(self.kills.values())} of {self._num_kills} kills: {dict(self.kills)}")

    def _kill_inside(self, target: str) -> bool:
        assert self._judges is not None
        found = {"worker": list(self._judges.worker_pids())}
        found["fork server"] = [child for pid in found["worker"] for child in _children(pid)]
        found["candidate"] = [child for pid in found["fork server"] for child in _children(pid)]
        for pid in [pid for pids in found.values() for pid in pids]:
            self._remember(pid)
        if not found[target]:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._rng.choice(found[target]), signal.SIGKILL)
            return True
        return False

    def _kill_parent(self) -> bool:
        """Start another judging process, let it work for a moment, kill it alone."""
        code = _PARENT_CODE.format(path=sys.path, module=__name__, seed=self._seed)
        parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert parent.stdout is not None
        parent.stdout.readline()
        time.sleep(self._rng.uniform(*_PAUSE_SECONDS))
        for pid in _descendants(parent.pid):
            self._remember(pid)
        parent.kill()
        parent.wait()
        parent.stdout.close()
        return True

    def _remember(self, pid: int) -> None:
        if (started := _start_time(pid)) is not None:
            self._seen.add((pid, started))

    def wait_for_the_dead(self) -> int:
        """How many of all processes ever seen still run when they have had time to end."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        while alive := [pid for pid, started in self._seen if _start_time(pid) == started]:
            if time.monotonic() > deadline:
                return len(alive)
            time.sleep(0.05)
        return 0


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path) as handle:
            found += map(int, handle.read().split())
    return found


def _descendants(pid: int) -> list[int]:
    children = _children(pid)
    return children + [below for child in children for below in _descendants(child)]


def _start_time(pid: int) -> str | None:
    """What tells a process from a later one of the same pid; None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as handle:
            parts = handle.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if parts[0] in "ZX" else parts[19]


def _files() -> set[str]:
    return {
        os.path.join(folder, name)
        for folder in ("/dev/shm", tempfile.gettempdir())
        if os.path.isdir(folder)
        for name in os.listdir(folder)
    }
