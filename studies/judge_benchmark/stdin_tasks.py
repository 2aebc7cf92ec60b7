"""Measures tasks per second on standard-input problems, for the judge and for two other ways to run programs.

A task is one program on all ``NUM_TESTS`` tests of its problem. Of the eight programs of a problem, four are correct,
two print wrong output, one raises on some tests, and one never ends on a quarter of the tests. The two other ways do
not confine programs. One of them starts an interpreter for each test, like SandboxFusion's ``run_code``. The other way
is verl's ``prime_code``: one forked process runs all tests of a program, and its time limit holds for all tests
together.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from sandbox import JudgeProcesses, JudgeRequest, Limits, WorkerSettings

NUM_TESTS = 24
LIMIT_SECONDS = 1.0
"""Time limit of a test: CPU seconds in the judge, wall seconds in the other two ways."""
LIMITS = Limits(cpu_seconds_per_case=LIMIT_SECONDS, total_seconds=30.0)
SIZES = (1, 5, 50, 1000)

READ = "import sys\ndata = sys.stdin.read().split()\nn, xs = int(data[0]), [int(word) for word in data[1:]]\n"
RUN = "best = r = 1\nfor a, b in zip(xs, xs[1:]):\n    r = r + 1 if b {} a else 1\n    best = max(best, r)\nprint(best)"
PROBLEMS: dict[str, tuple[str, str, str]] = {  # endings of programs: two correct ones and a wrong one
    "sum": ("print(sum(xs))", "total = 0\nfor x in xs:\n    total += x\nprint(total)", "print(sum(xs[:-1]))"),
    "largest": ("print(max(xs))", "print(sorted(xs)[-1])", "print(max([0] + xs))"),
    "sorted": ("print(*sorted(xs))", "xs.sort()\nprint(' '.join(map(str, xs)))", "print(*sorted(set(xs)))"),
    "prefix sums": (
        "from itertools import accumulate\nprint(*accumulate(xs))",
        "t = 0\nout = []\nfor x in xs:\n    t += x\n    out.append(t)\nprint(*out)",
        "t = 0\nfor x in xs:\n    t += abs(x)\n    print(t)",
    ),
    "distinct": ("print(len(set(xs)))", "print(len({x: 1 for x in xs}))", "print(len(set(map(abs, xs))))"),
    "rising run": (
        RUN.format(">"),
        "best = i = 0\nwhile i < n:\n    j = i + 1\n    while j < n and xs[j] > xs[j - 1]:\n        j += 1\n"
        "    best, i = max(best, j - i), j\nprint(best)",
        RUN.format("!="),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One program on the tests of its problem."""

    problem: str
    reference: str
    program: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    is_right: bool

    def request(self) -> JudgeRequest:
        """Make the judge's request for the task."""
        pairs = zip(self.inputs, self.outputs, strict=True)
        suite = tuple(f"assert run({given!r}) == {printed!r}" for given, printed in pairs)
        return JudgeRequest(
            question_id=self.problem, reference=self.reference, candidate=self.program, suites=(suite,), kind="stdin"
        )


def _make_tasks(num_problems: int, *, seed: int) -> list[Task]:
    """Make eight tasks for each of ``num_problems`` problems. Each problem draws new numbers."""
    tasks = []
    for place in range(num_problems):
        name = list(PROBLEMS)[place % len(PROBLEMS)]
        right, other, wrong = (READ + ending + "\n" for ending in PROBLEMS[name])
        rng = random.Random(f"{seed}:{place}")
        inputs = []
        for _ in range(NUM_TESTS):
            numbers = [rng.randint(-50, 50) for _ in range(rng.choice(SIZES))]
            inputs.append(f"{len(numbers)}\n{' '.join(map(str, numbers))}\n")
        outputs = tuple(_printed(right, text) for text in inputs)
        guarded = f"{right}\nif __name__ == '__main__':\n    pass\n"
        talking = f"print('The answer is')\n{right}"
        raising = f"{right}if xs[-1] % 5 == 0:\n    raise ValueError(n)\n"
        slow = f"{right}while xs[0] % 4 == 0:\n    pass\n"
        programs = [right, other, f"import math\n{right}", guarded, wrong, talking, raising, slow]
        for number, program in enumerate(programs):
            tasks.append(
                Task(
                    problem=f"{place} {name}",
                    reference=right,
                    program=f"# problem {place}, program {number}\n{program}",
                    inputs=tuple(inputs),
                    outputs=outputs,
                    is_right=number < 4,
                )
            )
    return tasks


