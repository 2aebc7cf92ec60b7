"""A program on the tests of a LiveCodeBench problem: run in our sandbox, compared outside by LiveCodeBench's rules.

The program's process gets inputs; it never holds an expected output. Source: LiveCodeBench's evaluation (Jain et al.,
arXiv 2403.07974) and its ``testing_util.py``, as evaluation/README.md reads them, with where verdicts differ.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal, DecimalException

from sandbox import INPUT_ENTRY, CallResult, CallStatus, Program, Role, Runner, ValueFormatError, decode_raw, encode

from ...algorithm.question import definitions
from ...data.stdin_rows import TestCase
from ..benchmarks.tasks import MIB, USUAL_LIMITS, CodeVerdict, plain_program
from .evalplus_judge import equal_raw

LIVECODEBENCH_LIMITS = replace(
    USUAL_LIMITS,
    cpu_seconds_per_case=6.0,
    wall_seconds_per_case=6.0,
    total_seconds=30.0,
    value_bytes=32 * MIB,
    total_output_bytes=256 * MIB,
    source_bytes=4 * MIB,
)
"""Of one process; ``total_seconds`` grows with its calls."""
PRELOAD = ("statistics", "threading")
"""Imported by many programs, or for them, and not among the sandbox's own."""
_MODULES = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json", "builtins", "typing"),
)
"""In the order in which LiveCodeBench takes everything from them: later names hide earlier ones."""
_IMPORTS = "\n".join(
    [*(f"from {name} import *" for name in _MODULES), *(f"import {name}" for name in _MODULES), ""]
) + ("sys.setrecursionlimit(50000)\n")
_ARGUMENTS = """
def __arguments__(place, _texts=__texts__, _read=json.loads):
    return [_read(line) for line in _texts[place].split("\\n")]
"""
_BATCH_CHARS = 4 * MIB
"""Of inputs that go to one process."""
_BATCH_CALLS = 64
_OUTPUT_FACTOR, _OUTPUT_SLACK = 16, MIB
_RESULT_FACTOR, _RESULT_SLACK = 8, 64
"""What an untrusted process sends is read up to so many times the expected text's length, and a bit more: the shortest
JSON of a number takes a fifth of the number's bytes."""


_Request = tuple[list[TestCase], Program]
"""Some tests with the process that is asked them, a call each."""


def judge_cases(program: str, cases: Sequence[TestCase], *, function: str, runner: Runner) -> CodeVerdict:
    """Judge a program that defines ``function``, alone or in a class ``Solution``; without one, what it prints.

    Raises:
        SandboxUnavailableError: it could not be run. That is no verdict.
    """
    is_right = _is_result if function else _is_printed
    requests = _calling_programs(program, function, cases) if function else _printing_programs(program, cases)
    number = 0
    for batch, request in requests:
        result = runner.run(request, role=Role.CANDIDATE)
        if not result.loaded:
            return CodeVerdict(passed=False, reason=f"not loaded: {result.load_error[:200]}")
        for case, answer in zip(batch, result.results, strict=True):
            number += 1
            if not is_right(case.output, answer):
                return _failure(answer, number, len(cases))
    return CodeVerdict(passed=True)


def same_output(expected: str, printed: str) -> bool:
    """Whether two outputs are the same by the rule for lines and decimal numbers above.

    Example:
        >>> same_output("1\\n0.50", "1.0 \\n0.5\\n"), same_output("yes 1", "yes 1.0")
        (True, False)
    """
    expected, printed = expected.strip(), printed.strip()
    if len(printed) > _OUTPUT_FACTOR * len(expected) + _OUTPUT_SLACK or expected.count("\n") != printed.count("\n"):
        return False
    return all(map(_same_line, _lines(expected), _lines(printed)))


def _printing_programs(program: str, cases: Sequence[TestCase]) -> Iterator[_Request]:
    """A process for each test."""
    for case in cases:
        # The input is part of the prelude rather than of the call: what is called is kept in a cache.
        request = plain_program(
            program,
            [f"{INPUT_ENTRY}(__input__)"],
            limits=LIVECODEBENCH_LIMITS,
            prelude=f"{_IMPORTS}\n__input__ = {case.input!r}\n",
            reads_input=True,
        )
        yield [case], request


def _calling_programs(program: str, function: str, cases: Sequence[TestCase]) -> Iterator[_Request]:
    """A process for as many tests as its limits allow."""
    callee = f"Solution().{function}" if "Solution" in definitions(program) else function
    for batch in _batches(cases):
        seconds = LIVECODEBENCH_LIMITS.total_seconds + LIVECODEBENCH_LIMITS.cpu_seconds_per_case * len(batch)
        request = plain_program(
            program,
            [f"{callee}(*__arguments__({place}))" for place in range(len(batch))],
            limits=replace(LIVECODEBENCH_LIMITS, total_seconds=seconds),
            prelude=f"{_IMPORTS}\n__texts__ = {[case.input for case in batch]!r}\n{_ARGUMENTS}",
        )
        yield batch, request


def _batches(cases: Sequence[TestCase]) -> Iterator[list[TestCase]]:
    batch: list[TestCase] = []
    num_chars = 0
    for case in cases:
        if batch and (num_chars + len(case.input) > _BATCH_CHARS or len(batch) == _BATCH_CALLS):
            yield batch
            batch, num_chars = [], 0
        batch.append(case)
        num_chars += len(case.input)
    yield batch


def _failure(answer: CallResult, number: int, num_cases: int) -> CodeVerdict:
    kind = "wrong_value" if answer.status is CallStatus.VALUE else answer.status.value
    return CodeVerdict(passed=False, reason=f"{kind} in test {number} of {num_cases} {answer.detail[:200]}".strip())


def _is_printed(expected: str, answer: CallResult) -> bool:
    try:
        value = decode_raw(answer.value) if answer.status is CallStatus.VALUE else None
    except ValueFormatError:
        return False
    return isinstance(value, str) and same_output(expected, value)


def _is_result(expected: str, answer: CallResult) -> bool:
    if answer.status is not CallStatus.VALUE or len(answer.value) > _RESULT_FACTOR * len(expected) + _RESULT_SLACK:
        return False
    try:
        value = decode_raw(answer.value)
        return equal_raw(decode_raw(encode(json.loads(expected))), list(value) if isinstance(value, tuple) else value)
    except (ArithmeticError, TypeError, ValueError, RecursionError, MemoryError):
        return False  # ValueFormatError and UnencodableError among them: the bytes come from an untrusted process


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n")]


def _same_line(wanted: str, returned: str) -> bool:
    if wanted == returned:
        return True
    try:
        return [Decimal(token) for token in wanted.split()] == [Decimal(token) for token in returned.split()]
    except DecimalException:  # no number, or a signalling NaN, which does not compare
        return False
