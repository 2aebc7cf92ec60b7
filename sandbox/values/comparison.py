"""Compare the candidate's value with the reference's value. Both are decoded builtin values in the trusted process."""

import math
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from operator import itemgetter
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
"""Bytes by which an equal number may be longer than the reference's float or boolean. An integer of 1,024 bits takes
258 bytes, and a ratio near a float holds two such integers."""
_MIN_COMPARED_BITS = 1 << 15
"""Numbers up to this size are always compared, because a ratio near a float is long. The size limit is higher if the
reference's number is large: eight times its bits."""
_KEPT_LITERAL_BYTES = 256
_NUMBERS = (int, float, complex, RawRatio, Decimal)


def matches(reference: bytes, value: bytes, *, in_any_order: bool = False) -> bool:
    """Tell whether ``value`` encodes the value that ``reference`` encodes.

    Numbers compare across types (``True == 1 == 1.0``), NaN equals NaN, and a tuple does not equal a list. A float of
    the reference has a tolerance: ``|value - reference| <= 1e-6 + 1e-7 * |reference|``. That is ``numpy.allclose`` with
    the tolerances of EvalPlus (arXiv:2305.01210, its evaluator's defaults). EvalPlus applies the tolerance only in flat
    lists, and this function at every depth.

    The size of ``reference`` bounds the work. An equal value needs at most eight times the reference's bytes (``1`` and
    ``1.0`` differ by a factor of three), and additional bytes where an integer or a ratio stands for a float. No part
    of the value is hashed, reduced or converted before its size is known.

    Args:
        reference: bytes from ``encode``.
        value: any bytes. Bytes that cannot be compared are not equal.
        in_any_order: the items of a list or tuple may stand in any order. The order of nested lists still counts.
    """
    # Equal bytes encode equal values, so the most frequent case needs no decoding.
    if reference == value:
        return True
    # The count includes letters of texts. They only make the limit larger.
    num_short = sum(map(reference.count, (b"f", b"T", b"F")))
    slack = _DECODED_SIZE_SLACK + _NUMBER_SLACK * num_short
    if len(value) > _DECODED_SIZE_FACTOR * len(reference) + slack:
        return False
    try:
        wanted, found = decode_raw(reference), decode_raw(value)
        if in_any_order and isinstance(wanted, (list, tuple)):
            if type(wanted) is not type(found):
                return False
            # A ``RawSet`` may hold equal items several times.
            return _close_sets(RawSet([*wanted]), RawSet([*found]))
        return _close(wanted, found)
    # ValueFormatError is a ValueError, and UnencodableError is a TypeError.
    except (ArithmeticError, TypeError, ValueError, RecursionError, MemoryError):
        return False


def comparer(
    numbers: Callable[[Any, Any], bool],
    sets: Callable[[RawSet, RawSet], bool],
) -> Callable[[Any, Any], bool]:
    """Make a comparison of two raw values at every depth.

    Other values are equal if their types and their parts are equal. Keys of dicts are compared by ``canonical_key``.

    Args:
        numbers: tells whether two numbers are equal.
        sets: tells whether two sets are equal.
    """

    def same(reference: Any, value: Any) -> bool:
        # Numbers are tested first, because only numbers compare across types.
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
    """Sort items by the bytes of their keys. A dict would hash keys that an adversary chose."""
    keys = map(canonical_key, items.keys)
    return sorted(zip(keys, items.values, strict=True), key=itemgetter(0))


def _close_numbers(reference: Any, value: Any) -> bool:
    # The comparisons below would raise for a signalling NaN.
    if _is_nan(reference) or _is_nan(value):
        return _is_nan(reference) and _is_nan(value)
    wanted_bits, num_bits = _num_bits(reference), _num_bits(value)
    if num_bits > max(_MIN_COMPARED_BITS, _DECODED_SIZE_FACTOR * wanted_bits):
        return False
    if max(wanted_bits, num_bits) > _MIN_COMPARED_BITS:
        kinds = {type(reference), type(value)}
        # Reducing a ratio, or comparing a Decimal with an int, takes quadratic time: minutes for numbers of megabytes.
        is_slow = RawRatio in kinds or (Decimal in kinds and len(kinds) > 1)
        if is_slow:
            # An honest program sends its Fractions reduced, so equal values of one type have equal parts.
            return len(kinds) == 1 and bool(reference == value)
    reference, value = _reduced(reference), _reduced(value)
    if reference == value:
        return True
    if isinstance(reference, complex) and isinstance(value, (int, float, complex)):
        # An integer of this size equals no complex number, and a larger one may not fit into a float.
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


def _close_sets(reference: RawSet, value: RawSet) -> bool:
    wanted, found = reference.items, value.items
    if len(wanted) != len(found):
        return False
    wanted_keys, found_keys = map(canonical_key, wanted), map(canonical_key, found)
    if sorted(wanted_keys) == sorted(found_keys):
        return True
    # The tolerance needs pairs of items. Only numbers can be paired by sorting.
    for item in wanted + found:
        if type(item) not in (int, float):
            return False
    # If the items can be paired within the tolerance at all, then the sorted items match in their order.
    return all(map(_close, sorted(wanted), sorted(found)))


_close = comparer(_close_numbers, _close_sets)


def to_literal(data: bytes) -> str:
    """Return Python source that evaluates to the encoded value.

    ``literals.spell`` writes the source. Items of dicts are sorted by their bytes. Besides builtins, the source needs
    at most ``Fraction``, ``Decimal`` and ``deque`` in scope.

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


# Short values repeat: the same calls stand in several suites, and many programs make the same mistake.
_kept_literal = lru_cache(16_384)(_literal)


def _with_sets(value: Any) -> Any:
    """Replace frozensets by sets, except inside sets and dict keys, whose items must be hashable."""
    if isinstance(value, frozenset):
        return set(value)
    if isinstance(value, (list, tuple, deque)):
        return type(value)(map(_with_sets, value))
    if isinstance(value, dict):
        return {key: _with_sets(item) for key, item in value.items()}
    return value
