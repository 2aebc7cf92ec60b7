"""Compare the candidate's value with the reference's value, after decoding, in the trusted process."""

import json
import math
from bisect import bisect
from collections import Counter, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from operator import itemgetter
from types import NoneType
from typing import Any

from ..errors import ValueFormatError
from .decoding import decode, decode_raw
from .encoding import RawDict, RawRatio, RawSet, canonical_key
from .literals import spell

ABSOLUTE_TOLERANCE = 1e-6
RELATIVE_TOLERANCE = 1e-7
_DECODED_SIZE_FACTOR = 8
_DECODED_SIZE_SLACK = 64
_NUMBER_SLACK = 600
"""Number of bytes by which a number may be longer than an equal float or boolean of the reference. An integer of 1,024
bits takes 258 bytes, and a ratio near a float holds two such integers."""
_MIN_COMPARED_BITS = 1 << 15
"""Numbers up to this size are always compared, because a ratio near a float is long. For a large number of the
reference, the limit is higher: eight times the bits of that number."""
_KEPT_LITERAL_BYTES = 256
_NUMBERS = (int, float, complex, RawRatio, Decimal)


def matches(
    reference: bytes,
    value: bytes,
    *,
    in_any_order: bool = False,
    from_json: bool = False,
    or_in_list: bool = False,
) -> bool:
    """Tell whether ``value`` encodes the value that ``reference`` encodes.

    Numbers of different types can be equal (``True == 1 == 1.0``), NaN equals NaN, and a tuple never equals a list. A
    float of the reference has a tolerance: ``|value - reference| <= 1e-6 + 1e-7 * |reference|``. This is the rule of
    ``numpy.allclose`` with the default tolerances of EvalPlus's evaluator (arXiv:2305.01210). EvalPlus applies the
    tolerance only in flat lists. This function applies it at every depth.

    The size of ``reference`` bounds the work. A value equal to the reference has at most eight times the reference's
    bytes. For example, ``1.0`` has three times the bytes of ``1``. An integer or a ratio that equals a float may have
    more bytes. The size of each part of the value is checked before the part is hashed, reduced or converted.

    Args:
        reference: bytes from ``encode``.
        value: any bytes. Bytes that do not encode a value equal nothing.
        in_any_order: the items of a list or tuple may stand in any order. The order of nested lists still counts.
        from_json: tuples count as lists, and keys of dicts as the texts that JSON makes of them.
        or_in_list: ``value`` may also be a list of one item, which is compared.
    """
    # Equal bytes encode equal values, so the most frequent case needs no decoding.
    if reference == value:
        return True
    # The count includes letters inside texts, which only make the limit larger.
    num_short = sum(map(reference.count, (b"f", b"T", b"F")))
    slack = _DECODED_SIZE_SLACK + _NUMBER_SLACK * num_short
    if len(value) > _DECODED_SIZE_FACTOR * len(reference) + slack:
        return False
    try:
        wanted, found = decode_raw(reference), decode_raw(value)
        if from_json:
            wanted, found = _as_json(wanted), _as_json(found)
        values = [found]
        if or_in_list and isinstance(found, list) and len(found) == 1:
            values += found
        if in_any_order and isinstance(wanted, (list, tuple)):
            return any(type(wanted) is type(one) and _pairs_up([*wanted], [*one]) for one in values)
        return any(_close(wanted, one) for one in values)
    # ValueFormatError is a ValueError, and UnencodableError is a TypeError.
    except (ArithmeticError, TypeError, ValueError, RecursionError, MemoryError):
        return False


def _as_json(value: Any) -> Any:
    """Return what JSON leaves of lists, tuples and dicts. Other values stay."""
    if isinstance(value, (list, tuple)):
        return [*map(_as_json, value)]
    if isinstance(value, RawDict):
        keys = [json.dumps(key) if isinstance(key, (int, float, NoneType)) else key for key in value.keys]
        return RawDict(keys, [*map(_as_json, value.values)])
    return value


