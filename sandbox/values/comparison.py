"""Is the candidate's value the reference's? Decided in the trusted process, on decoded builtin values."""

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
"""Bytes by which an equal number may be longer than the reference's float or boolean: an integer of 1,024 bits takes
258, and a ratio near a float two such."""
_MIN_COMPARED_BITS = 1 << 15
"""A number is compared up to this size, or eight times the reference's: a ratio near a float is long."""
_NUMBERS = (bool, int, float, complex, RawRatio, Decimal)


def matches(reference: bytes, value: bytes, *, in_any_order: bool = False) -> bool:
    """True when ``value`` encodes the value that ``reference`` encodes.

    Numbers compare across types (``True == 1 == 1.0``), NaN equals NaN, a tuple is no list. Where the
    reference holds a float, ``|value - reference| <= 1e-6 + 1e-7 * |reference|`` suffices; that is
    ``numpy.allclose`` with the tolerances of EvalPlus (arXiv:2305.01210, its evaluator's defaults),
    applied at every depth rather than to flat lists only.

    ``value`` may be any bytes; False for whatever cannot be compared. Work is bounded by the size of
    ``reference``: an equal value needs at most eight times its bytes (``1`` and ``1.0`` differ by a factor
    of three), and those by which an integer or a ratio is longer than a float; nothing
    of the value is hashed, reduced or converted before its size is known.

    Args:
        reference: encoded by the codec of this package.
        value: the other one.
        in_any_order: the items of a list, or of a tuple, may stand in any order; those of its items may not.
    """
    # Equal bytes are equal values: the common case costs no decoding.
    if reference == value:
        return True
    num_short = sum(map(reference.count, (b"f", b"T", b"F")))  # of texts too, which does no harm
    if len(value) > _DECODED_SIZE_FACTOR * len(reference) + _DECODED_SIZE_SLACK + _NUMBER_SLACK * num_short:
        return False
    try:
        one, other = decode_raw(reference), decode_raw(value)
        if in_any_order and isinstance(one, (list, tuple)) and type(one) is type(other):
            return _close_sets(RawSet(list(one)), RawSet([*other]))  # as sets, but equal items count
        return _close(one, other)
    except (ArithmeticError, TypeError, ValueError, RecursionError, MemoryError):
        return False  # ValueFormatError and UnencodableError among them


def comparer(numbers: Callable[[Any, Any], bool], sets: Callable[[RawSet, RawSet], bool]) -> Callable[[Any, Any], bool]:
    """A comparison of raw values at every depth, by a rule for two numbers and one for two sets.

    What is neither is equal where it is of one type and its parts are: the keys of dicts by ``canonical_key``.
    """

    def same(reference: Any, value: Any) -> bool:
        # First, because numbers compare across types and everything else within one.
        if isinstance(reference, _NUMBERS):
            return isinstance(value, _NUMBERS) and numbers(reference, value)
        if type(reference) is not type(value):
            return False
        if isinstance(reference, (list, tuple, deque)):
            return len(reference) == len(value) and all(map(same, reference, value))
        if isinstance(reference, RawDict):
            return same_dicts(reference, value)
        if isinstance(reference, RawSet):
            return sets(reference, value)
        return bool(reference == value)

    def same_dicts(reference: RawDict, value: RawDict) -> bool:
        if len(reference.keys) != len(value.keys):
            return False
        # By the bytes of their keys: a dict of the value's keys would hash what an adversary chose.
        pairs, other_pairs = (
            sorted(zip(map(canonical_key, side.keys), side.values, strict=True), key=itemgetter(0))
            for side in (reference, value)
        )
        return all(
            one_key == other_key and same(one, other)
            for (one_key, one), (other_key, other) in zip(pairs, other_pairs, strict=True)
        )

    return same


