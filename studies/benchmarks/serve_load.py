"""``python -m examples.benchmarks.serve_load``: clients load ``python -m sandbox serve`` on this machine.

One kind of request after another: programs in SandboxFusion's form, requests to the judge, then both with twice as many
clients as places, so that some are refused. Prints the rate held, times to an answer, refusals and memory.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from examples.arguments import positive
from examples.judge_benchmark.bench import tree_mib
from examples.judge_benchmark.stdin_tasks import Task, make_tasks


@dataclass(slots=True)
class Load:
    """What the clients of one round saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """Of the requests that were answered with 200."""
    num_tests: int = 0
    wrong: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Load the service; exit status 1 where an answer was wrong or an outage."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m examples.benchmarks.serve_load", description=__doc__)
    parser.add_argument("--seconds", type=positive, default=30, help="of each round (default 30)")
    parser.add_argument("--clients", type=positive, default=8)
    parser.add_argument("--places", type=positive, default=16)
    parser.add_argument("--workers", type=positive, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args(arguments)
    command = [sys.executable, "-m", "sandbox", "serve", "--port", "0", "--workers", str(options.workers)]
    process = subprocess.Popen([*command, "--places", str(options.places)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline().rpartition(":")[2])
        tasks = [task for task in make_tasks(12, seed=9) if "while xs[0]" not in task.program]
        print(
            f"{options.workers} workers, {options.places} places; memory at the start {tree_mib(process.pid):.0f} MiB"
        )
        rounds = [("/run_code", options.clients), ("/judge", options.clients), ("/judge", 2 * options.places)]
        is_bad = False
        for path, clients in rounds:
            load = _load(port, path, tasks, clients=clients, seconds=options.seconds)
            _tell(path, clients, load, options.seconds, tree_mib(process.pid))
            is_bad |= bool(load.wrong) or not set(load.statuses) <= {200, 504}
        return int(is_bad)
    finally:
        process.terminate()
        process.wait()


def _load(port: int, path: str, tasks: Sequence[Task], *, clients: int, seconds: float) -> Load:
    load, lock, end = Load(), threading.Lock(), time.monotonic() + seconds

    def client(number: int) -> None:
        rng = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while time.monotonic() < end:
            task = rng.choice(tasks)
            place = rng.randrange(len(task.inputs))
            body = json.dumps(_program(task, place) if path == "/run_code" else _request(task))
            started = time.monotonic()
            connection.request("POST", path, body)
            answer = connection.getresponse()
            found = json.loads(answer.read())
            with lock:
                load.statuses[answer.status] += 1
                if answer.status == 200:
                    load.seconds.append(time.monotonic() - started)
                    load.num_tests += 1 if path == "/run_code" else len(task.inputs)
                    load.wrong += not _is_expected(found, task, place, path)
            if answer.status == 504:
                time.sleep(0.1)
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return load


def _program(task: Task, place: int) -> dict[str, object]:
    return {"code": task.program, "stdin": task.inputs[place], "language": "python", "run_timeout": 5}


def _request(task: Task) -> dict[str, object]:
    pairs = zip(task.inputs, task.outputs, strict=True)
    tests = [f"assert run({given!r}) == {printed!r}" for given, printed in pairs]
    fields = {"reference": task.reference, "candidate": task.program, "tests": tests, "kind": "stdin"}
    return {"question_id": task.problem, **fields}


def _is_expected(found: dict[str, Any], task: Task, place: int, path: str) -> bool:
    """Right programs pass, and no wrong one passes everywhere; a single run of a wrong one may be right."""
    if path == "/run_code":
        is_right = found["run_result"]["stdout"].split() == task.outputs[place].split()
        return is_right or not task.is_right
    cases = found["suites"][0]["cases"]
    return task.is_right == all(case["outcome"] == "passed" for case in cases)


def _tell(path: str, clients: int, load: Load, seconds: float, mib: float) -> None:
    answered = load.statuses[200]
    cuts = statistics.quantiles(load.seconds, n=100) if len(load.seconds) > 1 else [0.0] * 99
    refused = f", refused {load.statuses[504]}" if load.statuses[504] else ""
    others = {status: count for status, count in load.statuses.items() if status not in (200, 504)}
    print(
        f"{path}, {clients} clients: {answered / seconds:.1f} requests/s ({load.num_tests / seconds:.0f} tests/s), "
        f"half within {1000 * cuts[49]:.0f} ms, 99 % within {1000 * cuts[98]:.0f} ms{refused}, "
        f"other {others or 'none'}, wrong {load.wrong}, memory {mib:.0f} MiB"
    )


if __name__ == "__main__":
    sys.exit(main())
