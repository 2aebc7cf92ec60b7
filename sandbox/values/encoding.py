"""Canonical bytes of builtin values.

``encode`` runs in the untrusted process, ``decoding.decode`` in the trusted one. The bytes are a prefix code: a tag
byte and a fixed or counted body, so that no content can imitate structure.

=====  ==========================================================================
tag    value
=====  ==========================================================================
N T F  None, True, False
i      int, ``i<hex>;``
f n    float, ``f`` and 8 bytes big-endian; any NaN is ``n``
c      complex, two floats
q      Fraction, ``q<hex>/<hex>;``
D      Decimal, ``D<length>:<text>``
s b    str (UTF-8, surrogates allowed), bytes and bytearray, ``s<length>:...``
l t Q  list, tuple, deque, ``l<count>:`` and the items
S d    set or frozenset, dict: items sorted by their bytes
r      range, three ints
=====  ==========================================================================

Subclasses (namedtuple, IntEnum, Counter, OrderedDict, defaultdict...) count as their builtin base. The base's own
methods read them, so that an overridden ``__eq__`` or ``__iter__`` has no effect. NumPy scalars count as the Python
value. NumPy arrays are refused, because ``==`` on them gives no truth value.

With ``unify=True`` equal values have equal bytes even across numeric types (``1 == 1.0 == True``). That form serves
as a key and is never decoded.
"""

import struct
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from ..errors import UnencodableError

MAX_DEPTH = 200
"""Limit of containers inside one another. Both sides refuse deeper and cyclic values."""
_MAX_DECIMAL_EXPONENT = 400
"""Decimals beyond 10**+-400, or with more digits, keep their own form under ``unify``. As ratios they would take ten
times their bytes or more, and a set may hold a hundred thousand of them."""

_MAX_NODES = 10_000
_pack_float = struct.Struct(">d").pack
_KEYS_VIEW: type = type({}.keys())


@dataclass(frozen=True, slots=True)
class RawRatio:
    """A Fraction that is not reduced, because reducing takes quadratic time."""

    numerator: int
    denominator: int


@dataclass(frozen=True, slots=True)
class RawSet:
    """The items of a set, not hashed, because hostile integers can all have one hash."""

    items: list[Any]


@dataclass(frozen=True, slots=True)
class RawDict:
    """The items of a dict, not hashed."""

    keys: list[Any]
    values: list[Any]


def encode(value: object, *, unify: bool = False) -> bytes:
    """Encode a builtin value.

    Raises:
        UnencodableError: the value, or an item of it, has another type than the module's table, or is nested too deep.
    """
    return _encode(value, 0, unify)


def canonical_key(value: object) -> bytes:
    """Encode a value so that equal values have equal bytes, also across numeric types. NaN equals NaN."""
    return _encode(value, 0, True)


def _encode(value: Any, depth: int, unify: bool) -> bytes:
    if value is None:
        return b"N"
    # This runs for every item of every value: the most frequent types come first, without a table.
    kind = type(value)
    if kind is int:
        return b"i%s;" % _hex(value)
    if kind is str:
        return _text(b"s", value)
    if kind is bool:
        return b"i%d;" % value if unify else (b"T" if value else b"F")
    if kind is float:
        return _float(value, unify)
    # Checked before a container is entered, so that cyclic values end here as well.
    if depth >= MAX_DEPTH:
        raise UnencodableError(f"nested more than {MAX_DEPTH} deep")
    encoder = _ENCODERS.get(kind)
    if encoder is not None:
        return encoder(value, depth + 1, unify)
    return _encode_other(value, kind, depth, unify)


def _hex(value: int) -> bytes:
    # Decimal text of a large integer would take quadratic time, and Python refuses it beyond 4,300 digits.
    return (b"%x" % value) if value >= 0 else b"-%x" % -value