def _printed(program: str, text: str) -> str:
    """Run a program of this file in this process, which is safe because it is our own code. Returns the output."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    before, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(program, scope)
    finally:
        sys.stdin = before
    return out.getvalue()


def run_stdin_benchmark(*, num_problems: int, report: Callable[[str], None]) -> dict[str, Any]:
    """Measure the tasks per second of each way, with one process for each core."""
    tasks = _make_tasks(num_problems, seed=3)
    few = _make_tasks(max(1, num_problems // 8), seed=4)
    cores = len(os.sched_getaffinity(0))
    found: dict[str, Any] = {"tests_a_task": NUM_TESTS, "limit_seconds": LIMIT_SECONDS}
    with JudgeProcesses(cores, settings=WorkerSettings(runner={"limits": LIMITS})) as judges:
        _judged(judges, few)  # starts every fork server before the measurement
        ways: dict[str, tuple[Callable[[Sequence[Task]], list[bool]], list[Task]]] = {
            "judge": (lambda chosen: _judged(judges, chosen), tasks),
            "an interpreter a test": (lambda chosen: _in_threads(_by_interpreters, chosen, cores), few),
            "verl's prime_code": (lambda chosen: _in_threads(_by_prime_code, chosen, cores), few),
        }
        for name, (way, chosen) in ways.items():
            started = time.perf_counter()
            passed = way(chosen)
            rate = len(chosen) / (time.perf_counter() - started)
            num_wrong = sum(one != task.is_right for one, task in zip(passed, chosen, strict=True))
            found[f"{name}, tasks_per_second"] = rate
            found[f"{name}, wrong_verdicts"] = f"{num_wrong} of {len(chosen)}"
            report(f"{name}: {rate:.2f} tasks/s, {num_wrong} of {len(chosen)} verdicts wrong")
    return found


def _judged(judges: JudgeProcesses, tasks: Sequence[Task]) -> list[bool]:
    passed = []
    for verdict in judges.judge_all([task.request() for task in tasks]):
        if isinstance(verdict, Exception):
            raise verdict
        cases = verdict.suites[0].cases
        passed.append(bool(cases) and not any(case.outcome.failed for case in cases))
    return passed


def _in_threads(judge: Callable[[Task], bool], tasks: Sequence[Task], num_threads: int) -> list[bool]:
    with ThreadPoolExecutor(num_threads) as pool:
        return list(pool.map(judge, tasks))


def _by_interpreters(task: Task) -> bool:
    """Run all tests even after a failure, because rewards need the result of each test."""
    num_passed = 0
    for given, wanted in zip(task.inputs, task.outputs, strict=True):
        command = [sys.executable, "-c", task.program]
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                command, input=given, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
            )
            num_passed += done.returncode == 0 and done.stdout.split() == wanted.split()
    return num_passed == len(task.inputs)


def _by_prime_code(task: Task) -> bool:
    # imported here, because verl is not installed in every environment
    from verl.utils.reward_score.prime_code.utils import check_correctness

    tests = {"inputs": list(task.inputs), "outputs": list(task.outputs)}
    results, _ = check_correctness(tests, task.program, timeout=int(LIMIT_SECONDS), debug=False)
    return len(results) == len(task.inputs) and all(result is True for result in results)
