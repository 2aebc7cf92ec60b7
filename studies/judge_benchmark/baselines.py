"""Two common ways to run generated programs without confinement. The judge is compared with both ways.

Both ways get the same candidates, asserts and references as the judge, and run one process for each core of this
machine. Each way returns the number of asserts that passed, to show that all ways do the same work.
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
"""Limit of the wall time of one interpreter, as in the code of the paper."""


def one_script(questions: Sequence[BenchQuestion]) -> int:
    """Run one interpreter for each candidate, with reference and candidate in one script, as in the code of the paper.

    The script defines the reference, makes every call, and stores and prints the answers. A call that repeats an
    earlier call of its suite does not count. Then the script defines the candidate in place of the reference, and
    compares its answers with the stored answers. The result of each case is printed at once, because a later case may
    end the process.
    """
    scripts = []
    for question in questions:
        scripts += [_both_in_one(question, candidate) for candidate in question.candidates]
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
    """Run ``python -c`` once for each reference and once for each candidate.

    The script of the reference prints the answers to the calls of all candidates. The script of a candidate compares
    the candidate's answers with the reference's answers, and prints the result of each case.
    """
    with ThreadPoolExecutor(_num_cores()) as pool:
        answers = pool.map(_reference_answers, questions)
        scripts = []
        for question, known in zip(questions, answers, strict=True):
            scripts += [_candidate_script(candidate, known) for candidate in question.candidates]
        return sum(map(_count_passes, pool.map(_printed, scripts)))


def _reference_answers(question: BenchQuestion) -> dict[str, str]:
    """Ask the reference: call -> its answer as a literal."""
    different: dict[str, None] = {}
    for candidate in question.candidates:
        for suite in candidate.suites:
            different |= dict.fromkeys(_sides(text)[0] for text in suite)
    calls = list(different)
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
    """Split an assert into its call and its expected output. Only a parser can split the asserts of a model."""
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.Assert)
    assert isinstance(statement.test, ast.Compare)
    return ast.unparse(statement.test.left), ast.unparse(statement.test.comparators[0])


def _printed(script: str) -> str:
    """Run a script in a new interpreter. Returns the output; after a time-out, the output so far."""
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