def _close_numbers(reference: Any, value: Any) -> bool:
    if _is_nan(reference) or _is_nan(value):  # first: a signalling NaN raises when it is compared
        return _is_nan(reference) and _is_nan(value)
    if _num_bits(value) > max(_MIN_COMPARED_BITS, _DECODED_SIZE_FACTOR * _num_bits(reference)):
        return False
    if _takes_quadratic_time(reference, value) and max(_num_bits(reference), _num_bits(value)) > _MIN_COMPARED_BITS:
        # Equal ones of one type have equal parts: an honest Fraction comes reduced.
        return type(reference) is type(value) and bool(reference == value)
    reference, value = _reduced(reference), _reduced(value)
    if reference == value:
        return True
    if isinstance(reference, complex) and isinstance(value, (bool, int, float, complex)):
        # An integer beyond a float's range has no complex form, and equals no complex number here.
        value = complex(value) if not isinstance(value, int) or abs(value) < 1 << 1000 else complex("nan")
        return _close_numbers(reference.real, value.real) and _close_numbers(reference.imag, value.imag)
    if not isinstance(reference, float) or isinstance(value, complex) or not math.isfinite(reference):
        return False
    try:
        near = float(value)
    except (OverflowError, ValueError):
        return False
    return abs(near - reference) <= ABSOLUTE_TOLERANCE + RELATIVE_TOLERANCE * abs(reference)


def _is_nan(value: Any) -> bool:
    return bool(value != value) if not isinstance(value, Decimal) else value.is_nan()


def _takes_quadratic_time(reference: Any, value: Any) -> bool:
    """Reducing a ratio and comparing a Decimal with an int do: minutes at the size of a whole value."""
    kinds = {type(reference), type(value)}
    return RawRatio in kinds or (Decimal in kinds and len(kinds) > 1)


def _reduced(value: Any) -> Any:
    return Fraction(value.numerator, value.denominator) if isinstance(value, RawRatio) else value


def _num_bits(value: Any) -> int:
    """About how much work a number is; an exponent counts by its own length."""
    if isinstance(value, RawRatio):
        return value.numerator.bit_length() + value.denominator.bit_length()
    if isinstance(value, int):
        return value.bit_length()
    return 4 * len(value.as_tuple().digits) if isinstance(value, Decimal) else 64


def _close_sets(reference: RawSet, value: RawSet) -> bool:
    if len(reference.items) != len(value.items):
        return False
    if sorted(map(canonical_key, reference.items)) == sorted(map(canonical_key, value.items)):
        return True
    # Only numbers have an order in which near items stand at the same place.
    if not all(type(item) in (int, float) for item in (*reference.items, *value.items)):
        return False
    # Both sides in order: if any pairing is within the tolerance, so is this one.
    return all(map(_close, sorted(reference.items), sorted(value.items)))


_close = comparer(_close_numbers, _close_sets)


_KEPT_LITERAL_BYTES = 256


def to_literal(data: bytes) -> str:
    """Python source that evaluates to the encoded value, as ``literals.spell`` writes it.

    Dicts are in the order of their bytes. It needs at most ``Fraction``, ``Decimal`` and ``deque`` in scope beside the
    builtins.

    Raises:
        ValueFormatError: ``data`` is not an encoded value.
    """
    return _kept_literal(data) if len(data) <= _KEPT_LITERAL_BYTES else _literal(data)


@lru_cache(16_384)
def _kept_literal(data: bytes) -> str:
    """Short values repeat: right ones in every suite that asks for them, wrong ones in program after program."""
    return _literal(data)


def _literal(data: bytes) -> str:
    try:
        return spell(_with_sets(decode(data)))
    except (RecursionError, MemoryError) as error:
        raise ValueFormatError(f"too large to print: {type(error).__name__}") from error


def _with_sets(value: Any) -> Any:
    """Sets in place of frozensets, but where they must be hashable: as keys, and in sets."""
    if isinstance(value, frozenset):
        return set(value)
    if isinstance(value, (list, tuple, deque)):
        return type(value)(map(_with_sets, value))
    if isinstance(value, dict):
        return {key: _with_sets(item) for key, item in value.items()}
    return value
