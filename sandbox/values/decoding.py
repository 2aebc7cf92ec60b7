"""Decode canonical bytes (see ``encoding``) to builtin values. This module runs in the trusted process."""

import struct
from collections import deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ..errors import ValueFormatError
from .encoding import MAX_DEPTH, RawDict, RawRatio, RawSet

_unpack_float = struct.Struct(">d").unpack_from
_CONSTANTS: dict[bytes, bool | None] = {b"N": None, b"T": True, b"F": False}


def decode(data: bytes) -> object:
    """Decode bytes that an untrusted process sent. Sets become frozensets.

    Raises:
        ValueFormatError: the bytes are not one complete encoded value. Nothing else is raised.
    """
    return _decode_all(data, raw=False)


def decode_raw(data: bytes) -> object:
    """Decode bytes in linear time, even if a hostile program wrote the bytes.

    Sets, dicts and Fractions become ``RawSet``, ``RawDict`` and ``RawRatio``. Items of a ``RawSet`` and keys of a
    ``RawDict`` may be unhashable or repeated, and a ``RawRatio`` need not be reduced.

    Raises:
        ValueFormatError: the bytes are not one complete encoded value. Nothing else is raised.
    """
    return _decode_all(data, raw=True)


def _decode_all(data: bytes, *, raw: bool) -> object:
    try:
        value, end = _decode(data, 0, 0, raw)
    except ValueFormatError:
        raise
    except (ValueError, IndexError, TypeError, ArithmeticError, struct.error, RecursionError, MemoryError) as error:
        raise ValueFormatError(f"not an encoded value: {type(error).__name__}") from error
    # If further bytes were accepted, one value would have several encodings.
    if end != len(data):
        raise ValueFormatError(f"{len(data) - end} bytes after the value")
    return value


# Each function below reads one value. Its argument ``at`` is the position of the value's first byte. It returns the
# value and the position after the value's last byte.


def _read_int(data: bytes, at: int, mark: bytes = b";") -> tuple[int, int]:
    end = data.index(mark, at)
    digits = data[at:end]
    magnitude = digits.removeprefix(b"-")
    # ``int`` would also accept spaces, underscores and plus signs, which the encoder never writes.
    if not magnitude or magnitude.strip(b"0123456789abcdef"):
        raise ValueFormatError("malformed integer")
    return int(digits, 16), end + 1


def _read_count(data: bytes, at: int) -> tuple[int, int]:
    # A count has few digits. Without a limit, the search for the colon could run through megabytes.
    end = data.index(b":", at, at + 12)
    digits = data[at:end]
    if not digits.isdigit():
        raise ValueFormatError("malformed count")
    count = int(digits)
    if count > len(data) - end - 1:  # each item needs at least one byte
        raise ValueFormatError("count beyond the end of the data")
    return count, end + 1


def _decode(data: bytes, at: int, depth: int, raw: bool) -> tuple[Any, int]:
    # The encoder has the same limit, but a hostile program in the encoder's process could remove it.
    if depth > MAX_DEPTH:
        raise ValueFormatError(f"nested more than {MAX_DEPTH} deep")
    tag = data[at : at + 1]
    at += 1
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at
    if tag == b"n":
        # Each NaN is a new object, because a set keeps several NaNs only if they are different objects.
        return float("nan"), at
    if tag == b"i":
        return _read_int(data, at)
    if tag == b"f":
        return _unpack_float(data, at)[0], at + 8
    if tag in (b"s", b"b", b"D"):
        count, at = _read_count(data, at)
        end = at + count
        body = data[at:end]
        if tag == b"b":
            return body, end
        text = body.decode("utf-8", "surrogatepass")
        return (text if tag == b"s" else Decimal(text)), end
    if tag in (b"l", b"t", b"Q", b"S", b"d"):
        return _decode_items(data, at, depth, tag, raw)
    if tag == b"c":
        real, at = _decode(data, at, depth + 1, raw)
        imag, at = _decode(data, at, depth + 1, raw)
        if type(real) is not float or type(imag) is not float:
            raise ValueFormatError("malformed complex")
        return complex(real, imag), at
    if tag == b"q":
        numerator, at = _read_int(data, at, b"/")
        denominator, at = _read_int(data, at)
        # With negative denominators, one number would have two forms. A zero would raise an error later, in
        # ``Fraction``.
        if denominator <= 0:
            raise ValueFormatError("malformed ratio")
        kind = RawRatio if raw else Fraction
        return kind(numerator, denominator), at
    if tag == b"r":
        start, at = _read_int(data, at)
        stop, at = _read_int(data, at)
        step, at = _read_int(data, at)
        return range(start, stop, step), at
    raise ValueFormatError(f"unknown tag {tag!r}")


def _decode_items(
    data: bytes,
    at: int,
    depth: int,
    tag: bytes,
    raw: bool,
) -> tuple[Any, int]:
    count, at = _read_count(data, at)
    num_items = 2 * count if tag == b"d" else count
    items: list[Any] = []
    for _ in range(num_items):
        item, at = _decode(data, at, depth + 1, raw)
        items.append(item)
    if tag == b"l":
        return items, at
    if tag == b"t":
        return tuple(items), at
    if tag == b"Q":
        return deque(items), at
    if tag == b"S":
        if raw:
            return RawSet(items), at
        unique = frozenset(items)
        # The encoder never repeats an item or a key, so a hostile program wrote these bytes.
        if len(unique) != count:
            raise ValueFormatError("repeated set item")
        return unique, at
    keys, values = items[::2], items[1::2]
    if raw:
        return RawDict(keys, values), at
    mapping = dict(zip(keys, values, strict=True))
    if len(mapping) != count:
        raise ValueFormatError("repeated dict key")
    return mapping, at
