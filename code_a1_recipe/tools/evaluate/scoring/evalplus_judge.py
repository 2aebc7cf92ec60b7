"""Judges programs on EvalPlus problems in our sandbox, by the rules of EvalPlus 0.3.1 (Liu et al., arXiv 2305.01210).

The program's process gets calls and returns values, but it never holds an expected value. The judge's process compares
the encoded values. tools/evaluate/README.md lists the verdicts that differ from EvalPlus's.

A tolerance of 0 becomes 1e-6 at the first expected float, and **stays 1e-6 for all later inputs**.
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
"""Number of calls in the first request. Most buggy programs already fail one of these calls."""
FLOAT_ATOL = 1e-6
RTOL = 1e-7
_HAS_VALUE = (CallStatus.VALUE, CallStatus.UNENCODABLE, CallStatus.OUTPUT_LIMIT)
"""Statuses of calls that returned a value, whether or not the value can be read."""
_SIZE_FACTOR = 8
_SIZE_SLACK = 64
_LEAST_VALUE_BYTES = 1 << 16
"""Smallest limit on the encoded bytes of a returned value."""
_MOST_BROADCAST = 16
"""Largest size of the broadcast arrays of a comparison, as a multiple of the larger array's size."""
_MOST_DECIMAL_BITS = 1 << 15
"""Most bits of an int that is compared with a Decimal, because this comparison takes quadratic time."""
_FLOAT_TAGS = (b"f", b"n")
"""First bytes of encoded floats."""
_ODD_VALUE_ERRORS = (ArithmeticError, TypeError, ValueError, RecursionError, MemoryError)
"""Errors that comparing an untrusted value may raise, ``ValueFormatError`` and ``UnencodableError`` included."""


def judge_program(problem: EvalPlusProblem, program: str, *, runner: Runner) -> CodeVerdict:
    """Judge a whole program, imports included, under ``EVALPLUS_LIMITS``.

    Args:
        problem: a problem with expected values. Slow calls may time out if the problem lacks the reference's CPU
            seconds.
        program: source text, untrusted.
        runner: runs the program as a candidate.

    Raises:
        SandboxUnavailableError: the program could not be run.
    """
    first = _judge_calls(problem, program, FIRST_CALLS, runner)
    if not first.passed or len(problem.calls) <= FIRST_CALLS:
        return first
    # Start again at the first call, in one process, because a program may remember earlier calls.
    return _judge_calls(problem, program, len(problem.calls), runner)


def tolerances(problem: EvalPlusProblem) -> Iterator[tuple[float, float]]:
    """Yield two absolute tolerances for each call: before and after its expected value may change the tolerance."""
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
    """True if an answer is right for the call at ``index``. ``tolerances`` gives ``atol_before`` and ``atol``."""
    comparison = problem.comparison
    expected = problem.expected[index]
    is_readable = answer.status is CallStatus.VALUE
    if comparison in (Comparison.ANYTHING, Comparison.NOT_NONE):
        is_true = not (is_readable and answer.value in (b"F", b"N"))
        is_expected = comparison is Comparison.ANYTHING or is_true == (expected == b"T")
        return answer.status in _HAS_VALUE and is_expected
    if not is_readable or len(answer.value) > _most_bytes(expected):
        return False
    if expected == answer.value and b"n" not in expected and comparison is Comparison.VALUE:
        return True  # equal bytes mean equal values, unless an "n" stands for NaN
    try:
        returned = decode_raw(answer.value)
        if comparison is Comparison.ROOT:
            return abs(_polynomial(problem.arguments(index)[0], returned)) <= atol
        wanted = decode_raw(expected)
        if comparison is Comparison.SET:
            return isinstance(returned, RawSet) and _keys(returned) == _keys(wanted)
        if equal_raw(wanted, returned):
            return True
        if _is_second_answer(problem, index, returned, atol_before):
            return True
        return atol != 0 and _is_close(wanted, returned, atol)
    except _ODD_VALUE_ERRORS:
        return False


def _most_bytes(expected: bytes) -> int:
    return _SIZE_FACTOR * len(expected) + _SIZE_SLACK


