"""What the judge is compared with: three ways to run generated programs that are in use, none of them confined.

All get the same candidates, asserts and references as the judge, as many processes at once as this
machine has cores (the service: 20, as released), each program its own interpreter started the plain way,
and are told nothing but what they need. Each returns how many asserts passed, so that the work can be
seen to be the same.
"""

from __future__ import annotations

import ast
import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .programs import BenchCandidate, BenchQuestion

TIMEOUT_SECONDS = 10.0
"""For one interpreter, as released with the paper."""
SERVICE_CONCURRENCY = 20
"""Requests at once, as released with the paper."""

RunScript = Callable[[str], str]
"""From a script to what it printed."""


def one_script(questions: Sequence[BenchQuestion]) -> int:
    """(a) One interpreter per candidate, reference and candidate in one script: the shape of the paper's release.

    The script defines the reference and asks it every call: a call seen before in its suite does not
    count, an answer is kept and announced, and a claim that differs from it is counted. Then it defines
    the candidate over the reference and asserts each call against the answer kept. Every case prints its
    marker at once, as whatever comes later may end the process.
    """

    def run(job: tuple[BenchQuestion, BenchCandidate]) -> int:
        question, candidate = job
        return _count_passes(_python_c(_both_in_one(question, candidate)))

    with ThreadPoolExecutor(_num_cores()) as pool:
        return sum(pool.map(run, [(question, one) for question in questions for one in question.candidates]))


def _both_in_one(question: BenchQuestion, candidate: BenchCandidate) -> str:
    suites = [[_sides(text) for text in suite] for suite in candidate.suites]
    lines = [question.reference, "_answers, _wrong = {}, 0"]
    for s, suite in enumerate(suites):
        lines.append("_seen = set()")
        for k, (call, claim) in enumerate(suite):
            lines += [
                "try:",
                f"    _value = {call}",
                f"    _text = {f'assert {call} == '!r} + repr(_value)",
                "    if _text not in _seen:",
                "        _seen.add(_text)",
                f"        _answers[{s}, {k}] = _value",
                f"        print('CASE {s}_{k}:' + _text, flush=True)",
                f"        _wrong += _value != {claim}",
                "except Exception:",
                "    _wrong += 1",
            ]
    lines += ["print('WRONG', _wrong, flush=True)", f"del {question.entry_point}", candidate.source]
    for s, suite in enumerate(suites):
        for k, (call, _) in enumerate(suite):
            lines += [
                f"if ({s}, {k}) in _answers:",
                "    try:",
                f"        assert {call} == _answers[{s}, {k}]",
                f"        print('PASS {s}_{k}', flush=True)",
                "    except Exception as _error:",
                f"        print('FAIL {s}_{k}:' + repr(_error), flush=True)",
            ]
    return "\n".join(lines)


def python_c(questions: Sequence[BenchQuestion]) -> int:
    """(b) ``python -c`` per program: the reference once a question, then each candidate.

    The reference's program prints its answer to every call that any of the question's candidates is
    asked; a candidate's program asserts its calls against those answers and prints a marker per case.
    """
    with ThreadPoolExecutor(_num_cores()) as pool:
        return _two_stages(questions, pool, _python_c)


def service(questions: Sequence[BenchQuestion], port: int) -> int:
    """(c) The programs of (b), each sent to an HTTP service that starts a process for it, 20 requests at a time."""
    connections = threading.local()

    def post(script: str) -> str:
        if not hasattr(connections, "http"):
            connections.http = http.client.HTTPConnection("127.0.0.1", port)
        body = json.dumps({"code": script, "language": "python", "run_timeout": TIMEOUT_SECONDS})
        connections.http.request("POST", "/run_code", body, {"Content-Type": "application/json"})
        printed: str = json.loads(connections.http.getresponse().read())["stdout"]
        return printed

    with ThreadPoolExecutor(SERVICE_CONCURRENCY) as pool:
        return _two_stages(questions, pool, post)


@contextmanager
def running_service() -> Iterator[int]:
    """The service of (c) in a process of its own; yields its port."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def serve() -> None:
    """Body of the service's process: writes its port to standard output, then serves for ever."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"status": "Success", "stdout": _python_c(request["code"])}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: a line per request would slow the service down."""


def _two_stages(questions: Sequence[BenchQuestion], pool: ThreadPoolExecutor, run: RunScript) -> int:
    """References of all questions, then their candidates, each stage in parallel."""
    answers = list(pool.map(lambda question: _reference_answers(question, run), questions))
    jobs = [
        (candidate, known)
        for question, known in zip(questions, answers, strict=True)
        for candidate in question.candidates
    ]
    return sum(pool.map(lambda job: _candidate_passes(job[0], job[1], run), jobs))


def _reference_answers(question: BenchQuestion, run: RunScript) -> dict[str, str]:
    """Call -> the literal of its answer."""
    calls = list(dict.fromkeys(_call(text) for one in question.candidates for suite in one.suites for text in suite))
    lines = [question.reference]
    for place, call in enumerate(calls):
        lines += [
            "try:",
            f"    print('VALUE {place}', repr({call}))",
            "except Exception:",
            f"    print('RAISED {place}')",
        ]
    found = {}
    for line in run("\n".join(lines)).splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "VALUE":
            number, _, literal = rest.partition(" ")
            found[calls[int(number)]] = literal
    return found


def _candidate_passes(candidate: BenchCandidate, answers: dict[str, str], run: RunScript) -> int:
    lines = [candidate.source]
    for suite in candidate.suites:
        for text in suite:
            if (literal := answers.get(call := _call(text))) is not None:
                lines += [
                    "try:", f"    assert {call} == {literal}", "    print('PASS', flush=True)", "except Exception:",
                    "    print('FAIL', flush=True)",
                ]  # fmt: skip
    return _count_passes(run("\n".join(lines)))


def _count_passes(printed: str) -> int:
    return sum(line.startswith("PASS") for line in printed.splitlines())


def _sides(text: str) -> tuple[str, str]:
    """Call and claim of one assert. By the parser, as the asserts of a model cannot be split at sight."""
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.Assert)
    assert isinstance(statement.test, ast.Compare)
    return ast.unparse(statement.test.left), ast.unparse(statement.test.comparators[0])


def _call(text: str) -> str:
    return _sides(text)[0]


def _python_c(script: str) -> str:
    """What one interpreter prints; what came before its time was up, if it did not end by itself."""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        printed, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        printed, _ = process.communicate()
    return printed.decode()


def _num_cores() -> int:
    return len(os.sched_getaffinity(0))
