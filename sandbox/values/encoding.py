"""Canonical bytes of builtin values.

``encode`` runs in the untrusted process, and ``decoding.decode`` runs in the trusted process. The bytes are a prefix
code: each value has a tag byte, and a body of fixed or stated length. So no text inside a value can look like another
value.

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

An instance of a subclass (namedtuple, IntEnum, Counter, OrderedDict, defaultdict...) is encoded as a value of its
builtin base. The methods of the base class read the instance, so an overridden ``__eq__`` or ``__iter__`` has no
effect. NumPy scalars are encoded as Python values. NumPy arrays are refused, because ``==`` on them gives no truth
value.

The bytes of ``canonical_key`` are equal for equal values even across numeric types (``1 == 1.0 == True``). The bytes of
a key are never decoded. In this module, ``unify=True`` asks for the bytes of a key.
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
"""Largest depth of nested containers. Encoder and decoder refuse deeper values, and so they also refuse cyclic
values."""
_MAX_DECIMAL_EXPONENT = 400
"""In a key, a Decimal becomes a ratio only if its exponent and its digits are within this limit. The ratio of a larger
Decimal would have at least ten times the bytes of the Decimal, and a set may hold a hundred thousand Decimals."""

_MAX_NODES = 10_000
_pack_float = struct.Struct(">d").pack


@dataclass(frozen=True, slots=True)
class RawRatio:
    """A Fraction that has not been reduced, because reducing takes quadratic time."""

    numerator: int
    denominator: int


@dataclass(frozen=True, slots=True)
class RawSet:
    """The items of a set in a list, because hostile integers may all have the same hash."""

    items: list[Any]


@dataclass(frozen=True, slots=True)
class RawDict:
    """The keys and values of a dict in two lists, because hostile integers may all have the same hash."""

    keys: list[Any]
    values: list[Any]

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return the keys, each with its value."""
        return zip(self.keys, self.values, strict=True)


def encode(value: object) -> bytes:
    """Encode a builtin value.

    Raises:
        UnencodableError: the type of the value or of an item is not in the module's table, or the value is too deep.
    """
    return _encode(value, 0, False)


def canonical_key(value: object) -> bytes:
    """Encode a value so that equal values have equal bytes, even across numeric types. All NaNs have the same bytes.

    Raises:
        UnencodableError: as ``encode`` does.
    """
    return _encode(value, 0, True)


def _encode(value: Any, depth: int, unify: bool) -> bytes:
    if value is None:
        return b"N"
    # This code runs for every item of every value, so the most frequent types come first and need no table.
    kind = type(value)
    if kind is int:
        return b"i%s;" % _hex(value)
    if kind is str:
        return _text(b"s", value)
    if kind is bool:
        if unify:
            return b"i%d;" % value
        return b"T" if value else b"F"
    if kind is float:
        return _float(value, unify)
    # The depth is checked before a container's items are read, so that cyclic values are refused, too.
    if depth >= MAX_DEPTH:
        raise UnencodableError(f"nested more than {MAX_DEPTH} deep")
    encoder = _ENCODERS.get(kind)
    if encoder is not None:
        return encoder(value, depth + 1, unify)
    return _encode_other(value, kind, depth, unify)


def _hex(value: int) -> bytes:
    # Writing a large integer in decimal takes quadratic time, and Python refuses more than 4,300 decimal digits.
    if value < 0:
        return b"-%x" % -value
    return b"%x" % value


