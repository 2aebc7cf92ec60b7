"""Two ways to run generated programs that are in use, none of them confined: the judge is compared with them.

Both get the same candidates, asserts and references as the judge, and as many processes at once as this machine has
cores. Each returns how many asserts passed, so that the work can be seen to be the same.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from .programs import BenchCandidate, BenchQuestion

TIMEOUT_SECONDS = 10.0
"""Time of one interpreter, as released with the paper."""


def one_script(questions: Sequence[BenchQuestion]) -> int:
    """Run one interpreter per candidate, with reference and candidate in one script, as the paper's release does.

    The script defines the reference and asks it every call: a call seen before in its suite does not count, an answer
    is kept and announced, and a claim that differs from it is counted. Then it defines the candidate over the reference
    and asserts each call against the answer kept. Every case prints its marker at once, as whatever comes later may end
    the process.
    """
    scripts = [_both_in_one(question, one) for question in questions for one in question.candidates]
    with ThreadPoolExecutor(_num_cores()) as pool:
        return sum(map(_count_passes, pool.map(_printed, scripts)))


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
    """Run ``python -c`` per program: the reference once a question, then each candidate.

    The reference's program prints its answer to every call that any of the question's candidates is asked; a
    candidate's program asserts its calls against those answers and prints a marker per case.
    """
    with ThreadPoolExecutor(_num_cores()) as pool:
        answers = pool.map(_reference_answers, questions)
        scripts = []
        for question, known in zip(questions, answers, strict=True):
            scripts += [_candidate_script(candidate, known) for candidate in question.candidates]
        return sum(map(_count_passes, pool.map(_printed, scripts)))


def _reference_answers(question: BenchQuestion) -> dict[str, str]:
    """Call -> the literal of its answer."""
    texts = [text for candidate in question.candidates for suite in candidate.suites for text in suite]
    calls = list(dict.fromkeys(_sides(text)[0] for text in texts))
    lines = [question.reference]
    for place, call in enumerate(calls):
        lines += ["try:", f"    print('VALUE {place}', repr({call}))", "except Exception:", "    pass"]
    answers = {}
    for line in _printed("\n".join(lines)).splitlines():
        if line.startswith("VALUE "):
            _, number, literal = line.split(" ", 2)
            answers[calls[int(number)]] = literal
    return answers


def _candidate_script(candidate: BenchCandidate, answers: dict[str, str]) -> str:
    lines = [candidate.source]
    for suite in candidate.suites:
        for text in suite:
            call = _sides(text)[0]
            if call in answers:
                lines += ["try:", f"    assert {call} == {answers[call]}", "    print('PASS', flush=True)"]
                lines += ["except Exception:", "    print('FAIL', flush=True)"]
    return "\n".join(lines)


def _count_passes(printed: str) -> int:
    return sum(line.startswith("PASS") for line in printed.splitlines())


def _sides(text: str) -> tuple[str, str]:
    """Call and claim of one assert. By the parser, as the asserts of a model cannot be split at sight."""
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.Assert)
    assert isinstance(statement.test, ast.Compare)
    return ast.unparse(statement.test.left), ast.unparse(statement.test.comparators[0])


def _printed(script: str) -> str:
    """The output of one interpreter; what came before its time was up, if it did not end by itself."""
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
