"""A program on an EvalPlus problem: run in our sandbox, compared by EvalPlus's rules.

The program's process gets calls and gives values; it never holds an expected one. The rules are EvalPlus 0.3.1's
(Liu et al., arXiv 2305.01210), applied here to canonical bytes, in this process; where verdicts differ is in
tools/evaluate/README.md. Once a tolerance was 1e-6, because a float was expected, **it stays so for all later inputs**.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from sandbox import Call, CallResult, CallStatus, CaseOutcome, Program, Role, Runner
from sandbox.text import RawDict, RawRatio, RawSet, canonical_key, comparer, decode_raw

from ..benchmarks.evalplus import EVALPLUS_LIMITS, Comparison, EvalPlusProblem
from ..benchmarks.tasks import CodeVerdict

FIRST_CALLS = 16
"""Asked before all the others: most buggy programs fail one of these."""
FLOAT_ATOL = 1e-6
RTOL = 1e-7
_HAS_VALUE = (CallStatus.VALUE, CallStatus.UNENCODABLE, CallStatus.OUTPUT_LIMIT)
"""The statuses of a call that returned something, readable or not."""
_SIZE_FACTOR = 8
_SIZE_SLACK = 64
_LEAST_VALUE_BYTES = 1 << 16
_MOST_BROADCAST = 16
"""Times the larger side that ``numpy.allclose`` may blow a comparison up to."""
_MOST_DECIMAL_BITS = 1 << 15
"""The longest int that a Decimal is compared with, because that takes quadratic time."""
_FLOAT_TAGS = (b"f", b"n")
"""First bytes of encoded floats."""
_ODD_VALUE_ERRORS = (ArithmeticError, TypeError, ValueError, RecursionError, MemoryError)
"""Errors that comparing an untrusted value may raise; ``ValueFormatError`` and ``UnencodableError`` among them."""


def judge_program(problem: EvalPlusProblem, program: str, *, runner: Runner) -> CodeVerdict:
    """Judge one whole program, imports included, under ``EVALPLUS_LIMITS``.

    Args:
        problem: with its expected answers; without the reference's seconds only slow references suffer.
        program: source text, untrusted.
        runner: where it runs, in the role of candidates.

    Raises:
        SandboxUnavailableError: it could not be run. That is no verdict.
        ValueError: the problem has no expected answers yet.
    """
    if not problem.calls or len(problem.expected) != len(problem.calls):
        raise ValueError(f"{problem.id} has no expected answers: run prepare() first, which asks the reference")
    first = _judge_calls(problem, program, FIRST_CALLS, runner)
    if not first.passed or len(problem.calls) <= FIRST_CALLS:
        return first
    # From the first call on again, in one process: what the program remembers of earlier calls counts.
    return _judge_calls(problem, program, len(problem.calls), runner)


def tolerances(problem: EvalPlusProblem) -> Iterator[tuple[float, float]]:
    """For each call: the absolute tolerance before and after its expected value was looked at."""
    atol = problem.atol
    for expected in problem.expected:
        before = atol
        if atol == 0 and _is_floats(expected) and problem.comparison is not Comparison.ROOT:
            atol = FLOAT_ATOL
        yield before, atol


def accepts(
    problem: EvalPlusProblem,
    index: int,
    answer: CallResult,
    *,
    atol_before: float,
    atol: float,
) -> bool:
    """Say if an answer is right for the call at ``index``; see ``tolerances`` for the last two arguments."""
    if problem.comparison in (Comparison.ANYTHING, Comparison.NOT_NONE):
        has_value = answer.status in _HAS_VALUE
        is_true = answer.status is not CallStatus.VALUE or answer.value not in (b"F", b"N")
        is_expected = is_true == (problem.expected[index] == b"T")
        return has_value and (problem.comparison is Comparison.ANYTHING or is_expected)
    if answer.status is not CallStatus.VALUE:
        return False
    expected = problem.expected[index]
    if len(answer.value) > _most_bytes(expected):
        return False
    if expected == answer.value and b"n" not in expected and problem.comparison is Comparison.VALUE:
        return True  # the same bytes are the same value; "n" may stand for NaN
    try:
        returned = decode_raw(answer.value)
        if problem.comparison is Comparison.ROOT:
            return abs(_polynomial(problem.arguments(index)[0], returned)) <= atol
        wanted = decode_raw(expected)
        if problem.comparison is Comparison.SET:
            return isinstance(returned, RawSet) and _keys(returned) == _keys(wanted)
        if equal_raw(wanted, returned) or _is_second_answer(problem, index, returned, atol_before):
            return True
        return atol != 0 and _is_close(wanted, returned, atol)
    except _ODD_VALUE_ERRORS:
        return False


def _most_bytes(expected: bytes) -> int:
    return _SIZE_FACTOR * len(expected) + _SIZE_SLACK


def _judge_calls(problem: EvalPlusProblem, source: str, num_calls: int, runner: Runner) -> CodeVerdict:
    # A set is made in the program's process, which alone can run through a generator it returned.
    form = "{{*{}}}" if problem.comparison is Comparison.SET else "{}"
    # No longer answers than a right one can be: a thousand wrong ones must fit into our memory.
    longest = max(_LEAST_VALUE_BYTES, _most_bytes(max(problem.expected, key=len)))
    program = Program(
        source=source,
        calls=tuple(Call(expression=form.format(text)) for text in problem.calls[:num_calls]),
        reference_cpu_seconds=problem.reference_cpu_seconds[:num_calls],
        limits=replace(EVALPLUS_LIMITS, value_bytes=min(EVALPLUS_LIMITS.value_bytes, longest)),
        max_timeouts_without_result=1,
    )
    result = runner.run(program, role=Role.CANDIDATE)
    if not result.loaded:
        return CodeVerdict(passed=False, reason=f"{CaseOutcome.NOT_LOADED.value} {result.load_error[:100]}")
    answers = zip(result.results, tolerances(problem), strict=False)
    for index, (answer, (before, after)) in enumerate(answers):
        if not accepts(problem, index, answer, atol_before=before, atol=after):
            has_value = answer.status is CallStatus.VALUE
            outcome = CaseOutcome.WRONG_VALUE if has_value else answer.status
            reason = f"{outcome}: {problem.calls[index][:200]} {answer.detail[:100]}".strip()
            return CodeVerdict(passed=False, reason=reason)
    return CodeVerdict(passed=True)


def _is_floats(data: bytes) -> bool:
    """Say if bytes encode a float, or a list or tuple of at least one float and nothing else."""
    if data.startswith(_FLOAT_TAGS):
        return True
    _, _, first_item = data.partition(b":")
    if not data.startswith((b"l", b"t")) or not first_item.startswith(_FLOAT_TAGS):
        return False
    items = decode_raw(data)
    return isinstance(items, list | tuple) and all(type(item) is float for item in items)


def _has_nan(number: Any) -> bool:
    # Decimal's signalling NaN raises where it is compared, and a program may return it.
    return number.is_nan() if isinstance(number, Decimal) else number != number


def _equal_numbers(wanted: Any, returned: Any) -> bool:
    if _has_nan(wanted) or _has_nan(returned):
        return False
    if type(wanted) is int and type(returned) is Decimal:  # their keys tell long ones apart
        return wanted.bit_length() <= _MOST_DECIMAL_BITS and bool(wanted == returned)
    return canonical_key(wanted) == canonical_key(returned)


equal_raw = comparer(_equal_numbers, lambda wanted, returned: _keys(wanted) == _keys(returned))
"""``==`` of Python on raw values, in linear time; NaN equals nothing."""


def _keys(value: Any) -> set[bytes]:
    """The items of a collection as keys of a set; a set of bytes cannot be made slow by choosing its items."""
    if isinstance(value, RawSet):
        value = value.items
    elif isinstance(value, RawDict):
        value = value.keys
    return set(map(canonical_key, value))


def _is_close(wanted: Any, returned: Any, atol: float) -> bool:
    """``numpy.allclose`` on values of one type, sequences of one length."""
    if type(wanted) is not type(returned):
        return False
    if isinstance(wanted, (list, tuple)) and len(wanted) != len(returned):
        return False
    import numpy as np

    with np.errstate(all="ignore"):
        one, other = np.asarray(returned), np.asarray(wanted)
        size = math.prod(np.broadcast_shapes(one.shape, other.shape))
        if size > _MOST_BROADCAST * max(one.size, other.size, 1):
            return False
        return bool(np.allclose(one, other, rtol=RTOL, atol=atol))


def _is_second_answer(problem: EvalPlusProblem, index: int, returned: Any, atol: float) -> bool:
    if problem.comparison is Comparison.VALUE_OR_ZERO:
        return equal_raw(0, returned)
    if problem.comparison is Comparison.VALUE_OR_PADDED_DIGITS:
        one, other = map(str, problem.arguments(index))
        width = max(len(one), len(other))
        digits = zip(one.zfill(width), other.zfill(width), strict=True)
        return equal_raw(sum(abs(int(left) - int(right)) for left, right in digits), returned)
    if problem.comparison is Comparison.VALUE_OR_PYRAMID:
        edge, height = problem.arguments(index)
        slant = math.sqrt((edge / 2) ** 2 + height**2)
        surface = round(edge**2 + 2 * edge * slant)
        return bool(abs(returned - surface) <= atol)
    return False


def _polynomial(coefficients: Sequence[float], x: Any) -> float:
    """``sum(coefficients[i] * x**i)``; TypeError where ``x`` is no real number."""
    point = x.numerator / x.denominator if isinstance(x, RawRatio) else x
    return sum(coefficient * math.pow(point, power) for power, coefficient in enumerate(coefficients))