def _judge_calls(problem: EvalPlusProblem, source: str, num_calls: int, runner: Runner) -> CodeVerdict:
    calls = []
    for text in problem.calls[:num_calls]:
        if problem.comparison is Comparison.SET:
            # The program's process makes the set, because a returned generator can only be read there.
            text = f"{{*{text}}}"
        calls.append(Call(expression=text))
    # The limit grows with the longest right answer, so that a thousand wrong answers fit into our memory.
    longest = max(map(_most_bytes, problem.expected))
    value_bytes = max(_LEAST_VALUE_BYTES, longest)
    program = Program(
        source=source,
        calls=tuple(calls),
        reference_cpu_seconds=problem.reference_cpu_seconds[:num_calls],
        limits=replace(EVALPLUS_LIMITS, value_bytes=min(EVALPLUS_LIMITS.value_bytes, value_bytes)),
        max_timeouts_without_result=1,
    )
    result = runner.run(program, role=Role.CANDIDATE)
    if not result.loaded:
        return CodeVerdict(passed=False, reason=f"{CaseOutcome.NOT_LOADED.value} {result.load_error[:100]}")
    answers = zip(result.results, tolerances(problem), strict=False)
    for index, (answer, (before, after)) in enumerate(answers):
        if accepts(problem, index, answer, atol_before=before, atol=after):
            continue
        has_value = answer.status is CallStatus.VALUE
        outcome = CaseOutcome.WRONG_VALUE if has_value else answer.status
        reason = f"{outcome}: {problem.calls[index][:200]} {answer.detail[:100]}"
        return CodeVerdict(passed=False, reason=reason.strip())
    return CodeVerdict(passed=True)


def _is_floats(data: bytes) -> bool:
    """True for an encoded float, and for an encoded nonempty list or tuple of only floats."""
    if data.startswith(_FLOAT_TAGS):
        return True
    _, _, first_item = data.partition(b":")
    if not data.startswith((b"l", b"t")) or not first_item.startswith(_FLOAT_TAGS):
        return False
    items = decode_raw(data)
    return isinstance(items, list | tuple) and all(type(item) is float for item in items)


def _has_nan(number: Any) -> bool:
    if isinstance(number, Decimal):
        return number.is_nan()  # a program may return a signalling NaN, and comparing it raises an error
    return bool(number != number)


def _equal_numbers(wanted: Any, returned: Any) -> bool:
    if _has_nan(wanted) or _has_nan(returned):
        return False
    # A long int and an equal Decimal may have different keys.
    if type(wanted) is int and type(returned) is Decimal:
        return wanted.bit_length() <= _MOST_DECIMAL_BITS and bool(wanted == returned)
    return canonical_key(wanted) == canonical_key(returned)


equal_raw = comparer(_equal_numbers, lambda wanted, returned: _keys(wanted) == _keys(returned))
"""Compares raw values by the rules of Python's ``==``, but in linear time. NaN equals nothing."""


def _keys(value: Any) -> set[bytes]:
    """Return a collection's items as canonical bytes, because a program cannot make the hashes of bytes collide."""
    if isinstance(value, RawSet):
        value = value.items
    elif isinstance(value, RawDict):
        value = value.keys
    return set(map(canonical_key, value))


def _is_close(wanted: Any, returned: Any, atol: float) -> bool:
    """Compare by ``numpy.allclose``. Values must have the same type, and sequences the same length."""
    if type(wanted) is not type(returned):
        return False
    if isinstance(wanted, (list, tuple)) and len(wanted) != len(returned):
        return False
    import numpy as np

    with np.errstate(all="ignore"):
        left = np.asarray(returned)
        right = np.asarray(wanted)
        size = math.prod(np.broadcast_shapes(left.shape, right.shape))
        if size > _MOST_BROADCAST * max(1, left.size, right.size):
            return False
        return bool(np.allclose(left, right, rtol=RTOL, atol=atol))


def _is_second_answer(problem: EvalPlusProblem, index: int, returned: Any, atol: float) -> bool:
    """True if the problem has a second right answer to the call at ``index``, and the program returned it."""
    match problem.comparison:
        case Comparison.VALUE_OR_ZERO:
            return equal_raw(0, returned)
        case Comparison.VALUE_OR_PADDED_DIGITS:
            first, second = map(str, problem.arguments(index))
            width = max(len(first), len(second))
            distance = 0
            for left, right in zip(first.zfill(width), second.zfill(width), strict=True):
                distance += abs(int(left) - int(right))
            return equal_raw(distance, returned)
        case Comparison.VALUE_OR_PYRAMID:
            edge, height = problem.arguments(index)
            slant = math.sqrt((edge / 2) ** 2 + height**2)
            surface = round(edge**2 + 2 * edge * slant)
            return bool(abs(returned - surface) <= atol)
    return False


def _polynomial(coefficients: Sequence[float], x: Any) -> float:
    """Compute ``sum(coefficients[i] * x**i)``. Raises TypeError if ``x`` is no real number."""
    point = x.numerator / x.denominator if isinstance(x, RawRatio) else x
    return sum(coefficient * math.pow(point, power) for power, coefficient in enumerate(coefficients))
