"""How fast the judge is, beside other ways in use, on the same programs in one run.

The ways take turns in rounds and medians are reported, so that load on the machine meets all alike; ratios are medians
of each round's ratio. A busy machine still blurs them: run it on a quiet one.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox import CandidateVerdict, CaseOutcome, JudgeProcesses

from .baselines import one_script, python_c
from .programs import ASSERTS, NUM_CANDIDATES, BenchQuestion, workload

HANGING_SHARE = 0.02
PAPER_QUESTIONS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of everything to measure."""

    rounds: int
    questions_per_round: int
    step_questions: int
    """256 at the paper's scale; the figures of a smaller step are scaled up to it."""


FULL = Size(rounds=5, questions_per_round=32, step_questions=256)
QUICK = Size(rounds=2, questions_per_round=2, step_questions=8)


def run_bench(size: Size) -> dict[str, Any]:
    """Measure every figure, by name; rates are asserts per second."""
    found: dict[str, Any] = {"cores": len(os.sched_getaffinity(0)), "load_before": os.getloadavg()[0]}
    with JudgeProcesses() as judges:
        _judge(judges, workload(2, seed=1000))  # every fork server has started
        found |= _ratios(judges, size) | _steps(judges, size)
        found["memory_mib_per_worker"] = statistics.median(tree_mib(pid) for pid in judges.worker_pids())
    return found | {"load_after": os.getloadavg()[0]}


def _ratios(judges: JudgeProcesses, size: Size) -> dict[str, Any]:
    """The judge and the other ways, in turns, on the same new questions each round."""
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
    """Judge everything; returns the number of asserts that passed."""
    num_passed = 0
    requests = [request for question in questions for request in question.requests()]
    for verdict in judges.judge_all(requests):
        if not isinstance(verdict, CandidateVerdict):
            raise verdict
        for suite in verdict.suites:
            num_passed += sum(case.outcome is CaseOutcome.PASSED for case in suite.cases)
    return num_passed


def _steps(judges: JudgeProcesses, size: Size) -> dict[str, float]:
    """A step without and with hanging candidates, by the clock."""
    found = {}
    for name, share in (("step_seconds", 0.0), ("step_seconds_with_hangs", HANGING_SHARE)):
        questions = workload(size.step_questions, seed=7, hanging_frac=share)
        started = time.perf_counter()
        _judge(judges, questions)
        found[name] = (time.perf_counter() - started) * PAPER_QUESTIONS / size.step_questions
    return found


def tree_mib(pid: int) -> float:
    """Proportional share of memory of a process and its children, MiB; resident size where it cannot be read."""
    with open(f"/proc/{pid}/task/{pid}/children") as handle:
        children = [int(child) for child in handle.read().split()]
    try:
        with open(f"/proc/{pid}/smaps_rollup") as handle:
            kib = next(int(line.split()[1]) for line in handle if line.startswith("Pss:"))
    except OSError:
        with open(f"/proc/{pid}/statm") as handle:
            kib = int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    return kib / 1024 + sum(map(tree_mib, children))