def comparer(
    numbers: Callable[[Any, Any], bool],
    sets: Callable[[RawSet, RawSet], bool],
) -> Callable[[Any, Any], bool]:
    """Make a comparison of two raw values at every depth.

    Values other than numbers and sets are equal if their types and their parts are equal. Keys of dicts are compared by
    ``canonical_key``.

    Args:
        numbers: tells whether two numbers are equal.
        sets: tells whether two sets are equal.
    """

    def same(reference: Any, value: Any) -> bool:
        # Numbers come first, because only numbers of different types can be equal.
        if isinstance(reference, _NUMBERS):
            return isinstance(value, _NUMBERS) and numbers(reference, value)
        if type(reference) is not type(value):
            return False
        if isinstance(reference, (list, tuple, deque)):
            if len(reference) != len(value):
                return False
            return all(map(same, reference, value))
        if isinstance(reference, RawDict):
            return same_dicts(reference, value)
        if isinstance(reference, RawSet):
            return sets(reference, value)
        return bool(reference == value)

    def same_dicts(reference: RawDict, value: RawDict) -> bool:
        if len(reference.keys) != len(value.keys):
            return False
        wanted_items, items = _by_key(reference), _by_key(value)
        for (wanted_key, wanted), (key, item) in zip(wanted_items, items, strict=True):
            if key != wanted_key or not same(wanted, item):
                return False
        return True

    return same


def _by_key(items: RawDict) -> list[tuple[bytes, Any]]:
    """Sort items by the bytes of their keys. No dict is used, because it would hash an adversary's keys."""
    return sorted(((canonical_key(key), item) for key, item in items.items()), key=itemgetter(0))


def _close_numbers(reference: Any, value: Any) -> bool:
    # The comparisons below would raise for a signalling NaN.
    if _is_nan(reference) or _is_nan(value):
        return _is_nan(reference) and _is_nan(value)
    wanted_bits, num_bits = _num_bits(reference), _num_bits(value)
    if num_bits > max(_MIN_COMPARED_BITS, _DECODED_SIZE_FACTOR * wanted_bits):
        return False
    if max(wanted_bits, num_bits) > _MIN_COMPARED_BITS:
        kinds = {type(reference), type(value)}
        # Reducing a ratio takes quadratic time, and so does comparing a Decimal with an int: minutes for numbers of
        # megabytes.
        is_slow = RawRatio in kinds or (Decimal in kinds and len(kinds) > 1)
        if is_slow:
            # An honest program sends its Fractions reduced, so equal values of one type have equal parts.
            return len(kinds) == 1 and bool(reference == value)
    reference, value = _reduced(reference), _reduced(value)
    if reference == value:
        return True
    if isinstance(reference, complex) and isinstance(value, (int, float, complex)):
        # An integer of this size equals no complex number, and a larger integer may not fit into a float.
        if isinstance(value, int) and abs(value) >= 1 << 1000:
            return False
        value = complex(value)
        is_close = _close_numbers(reference.real, value.real)
        return is_close and _close_numbers(reference.imag, value.imag)
    # Only a finite float of the reference has a tolerance.
    if not isinstance(reference, float) or not math.isfinite(reference):
        return False
    if isinstance(value, complex):
        return False
    try:
        near = float(value)
    except (OverflowError, ValueError):
        return False
    tolerance = ABSOLUTE_TOLERANCE + RELATIVE_TOLERANCE * abs(reference)
    return abs(near - reference) <= tolerance


