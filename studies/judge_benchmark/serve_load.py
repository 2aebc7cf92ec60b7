"""Measures ``python -m sandbox serve`` under load from clients on this machine.

There are three rounds: programs in SandboxFusion's form; requests to the judge; and requests to the judge from twice as
many clients as the service has places, so that it must refuse some.
"""

from __future__ import annotations

import http.client
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from .bench import tree_mib
from .stdin_tasks import Task, make_tasks

ANSWERED, REFUSED = 200, 504
PAUSE_SECONDS = 0.1
"""Time that a client waits after a refusal."""


@dataclass(slots=True)
class Load:
    """The answers that the clients of one round got."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """Seconds of each answered request."""
    num_tests: int = 0
    num_wrong: int = 0


def run_load(
    *, seconds: int, num_clients: int, num_places: int, num_workers: int, report: Callable[[str], None]
) -> dict[str, Any]:
    """Measure the service in three rounds. ``ok`` is True if every response was a right answer or a refusal."""
    command = [sys.executable, "-m", "sandbox", "serve", "--port", "0", "--workers", str(num_workers)]
    process = subprocess.Popen([*command, "--places", str(num_places)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline().rpartition(":")[2])
        found: dict[str, Any] = {"ok": True, "memory_mib_at_start": tree_mib(process.pid)}
        tasks = [task for task in make_tasks(12, seed=9) if "while xs[0]" not in task.program]
        for path, clients in (("/run_code", num_clients), ("/judge", num_clients), ("/judge", 2 * num_places)):
            name = f"{path}, {clients} clients"
            load = _load(port, path, tasks, num_clients=clients, seconds=seconds)
            found[name] = _figures(load, seconds) | {"memory_mib": tree_mib(process.pid)}
            found["ok"] &= not load.num_wrong and set(load.statuses) <= {ANSWERED, REFUSED}
            report(f"{name}: {found[name]}")
        return found
    finally:
        process.terminate()
        process.wait()


def _load(port: int, path: str, tasks: Sequence[Task], *, num_clients: int, seconds: float) -> Load:
    load, lock = Load(), threading.Lock()
    end = time.monotonic() + seconds

    def client(number: int) -> None:
        rng = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while time.monotonic() < end:
            task = rng.choice(tasks)
            place = rng.randrange(len(task.inputs))
            started = time.monotonic()
            connection.request("POST", path, json.dumps(_body(task, place, path)))
            answer = connection.getresponse()
            content = json.loads(answer.read())
            with lock:
                load.statuses[answer.status] += 1
                if answer.status == ANSWERED:
                    load.seconds.append(time.monotonic() - started)
                    load.num_tests += 1 if path == "/run_code" else len(task.inputs)
                    load.num_wrong += not _is_expected(content, task, place, path)
            if answer.status == REFUSED:
                time.sleep(PAUSE_SECONDS)
        connection.close()

    with ThreadPoolExecutor(num_clients) as pool:
        list(pool.map(client, range(num_clients)))
    return load


def _body(task: Task, place: int, path: str) -> dict[str, Any]:
    if path == "/run_code":
        return {"code": task.program, "stdin": task.inputs[place], "language": "python", "run_timeout": 5}
    request = task.request()
    return {
        "question_id": request.question_id,
        "reference": request.reference,
        "candidate": request.candidate,
        "tests": request.suites[0],
        "kind": request.kind,
    }


def _is_expected(content: dict[str, Any], task: Task, place: int, path: str) -> bool:
    """Say if an answer is right: correct programs must pass all tests, and wrong programs must fail at least one test.

    A single run of a wrong program may print the right output.
    """
    if path == "/run_code":
        printed = content["run_result"]["stdout"]
        return not task.is_right or printed.split() == task.outputs[place].split()
    cases = content["suites"][0]["cases"]
    return task.is_right == all(case["outcome"] == "passed" for case in cases)


def _figures(load: Load, seconds: float) -> dict[str, Any]:
    return {
        "requests_per_second": round(load.statuses[ANSWERED] / seconds, 1),
        "tests_per_second": round(load.num_tests / seconds, 1),
        "median_ms": round(1000 * statistics.median(load.seconds or [0.0])),
        "statuses": dict(load.statuses),
        "wrong": load.num_wrong,
    }
