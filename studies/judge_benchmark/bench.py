"""Measures the speed of the judge and of two other ways to run programs, on the same programs.

In each round, all ways run one after the other, so that load on the machine affects all ways. The figures are medians
over rounds; a ratio is the median of the ratios of all rounds. Load still makes the figures less exact, so use a quiet
machine.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import truediv
from typing import Any

from sandbox import CandidateVerdict, CaseOutcome, JudgeProcesses

from .baselines import one_script, python_c
from .programs import ASSERTS, NUM_CANDIDATES, BenchQuestion, workload

HANGING_SHARES = {"": 0.0, "_2_percent_hang": 0.02, "_10_percent_hang": 0.1}
PAPER_QUESTIONS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Size of the measurement."""

    rounds: int
    questions_per_round: int
    step_questions: int
    """Questions of a step. The paper has 256 questions; the time of a smaller step is scaled up to this number."""
    step_rounds: int


FULL = Size(rounds=5, questions_per_round=32, step_questions=256, step_rounds=3)
QUICK = Size(rounds=2, questions_per_round=2, step_questions=16, step_rounds=1)


def run_bench(size: Size) -> dict[str, Any]:
    """Measure all figures: name -> value. Rates are asserts per second."""
    found: dict[str, Any] = {
        "cores": len(os.sched_getaffinity(0)),
        "load_before": os.getloadavg()[0],
    }
    with JudgeProcesses() as judges:
        _judge(judges, workload(2, seed=1000))  # starts every fork server before the measurement
        found |= _ratios(judges, size)
        found |= _steps(judges, size)
        memory = [_tree_mib(pid) for pid in judges.worker_pids()]
    found["memory_mib_per_worker"] = statistics.median(memory)
    found["load_after"] = os.getloadavg()[0]
    return found


def _ratios(judges: JudgeProcesses, size: Size) -> dict[str, Any]:
    """Measure the rates of all ways. Each round has new questions, and all ways get the same questions."""
    ways: dict[str, Callable[[list[BenchQuestion]], int]] = {
        "judge": lambda questions: _judge(judges, questions),
        "one_script": one_script,
        "python_c": python_c,
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    passes = []
    for number in range(size.rounds):
        questions = workload(size.questions_per_round, seed=number)
        counts = []
        for name, way in ways.items():
            started = time.perf_counter()
            counts.append(way(questions))
            seconds = time.perf_counter() - started
            rates[name].append(len(questions) * NUM_CANDIDATES * ASSERTS / seconds)
        passes.append(counts)
    found: dict[str, Any] = {f"rate_{name}": statistics.median(values) for name, values in rates.items()}
    for name in ("one_script", "python_c"):
        pairs = zip(rates["judge"], rates[name], strict=True)
        found[f"ratio_vs_{name}"] = statistics.median(judge / other for judge, other in pairs)
    return found | {"passes_by_way": passes}


def _judge(judges: JudgeProcesses, questions: Sequence[BenchQuestion]) -> int:
    """Judge all candidates. Returns the number of asserts that passed."""
    num_passed = 0
    requests = []
    for question in questions:
        requests += question.requests()
    for verdict in judges.judge_all(requests):
        if not isinstance(verdict, CandidateVerdict):
            raise verdict
        for suite in verdict.suites:
            num_passed += sum(case.outcome is CaseOutcome.PASSED for case in suite.cases)
    return num_passed


def _steps(judges: JudgeProcesses, size: Size) -> dict[str, float]:
    """Measure the wall time of a step without hanging candidates, and of steps with hanging candidates.

    The steps take turns. The figures are medians, and medians of the ratios to the step without.
    """
    times: dict[str, list[float]] = {name: [] for name in HANGING_SHARES}
    for number in range(size.step_rounds):
        for name, share in HANGING_SHARES.items():
            questions = workload(size.step_questions, seed=7 + number, hanging_frac=share)
            started = time.perf_counter()
            _judge(judges, questions)
            times[name].append((time.perf_counter() - started) * PAPER_QUESTIONS / size.step_questions)
    found = {f"step_seconds{name}": statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        if name:
            found[f"step_ratio{name}"] = statistics.median(map(truediv, values, times[""]))
    return found


def _tree_mib(pid: int) -> float:
    """Return the proportional set size of a process and its children, in MiB.

    If the system forbids reading this size for a process, the resident size of the process counts instead.
    """
    with open(f"/proc/{pid}/task/{pid}/children") as handle:
        children = [int(child) for child in handle.read().split()]
    try:
        with open(f"/proc/{pid}/smaps_rollup") as handle:
            sizes = [line.split()[1] for line in handle if line.startswith("Pss:")]
        kib = int(sizes[0])
    except OSError:
        with open(f"/proc/{pid}/statm") as handle:
            num_pages = int(handle.read().split()[1])
        kib = num_pages * os.sysconf("SC_PAGE_SIZE") // 1024
    return kib / 1024 + sum(map(_tree_mib, children))