def _text(tag: bytes, value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"%s%d:%s" % (tag, len(data), data)


def _float(value: float, unify: bool) -> bytes:
    # All NaNs share one form, because their payload is no part of the value.
    if value != value:
        return b"n"
    if unify and value.is_integer():
        return b"i%s;" % _hex(int(value))
    return b"f" + _pack_float(value)


def _complex(value: complex, depth: int, unify: bool) -> bytes:
    if unify and value.imag == 0:
        return _float(value.real, True)
    return b"c" + _float(value.real, unify) + _float(value.imag, unify)


def _ratio(value: Fraction | RawRatio, depth: int, unify: bool) -> bytes:
    numerator, denominator = value.numerator, value.denominator
    if unify:
        if denominator == 1:
            return b"i%s;" % _hex(numerator)
        try:
            near = numerator / denominator
            if near.as_integer_ratio() == (numerator, denominator):
                return b"f" + _pack_float(near)
        except OverflowError:  # the ratio is beyond the range of floats
            pass
    return b"q%s/%s;" % (_hex(numerator), _hex(denominator))


def _decimal(value: Decimal, depth: int, unify: bool) -> bytes:
    if unify:
        if value.is_nan():
            return b"n"
        if value.is_infinite():
            return b"f" + _pack_float(float(value))
        if not value:
            return b"i0;"
        sign, digits, exponent = value.as_tuple()
        if max(abs(value.adjusted()), len(digits)) <= _MAX_DECIMAL_EXPONENT:
            return _ratio(Fraction(value), depth, True)
        # Normalized by hand, because Decimal.normalize rounds to the context's precision and has a limit of exponents.
        all_digits = "".join(map(str, digits)).lstrip("0")
        kept = all_digits.rstrip("0")
        return _text(b"D", f"{'-' * sign}{kept}E{int(exponent) + len(all_digits) - len(kept)}")
    return _text(b"D", str(value))


def _items(tag: bytes, values: Collection[Any], depth: int, unify: bool) -> bytes:
    return b"%s%d:" % (tag, len(values)) + b"".join([_encode(item, depth, unify) for item in values])


def _set(value: Iterable[Any], depth: int, unify: bool) -> bytes:
    # A set's order depends on its hash seed and history. The order of bytes depends on neither.
    items = sorted(_encode(item, depth, unify) for item in value)
    return b"S%d:" % len(items) + b"".join(items)


def _dict(value: dict[Any, Any], depth: int, unify: bool) -> bytes:
    pairs = sorted((_encode(key, depth, unify), _encode(item, depth, unify)) for key, item in value.items())
    return b"d%d:" % len(pairs) + b"".join([key + item for key, item in pairs])


def _bytes(value: bytes | bytearray, depth: int, unify: bool) -> bytes:
    return b"b%d:%s" % (len(value), bytes(value))


def _range(value: range, depth: int, unify: bool) -> bytes:
    start, stop, step = value.start, value.stop, value.step
    if unify:  # Python compares the numbers that ranges run through
        try:
            count = len(value)
        except OverflowError as error:
            raise UnencodableError("a range with more items than an index can count") from error
        # An empty range has no start that counts, and a range with a single number has no step.
        start, stop, step = (start if count else 0), count, (step if count > 1 else 0)
    return b"r%s;%s;%s;" % (_hex(start), _hex(stop), _hex(step))


_ENCODERS: dict[type, Callable[[Any, int, bool], bytes]] = {
    list: partial(_items, b"l"),
    tuple: partial(_items, b"t"),
    deque: partial(_items, b"Q"),
    dict: _dict,
    set: _set,
    frozenset: _set,
    _KEYS_VIEW: _set,  # compares equal to a set
    bytes: _bytes,
    bytearray: _bytes,
    complex: _complex,
    range: _range,
    Fraction: _ratio,
    Decimal: _decimal,
    RawRatio: _ratio,
    RawSet: lambda value, depth, unify: _set(value.items, depth, unify),
}

_BASES: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    complex: complex.__complex__,
    dict: lambda value: dict(dict.items(value)),
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    deque: lambda value: deque(deque.__iter__(value)),
    bytes: lambda value: bytes.__add__(value, b""),
    bytearray: lambda value: bytearray.__add__(value, b""),
    Fraction: lambda value: Fraction(Fraction.numerator.fget(value), Fraction.denominator.fget(value)),  # type: ignore[attr-defined]
    Decimal: lambda value: Decimal(Decimal.__str__(value)),
}
"""Functions that turn a value of a subclass into a plain value of the base. They call the base's own methods, because
a program may have overridden the methods of the subclass."""


def _encode_other(value: Any, kind: type, depth: int, unify: bool) -> bytes:
    # The type's own ancestors decide, because the program decides what an instance says of its class.
    for base in kind.__mro__:
        if base in _BASES:
            return _encode(_BASES[base](value), depth, unify)
    # NumPy is known by name: it may be absent, and importing it would cost every program time.
    if ("numpy", "generic") in {(base.__module__, base.__qualname__) for base in kind.__mro__}:
        plain = value.item()
        if type(plain) is not kind:
            return _encode(plain, depth, unify)
    # These classes are known by name, because each question's prelude defines its own.
    if kind.__name__ in ("ListNode", "TreeNode"):
        return _encode(_node_values(value, is_tree=kind.__name__ == "TreeNode"), depth, unify)
    raise UnencodableError(f"{kind.__module__}.{kind.__qualname__} is not a builtin value")


def _node_values(first: Any, *, is_tree: bool) -> list[Any]:
    """List the values of LeetCode's linked list, or of its tree level by level, as tests write them."""
    nodes = deque([first])
    values: list[Any] = []
    while nodes and len(values) <= _MAX_NODES:
        node = nodes.popleft()
        if node is None:
            values.append(None)
            continue
        values.append(node.val)
        if is_tree:
            nodes += node.left, node.right
        elif node.next is not None:
            nodes.append(node.next)
    if nodes:
        raise UnencodableError(f"more than {_MAX_NODES} nodes, or a circle of them")
    while values and values[-1] is None:
        values.pop()
    return values