def _text(tag: bytes, value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"%s%d:%s" % (tag, len(data), data)


def _float(value: float, unify: bool) -> bytes:
    # All NaNs have the same bytes, because the further bits of a NaN are not part of the value.
    if value != value:
        return b"n"
    if unify and value.is_integer():
        return b"i%s;" % _hex(int(value))
    return b"f" + _pack_float(value)


def _complex(value: complex, depth: int, unify: bool) -> bytes:
    if unify and value.imag == 0:
        return _float(value.real, True)
    real = _float(value.real, unify)
    imag = _float(value.imag, unify)
    return b"c" + real + imag


def _ratio(value: Fraction | RawRatio, depth: int, unify: bool) -> bytes:
    numerator, denominator = value.numerator, value.denominator
    if unify and denominator == 1:
        return b"i%s;" % _hex(numerator)
    if unify:
        try:
            near = numerator / denominator
            is_float = near.as_integer_ratio() == (numerator, denominator)
        except OverflowError:
            is_float = False  # the ratio is too large for a float
        if is_float:
            return b"f" + _pack_float(near)
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
        size = max(abs(value.adjusted()), len(digits))
        if size <= _MAX_DECIMAL_EXPONENT:
            return _ratio(Fraction(value), depth, True)
        # Decimal.normalize would round to the context's precision, and would refuse some exponents.
        all_digits = "".join(map(str, digits)).lstrip("0")
        kept = all_digits.rstrip("0")
        num_zeros = len(all_digits) - len(kept)
        minus = "-" * sign
        return _text(b"D", f"{minus}{kept}E{int(exponent) + num_zeros}")
    return _text(b"D", str(value))


def _items(tag: bytes, values: Collection[Any], depth: int, unify: bool) -> bytes:
    items = [_encode(item, depth, unify) for item in values]
    return b"%s%d:" % (tag, len(items)) + b"".join(items)


def _set(value: Iterable[Any], depth: int, unify: bool) -> bytes:
    # The items are sorted by their bytes, because the order of a set depends on the hash seed and on earlier changes.
    items = sorted(_encode(item, depth, unify) for item in value)
    return b"S%d:" % len(items) + b"".join(items)


def _dict(value: dict[Any, Any] | RawDict, depth: int, unify: bool) -> bytes:
    pairs = []
    for key, item in value.items():
        key_bytes = _encode(key, depth, unify)
        item_bytes = _encode(item, depth, unify)
        pairs.append((key_bytes, item_bytes))
    pairs.sort()
    items = [key + item for key, item in pairs]
    return b"d%d:" % len(items) + b"".join(items)


def _bytes(value: bytes | bytearray, depth: int, unify: bool) -> bytes:
    return b"b%d:%s" % (len(value), bytes(value))


def _range(value: range, depth: int, unify: bool) -> bytes:
    start, stop, step = value.start, value.stop, value.step
    if unify:
        try:
            count = len(value)
        except OverflowError as error:
            raise UnencodableError("a range with more items than an index can count") from error
        # Two ranges are equal if they contain the same numbers. So the start of an empty range does not matter, and the
        # step of a range with at most one number does not matter.
        stop = count
        if count == 0:
            start = 0
        if count <= 1:
            step = 0
    return b"r%s;%s;%s;" % (_hex(start), _hex(stop), _hex(step))


_ENCODERS: dict[type, Callable[[Any, int, bool], bytes]] = {
    list: partial(_items, b"l"),
    tuple: partial(_items, b"t"),
    deque: partial(_items, b"Q"),
    dict: _dict,
    set: _set,
    frozenset: _set,
    type({}.keys()): _set,  # a dict's view of keys equals a set of the same keys
    bytes: _bytes,
    bytearray: _bytes,
    complex: _complex,
    range: _range,
    Fraction: _ratio,
    Decimal: _decimal,
    RawRatio: _ratio,
    RawDict: _dict,
    RawSet: lambda value, depth, unify: _set(value.items, depth, unify),
}

_BASES: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    complex: complex.__pos__,  # Python 3.10 has no `complex.__complex__`
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
"""Maps a builtin type to a function that turns an instance of a subclass into a plain value of this type. The functions
call the methods of the builtin type, because a program may override methods in its subclass."""


def _encode_other(value: Any, kind: type, depth: int, unify: bool) -> bytes:
    # The test looks at the ancestors of the type, because a program can set ``value.__class__`` to anything.
    for base in kind.__mro__:
        if base in _BASES:
            return _encode(_BASES[base](value), depth, unify)
    # NumPy's types are recognized by name, because NumPy may not be installed, and its import would take time in every
    # program.
    ancestors = {(base.__module__, base.__qualname__) for base in kind.__mro__}
    if ("numpy", "generic") in ancestors:
        plain = value.item()
        if type(plain) is not kind:
            return _encode(plain, depth, unify)
    # These classes are recognized by name, because the prelude of each question defines its own classes.
    is_tree = kind.__name__ == "TreeNode"
    if is_tree or kind.__name__ == "ListNode":
        values = _node_values(value, is_tree=is_tree)
        return _encode(values, depth, unify)
    raise UnencodableError(f"{kind.__module__}.{kind.__qualname__} is not a builtin value")


def _node_values(first: Any, *, is_tree: bool) -> list[Any]:
    """List the values of LeetCode's linked list, or of LeetCode's tree in the order of its levels."""
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
    # Nodes may also link in a circle.
    if nodes:
        raise UnencodableError(f"more than {_MAX_NODES} nodes, or a circle of nodes")
    while values and values[-1] is None:
        values.pop()
    return values
