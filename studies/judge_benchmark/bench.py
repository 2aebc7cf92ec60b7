"""``bench``: how fast the judge is, beside what else is in use, on the same programs in one run.

Everything is measured in interleaved rounds and reported as medians, so that load on the machine meets
all alike; ratios are medians of each round's ratio. A busy machine still blurs them: run it on a quiet one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from sandbox import (
    Call,
    CandidateVerdict,
    CaseOutcome,
    Gate,
    JudgeProcesses,
    JudgeRequest,
    Limits,
    LocalRunner,
    Program,
    Role,
    SandboxUnavailableError,
    matches,
    start_as_fork_server,
)

from .baselines import one_script, python_c, running_service, service
from .programs import NUM_CANDIDATES, NUM_CASES, NUM_SUITES, BenchQuestion, workload

ASSERTS = NUM_SUITES * NUM_CASES
"""Of one candidate."""
_FORKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "forks.py")
_SMALL_PROGRAM = "def f(n):\n    return n + 1\n"
_HANGING_SHARE = 0.02

Result = CandidateVerdict | SandboxUnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of everything to measure."""

    rounds: int
    questions_per_round: int
    step_questions: int
    """256 at the paper's scale; the figures of a smaller step are scaled up to it."""
    seconds: float
    """Of each measurement of forks."""


FULL = Size(rounds=5, questions_per_round=32, step_questions=256, seconds=2.0)
QUICK = Size(rounds=2, questions_per_round=2, step_questions=8, seconds=0.3)
PAPER_QUESTIONS = 256


def run_bench(size: Size, *, report: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Every figure, by its JSON key; rates are asserts per second unless their names say otherwise."""
    found: dict[str, Any] = {"cores": len(os.sched_getaffinity(0)), "load_before": os.getloadavg()[0]}
    for name, section in (
        ("against three ways in use", _ratios),
        ("forks and confinement", _forks),
        ("a whole step", _steps),
        ("candidates, workers, memory", _scaling),
        ("where the time goes", _breakdown),
    ):
        report(name)
        found |= section(size)
    return found | {"load_after": os.getloadavg()[0]}


def requests_of(questions: Sequence[BenchQuestion]) -> list[JudgeRequest]:
    """One request per candidate."""
    return [
        JudgeRequest(
            question_id=question.question_id,
            reference=question.reference,
            candidate=candidate.source,
            suites=candidate.suites,
        )
        for question in questions
        for candidate in question.candidates
    ]


def _ratios(size: Size) -> dict[str, Any]:
    """The judge and the three baselines, in turns, on the same new questions each round."""
    rates: dict[str, list[float]] = {"judge": [], "one_script": [], "python_c": [], "service": []}
    passes: set[tuple[int, ...]] = set()
    with running_service() as port, JudgeProcesses() as judges:
        _judge(judges, workload(2, seed=1000))  # every fork server has started
        ways: dict[str, Callable[[list[BenchQuestion]], int]] = {
            "judge": lambda questions: _count_passes(_judge(judges, questions)),
            "one_script": one_script,
            "python_c": python_c,
            "service": lambda questions: service(questions, port),
        }
        for number in range(size.rounds):
            questions = workload(size.questions_per_round, seed=number)
            counted = []
            for name, way in ways.items():
                seconds, count = _timed(partial(way, questions))
                rates[name].append(len(questions) * NUM_CANDIDATES * ASSERTS / seconds)
                counted.append(count)
            passes.add(tuple(counted))
    found: dict[str, Any] = {f"rate_{name}": statistics.median(values) for name, values in rates.items()}
    for name in ("one_script", "python_c", "service"):
        found[f"ratio_vs_{name}"] = statistics.median(
            mine / theirs for mine, theirs in zip(rates["judge"], rates[name], strict=True)
        )
    return found | {"passes_by_way": sorted(passes)}


def _judge(judges: JudgeProcesses, questions: Sequence[BenchQuestion]) -> list[Result]:
    return list(judges.judge_all(requests_of(questions)))


def _count_passes(results: Sequence[Result]) -> int:
    verdicts = [_verdict(result) for result in results]
    return sum(case.outcome is CaseOutcome.PASSED for one in verdicts for suite in one.suites for case in suite.cases)


def _verdict(result: Result) -> CandidateVerdict:
    if not isinstance(result, CandidateVerdict):
        raise result
    return result


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    value = work()
    return time.perf_counter() - started, value


def _forks(size: Size) -> dict[str, Any]:
    """Programs a second of the candidate pass and bare forks a second, with as many fork servers: two a core."""
    num_fork_servers = 2 * len(os.sched_getaffinity(0))
    bare, small, confinement = [], [], []
    with _fork_loops(num_fork_servers) as loops, LocalRunner(num_workers=num_fork_servers) as runner:
        _run_small(runner, num_fork_servers, size.seconds / 4)
        for _ in range(size.rounds):
            bare.append(sum(_ask_all(loops, f"rate {size.seconds}")))
            small.append(_run_small(runner, num_fork_servers, size.seconds))
            confinement += _ask_all(loops[:1], f"confine {size.seconds}")
    return {
        "rate_bare_forks_per_second": statistics.median(bare),
        "rate_small_programs_per_second": statistics.median(small),
        "fork_limit_frac": statistics.median(mine / limit for mine, limit in zip(small, bare, strict=True)),
        "confinement_ms": statistics.median(confinement),
    }


@contextmanager
def _fork_loops(count: int) -> Iterator[list[subprocess.Popen[str]]]:
    loops = [start_as_fork_server(_FORKS) for _ in range(count)]
    try:
        for loop in loops:
            assert loop.stdout is not None
            loop.stdout.readline()
        yield loops
    finally:
        for loop in loops:
            loop.kill()
            loop.communicate()


def _ask_all(loops: Sequence[subprocess.Popen[str]], request: str) -> list[float]:
    """Send every loop a request, then read every response."""
    for loop in loops:
        assert loop.stdin is not None
        loop.stdin.write(request + "\n")
        loop.stdin.flush()
    return [json.loads(loop.stdout.readline()) for loop in loops if loop.stdout is not None]


def _run_small(runner: LocalRunner, num_threads: int, seconds: float, *, num_calls: int = NUM_CASES) -> float:
    """Small programs a second, one suite's calls each, from ``num_threads`` threads."""
    program = _program(_SMALL_PROGRAM, [f"f({n})" for n in range(num_calls)])
    counts = [0] * num_threads
    deadline = time.monotonic() + seconds

    def work(thread: int) -> None:
        while time.monotonic() < deadline:
            runner.run(program, role=Role.CANDIDATE)
            counts[thread] += 1

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(num_threads)]
    started = time.perf_counter()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return sum(counts) / (time.perf_counter() - started)