def _is_nan(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_nan()
    return bool(value != value)


def _reduced(value: Any) -> Any:
    if isinstance(value, RawRatio):
        return Fraction(value.numerator, value.denominator)
    return value


def _num_bits(value: Any) -> int:
    """Estimate the size of a number in bits. The exponent of a Decimal does not count."""
    if isinstance(value, RawRatio):
        return value.numerator.bit_length() + value.denominator.bit_length()
    if isinstance(value, int):
        return value.bit_length()
    if isinstance(value, Decimal):
        num_digits = len(value.as_tuple().digits)
        return 4 * num_digits
    return 64


def _pairs_up(reference: list[Any], value: list[Any]) -> bool:
    """Tell whether the items can be paired so that the items of each pair are close.

    An item of the reference without a float is paired with an equal item. Other items are sorted and then paired. Close
    items differ only in their numbers, and close numbers lie in the same step: a step begins after a gap between the
    sorted numbers. (Rounding would part close numbers at its borders.) So items are sorted by steps before numbers. If
    steps are wider than the tolerance, because many numbers are near one another, a pairing may be missed.
    """
    if len(reference) != len(value):
        return False
    exact, inexact = Counter[bytes](), []
    for item in reference:
        if _is_exact(item):
            exact[canonical_key(item)] += 1
        else:
            inexact.append(item)
    others = []
    for item in value:
        key = canonical_key(item)
        if exact[key]:
            exact[key] -= 1
        else:
            others.append(item)
    if len(inexact) != len(others):
        return False
    parts = [(*_apart(item), item) for item in inexact + others]
    columns: dict[tuple[bytes, int], list[float]] = {}
    for shape, numbers, _ in parts:
        for column, number in enumerate(numbers):
            columns.setdefault((shape, column), []).append(number)
    steps = {column: _steps(numbers) for column, numbers in columns.items()}

    def place(part: tuple[bytes, list[float], Any]) -> tuple[bytes, list[int], list[float]]:
        shape, numbers, _ = part
        return shape, [bisect(steps[shape, column], number) for column, number in enumerate(numbers)], numbers

    wanted, found = sorted(parts[: len(others)], key=place), sorted(parts[len(others) :], key=place)
    return all(_close(one[2], other[2]) for one, other in zip(wanted, found, strict=True))


def _is_exact(value: Any) -> bool:
    """Tell whether a value holds no number that has a tolerance."""
    if isinstance(value, RawDict):
        value = value.values
    elif isinstance(value, RawSet):
        value = value.items
    if isinstance(value, (list, tuple, deque)):
        return all(map(_is_exact, value))
    return not isinstance(value, (float, complex))


def _steps(numbers: list[float]) -> list[float]:
    """Return the numbers that follow a gap which is too large for close numbers."""
    numbers.sort()
    gap = 2 * ABSOLUTE_TOLERANCE
    return [after for before, after in pairwise(numbers) if after - before > gap + 2 * RELATIVE_TOLERANCE * abs(after)]


def _apart(value: Any) -> tuple[bytes, list[float]]:
    """Return the bytes of a value without its numbers, and its numbers."""
    numbers: list[float] = []

    def emptied(part: Any) -> Any:
        if isinstance(part, _NUMBERS):
            if _is_nan(part) or _num_bits(part) > _MIN_COMPARED_BITS:
                return part
            numbers.extend(_near_floats(_reduced(part)))
            return 0
        if isinstance(part, (list, tuple, deque)):
            return type(part)(map(emptied, part))
        if isinstance(part, RawDict):
            items = _by_key(part)
            return RawDict([key for key, _ in items], [emptied(item) for _, item in items])
        if isinstance(part, RawSet):
            shapes = sorted(map(_apart, part.items))
            for _, inner in shapes:
                numbers.extend(inner)
            return RawSet([shape for shape, _ in shapes])
        return part

    return blake2b(canonical_key(emptied(value))).digest(), numbers


def _near_floats(number: Any) -> tuple[float, float]:
    if isinstance(number, complex):
        return number.real, number.imag
    try:
        return float(number), 0.0
    except OverflowError:
        return math.copysign(math.inf, 1 if number > 0 else -1), 0.0


_close = comparer(_close_numbers, lambda reference, value: _pairs_up(reference.items, value.items))


def to_literal(data: bytes) -> str:
    """Return Python source that evaluates to the encoded value.

    ``literals.spell`` writes the source. Items of dicts are sorted by their bytes. Besides builtins, the source uses at
    most the names ``Fraction``, ``Decimal`` and ``deque``.

    Raises:
        ValueFormatError: ``data`` is not an encoded value, or its source is too large.
    """
    if len(data) > _KEPT_LITERAL_BYTES:
        return _literal(data)
    return _kept_literal(data)


def _literal(data: bytes) -> str:
    try:
        return spell(_with_sets(decode(data)))
    except (RecursionError, MemoryError) as error:
        raise ValueFormatError(f"too large to print: {type(error).__name__}") from error


# Short values repeat, because several suites have the same calls, and many programs make the same mistake.
_kept_literal = lru_cache(16_384)(_literal)


def _with_sets(value: Any) -> Any:
    """Replace frozensets by sets. Inside sets and dict keys, frozensets stay, because items there must be hashable."""
    if isinstance(value, frozenset):
        return set(value)
    if isinstance(value, (list, tuple, deque)):
        return type(value)(map(_with_sets, value))
    if isinstance(value, dict):
        return {key: _with_sets(item) for key, item in value.items()}
    return value
