"""Tasks a second on standard-input problems with many tests, some at the time limit, beside two other ways.

A task is one program on all ``NUM_TESTS`` tests of its problem. Of eight programs of a problem four are right, two
print something wrong, one raises on some tests, and one never ends on a quarter of them. The other ways confine
nothing: an interpreter for each test, as SandboxFusion's ``run_code`` starts one; and verl's ``prime_code``, one forked
process for a program, whose tests share it and its limit of time.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sandbox import Judge, JudgeProcesses, JudgeRequest, Limits, WorkerSettings

from .bench import tree_mib

NUM_TESTS = 24
LIMIT_SECONDS = 1.0
"""Of a test: CPU seconds here, seconds in the other two ways."""
LIMITS = Limits(cpu_seconds_per_case=LIMIT_SECONDS, total_seconds=30.0)

_READ = "import sys\ndata = sys.stdin.read().split()\nn, xs = int(data[0]), [int(word) for word in data[1:]]\n"
_RUN = (
    "best = r = 1\nfor a, b in zip(xs, xs[1:]):\n    r = r + 1 if b {} a else 1\n    best = max(best, r)\nprint(best)"
)
_PROBLEMS: dict[str, tuple[str, str, str]] = {  # a right ending, another one, a wrong one
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
        _RUN.format(">"),
        "best = i = 0\nwhile i < n:\n    j = i + 1\n    while j < n and xs[j] > xs[j - 1]:\n        j += 1\n"
        "    best, i = max(best, j - i), j\nprint(best)",
        _RUN.format("!="),
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


def make_tasks(num_problems: int, *, seed: int) -> list[Task]:
    """Eight tasks for each of ``num_problems`` problems, whose numbers are drawn anew."""
    tasks = []
    for place in range(num_problems):
        name = list(_PROBLEMS)[place % len(_PROBLEMS)]
        right, other, wrong = (_READ + ending + "\n" for ending in _PROBLEMS[name])
        rng = random.Random(f"{seed}:{place}")
        drawn = [[rng.randint(-50, 50) for _ in range(rng.choice((1, 5, 50, 1000)))] for _ in range(NUM_TESTS)]
        inputs = tuple(f"{len(xs)}\n{' '.join(map(str, xs))}\n" for xs in drawn)
        outputs = tuple(_printed(right, text) for text in inputs)
        slow = right + "while xs[0] % 4 == 0:\n    pass\n"
        raising = right + "if xs[-1] % 5 == 0:\n    raise ValueError(n)\n"
        guarded = f"{right}\nif __name__ == '__main__':\n    pass\n"
        talking = f"print('The answer is')\n{right}"
        programs = [right, other, f"import math\n{right}", guarded, wrong, talking, raising, slow]
        for number, program in enumerate(programs):
            tasks.append(
                Task(
                    problem=f"{place} {name}",
                    reference=right,
                    program=f"# problem {place}, program {number}\n{program}",
                    inputs=inputs,
                    outputs=outputs,
                    is_right=number < 4,
                )
            )
    return tasks


def _printed(program: str, text: str) -> str:
    """What a program of this file prints; it ships with the package."""
    import contextlib
    import io

    scope: dict[str, Any] = {"__name__": "__main__"}
    before, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(program, scope)
    finally:
        sys.stdin = before
    return out.getvalue()


def run_stdin_benchmark(*, num_problems: int, nodes: int, report: Callable[[str], None]) -> dict[str, Any]:
    """Tasks a second of each way, and of one to as many workers as there are cores; also over ``nodes`` of Ray."""
    tasks, few = make_tasks(num_problems, seed=3), make_tasks(max(1, num_problems // 8), seed=4)
    cores = len(os.sched_getaffinity(0))
    rates: dict[str, float] = {}
    found: dict[str, Any] = {"tests_a_task": NUM_TESTS, "limit_seconds": LIMIT_SECONDS, "tasks_per_second": rates}
    for workers in range(1, cores + 1):
        settings = WorkerSettings(runner={"limits": LIMITS})
        with JudgeProcesses(workers, settings=settings) as judges:
            _judged(judges, few)
            seconds, wrong = _timed(partial(_judged, judges, tasks))
            memory = max(tree_mib(pid) for pid in judges.worker_pids())
        rates[f"judge, {workers} workers"] = len(tasks) / seconds
        found[f"wrong verdicts, judge, {workers} workers"] = wrong
        found["memory_mib_per_worker"] = memory
        report(f"judge, {workers} workers: {len(tasks) / seconds:.2f} tasks/s, {wrong} wrong")
    for name, way in (("an interpreter a test", _interpreters), ("verl's prime_code", _prime_code)):
        seconds, wrong = _timed(partial(way, few, cores))
        rates[name] = len(few) / seconds
        found[f"wrong verdicts, {name}"] = wrong
        report(f"{name}: {len(few) / seconds:.2f} tasks/s, {wrong} of {len(few)} wrong")
    for count in range(1, nodes + 1):
        with _ray_nodes(count) as runner:
            _through(runner, few, count)
            seconds, wrong = _timed(partial(_through, runner, tasks, 4 * count))
        rates[f"Ray, {count} nodes of one program at once"] = len(tasks) / seconds
        report(f"Ray, {count} nodes: {len(tasks) / seconds:.2f} tasks/s, {wrong} wrong")
    best = rates[f"judge, {cores} workers"]
    found["tasks_per_second_and_core"] = best / cores
    found["times"] = {name: best / rate for name, rate in rates.items() if not name.startswith(("judge", "Ray"))}
    return found


def _timed(work: Callable[[], int]) -> tuple[float, int]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def _request(task: Task) -> JudgeRequest:
    asserts = tuple(
        f"assert run({given!r}) == {printed!r}" for given, printed in zip(task.inputs, task.outputs, strict=True)
    )
    return JudgeRequest(
        question_id=task.problem, reference=task.reference, candidate=task.program, suites=(asserts,), kind="stdin"
    )


def _is_right(verdict: Any) -> bool:
    cases = verdict.suites[0].cases
    return len(cases) > 0 and not any(case.outcome.failed for case in cases)


def _judged(judges: JudgeProcesses, tasks: Sequence[Task]) -> int:
    """How many verdicts are wrong."""
    verdicts = judges.judge_all([_request(task) for task in tasks])
    return sum(_is_right(verdict) != task.is_right for verdict, task in zip(verdicts, tasks, strict=True))


def _through(runner: Any, tasks: Sequence[Task], num_threads: int) -> int:
    """The same with one judge, whose programs run where ``runner`` says."""
    judge = Judge(runner, limits=LIMITS)
    with ThreadPoolExecutor(num_threads) as pool:
        verdicts = pool.map(judge.judge, map(_request, tasks))
        return sum(_is_right(verdict) != task.is_right for verdict, task in zip(verdicts, tasks, strict=True))


@contextmanager
def _ray_nodes(count: int) -> Iterator[Any]:
    """A cluster of ``count`` nodes on this machine, one program at once on each."""
    import ray
    from ray.cluster_utils import Cluster

    from code_a1_recipe.training.ray_runner import RayRunner

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    for _ in range(count - 1):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        with RayRunner(programs_per_node=1, limits=LIMITS) as runner:
            yield runner
    finally:
        ray.shutdown()
        cluster.shutdown()


def _interpreters(tasks: Sequence[Task], num_threads: int) -> int:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(num_threads) as pool:
        found = pool.map(partial(_by_interpreters, Path(folder)), tasks)
        return sum(passed != task.is_right for passed, task in zip(found, tasks, strict=True))


def _by_interpreters(folder: Path, task: Task) -> bool:
    """All tests, since rewards need each of them."""
    path = folder / f"{threading.get_ident()}.py"
    path.write_text(task.program)
    passed = []
    for given, wanted in zip(task.inputs, task.outputs, strict=True):
        try:
            done = subprocess.run(
                [sys.executable, path], input=given, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
            )
            passed.append(done.returncode == 0 and done.stdout.split() == wanted.split())
        except subprocess.TimeoutExpired:
            passed.append(False)
    return all(passed)


def _prime_code(tasks: Sequence[Task], num_threads: int) -> int:
    with ThreadPoolExecutor(num_threads) as pool:
        found = pool.map(_by_prime_code, tasks)
        return sum(passed != task.is_right for passed, task in zip(found, tasks, strict=True))


def _by_prime_code(task: Task) -> bool:
    from verl.utils.reward_score.prime_code.utils import check_correctness

    tests = {"inputs": list(task.inputs), "outputs": list(task.outputs)}
    results, _ = check_correctness(tests, task.program, timeout=int(LIMIT_SECONDS), debug=False)
    return len(results) == len(task.inputs) and all(result is True for result in results)