def _program(source: str, calls: Sequence[str]) -> Program:
    return Program(
        prelude="",
        source=source,
        calls=tuple(Call(expression=call) for call in calls),
        reference_cpu_seconds=(0.0,) * len(calls),
        limits=Limits(),
    )


def _steps(size: Size) -> dict[str, Any]:
    """A step without and with hanging candidates, by the clock."""
    found: dict[str, Any] = {"step_candidates": size.step_questions * NUM_CANDIDATES}
    with JudgeProcesses() as judges:
        _judge(judges, workload(2, seed=1000))
        for key, share in (("step_seconds", 0.0), ("step_seconds_with_hangs", _HANGING_SHARE)):
            questions = workload(size.step_questions, seed=7, hanging_frac=share)
            seconds, results = _timed(partial(_judge, judges, questions))
            for result in results:
                _verdict(result)
            found[key] = seconds * PAPER_QUESTIONS / size.step_questions
    return found | {"hangs_factor": found["step_seconds_with_hangs"] / found["step_seconds"]}


def _scaling(size: Size) -> dict[str, Any]:
    """Candidates a second of a small and of a large batch, and of one to as many workers as cores; memory."""
    found: dict[str, Any] = {"candidates_per_second_by_batch": {}, "candidates_per_second_by_workers": {}}
    large = 2 * size.questions_per_round
    for num_workers in range(1, len(os.sched_getaffinity(0)) + 1):
        with JudgeProcesses(num_workers) as judges:
            _judge(judges, workload(2 * num_workers, seed=1000))
            for num_questions in (large // 2, large):
                questions = workload(num_questions, seed=11)
                seconds, _ = _timed(partial(_judge, judges, questions))
                rate = num_questions * NUM_CANDIDATES / seconds
                found["candidates_per_second_by_workers"][str(num_workers)] = rate
                found["candidates_per_second_by_batch"][str(num_questions * NUM_CANDIDATES)] = rate
            memory = [tree_mib(pid) for pid in judges.worker_pids()]
            found["memory_mib_per_worker"] = statistics.median(memory)
    return found


def tree_mib(pid: int) -> float:
    """Proportional share of memory of a process and its children, MiB; resident size where it cannot be read."""
    with open(f"/proc/{pid}/task/{pid}/children") as handle:
        below = [int(child) for child in handle.read().split()]
    try:
        with open(f"/proc/{pid}/smaps_rollup") as handle:
            kib = next(int(line.split()[1]) for line in handle if line.startswith("Pss:"))
    except OSError:
        with open(f"/proc/{pid}/statm") as handle:
            kib = int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    return kib / 1024 + sum(map(tree_mib, below))


def _breakdown(size: Size) -> dict[str, Any]:
    """Milliseconds of one candidate by part, each measured alone in one thread."""
    question = workload(1, seed=21)[0]
    repeats = 10 * size.rounds
    texts = [text for candidate in question.candidates for suite in candidate.suites for text in suite]
    seconds, _ = _timed(lambda: Gate(question.reference, (), assert_chars=Limits().assert_chars).suite(texts))
    candidate = question.candidates[0]
    gate = Gate(question.reference, (), assert_chars=Limits().assert_chars)
    cases = [case for suite in candidate.suites for case in gate.suite(suite).cases]
    calls = [case.call.expression for case in cases]
    compare, _ = _timed(lambda: [matches(case.expected_value, case.expected_value + b"") for case in cases])
    parts = {"parse_asserts": 1e3 * seconds / NUM_CANDIDATES, "compare": 1e3 * compare}
    with _fork_loops(1) as loops, LocalRunner() as runner:
        parts["bare_fork"] = 1e3 / _ask_all(loops, f"rate {size.seconds}")[0]
        parts["confine"] = _ask_all(loops, f"confine {size.seconds}")[0]
        one = _median_ms(runner, _program(_SMALL_PROGRAM, ["f(1)"]), repeats)
        loaded = _median_ms(runner, _program(candidate.source, calls[:1]), repeats)
        whole = _median_ms(runner, _program(candidate.source, calls), repeats)
    parts["requests_responses_and_reaping"] = one - parts["bare_fork"] - parts["confine"]
    parts["load"] = loaded - one
    parts["calls_encoding_and_transfer"] = whole - loaded
    return {"milliseconds_per_candidate": parts}


def _median_ms(runner: LocalRunner, program: Program, repeats: int) -> float:
    runner.run(program, role=Role.CANDIDATE)
    return 1e3 * statistics.median(_timed(lambda: runner.run(program, role=Role.CANDIDATE))[0] for _ in range(repeats))
