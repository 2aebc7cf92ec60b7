"""Canonical bytes of builtin values.

``encode`` runs in the untrusted process, ``decoding.decode`` in the trusted one. The bytes are a prefix code:
one tag byte, then a fixed or counted body, so no content can imitate structure.

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

Subclasses (namedtuple, IntEnum, Counter, OrderedDict, defaultdict...) count as their builtin base and
are read with the base's own methods, so an overridden ``__eq__`` or ``__iter__`` has no say. NumPy
scalars count as the Python value; arrays are refused because ``==`` on them is no truth value.

With ``unify=True`` equal values have equal bytes even across numeric types (``1 == 1.0 == True``);
that form is a key, it is never decoded.
"""

import struct
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ..errors import UnencodableError

MAX_DEPTH = 200
"""Containers inside containers; deeper values (and cyclic ones) are refused on both sides."""
_MAX_DECIMAL_EXPONENT = 400
"""Decimals beyond 10**+-400, or with more digits, keep their own form under ``unify``: as ratios they
take ten times their bytes and more, and a set may hold a hundred thousand of them."""

_MAX_NODES = 10_000
_pack_float = struct.Struct(">d").pack
_KEYS_VIEW: type = type({}.keys())


@dataclass(frozen=True, slots=True)
class RawRatio:
    """A Fraction as its bytes give it, not reduced: reducing takes quadratic time."""

    numerator: int
    denominator: int


@dataclass(frozen=True, slots=True)
class RawSet:
    """The items of a set, not hashed: integers can be chosen so that all of them collide."""

    items: list[Any]


@dataclass(frozen=True, slots=True)
class RawDict:
    """The items of a dict, not hashed."""

    keys: list[Any]
    values: list[Any]


def encode(value: object, *, unify: bool = False) -> bytes:
    """Bytes of a builtin value.

    Raises:
        UnencodableError: a value (or an item of it) outside the table above, or nested too deep.
    """
    return _encode(value, 0, unify)


def canonical_key(value: object) -> bytes:
    """Equal for values that compare equal, numeric types unified; NaN equals NaN."""
    return _encode(value, 0, True)


def _encode(value: Any, depth: int, unify: bool) -> bytes:
    if value is None:
        return b"N"
    # Exact types by falling frequency, before any table: this runs for every item of every value.
    kind = type(value)
    if kind is int:
        return b"i%s;" % _hex(value)
    if kind is str:
        return _text(b"s", value)
    if kind is bool:
        return b"i%d;" % value if unify else (b"T" if value else b"F")
    if kind is float:
        return _float(value, unify)
    # Before a container is entered, so that cyclic values end here too.
    if depth >= MAX_DEPTH:
        raise UnencodableError(f"nested more than {MAX_DEPTH} deep")
    encoder = _ENCODERS.get(kind)
    if encoder is not None:
        return encoder(value, depth + 1, unify)
    return _encode_other(value, kind, depth, unify)


def _hex(value: int) -> bytes:
    # Decimal text of a large integer takes quadratic time, and Python refuses it beyond 4,300 digits.
    return (b"%x" % value) if value >= 0 else b"-%x" % -value


def _text(tag: bytes, value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"%s%d:%s" % (tag, len(data), data)


def _float(value: float, unify: bool) -> bytes:
    # All NaNs have one form: their payload is no part of the value.
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
            if (near := numerator / denominator).as_integer_ratio() == (numerator, denominator):
                return b"f" + _pack_float(near)
        except OverflowError:
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
        # By hand: Decimal.normalize rounds to the context's precision and raises beyond its exponents.
        all_digits = "".join(map(str, digits)).lstrip("0")
        kept = all_digits.rstrip("0")
        return _text(b"D", f"{'-' * sign}{kept}E{int(exponent) + len(all_digits) - len(kept)}")
    return _text(b"D", str(value))


def _items(tag: bytes, values: Iterable[Any], count: int, depth: int, unify: bool) -> bytes:
    return b"%s%d:" % (tag, count) + b"".join([_encode(item, depth, unify) for item in values])


def _set(value: Iterable[Any], depth: int, unify: bool) -> bytes:
    # The order of a set depends on hash seed and history, the order of bytes on neither.
    items = sorted(_encode(item, depth, unify) for item in value)
    return b"S%d:" % len(items) + b"".join(items)


def _dict(value: dict[Any, Any], depth: int, unify: bool) -> bytes:
    pairs = sorted((_encode(key, depth, unify), _encode(item, depth, unify)) for key, item in value.items())
    return b"d%d:" % len(pairs) + b"".join([key + item for key, item in pairs])


def _bytes(value: bytes | bytearray, depth: int, unify: bool) -> bytes:
    return b"b%d:%s" % (len(value), bytes(value))


def _range(value: range, depth: int, unify: bool) -> bytes:
    start, stop, step = value.start, value.stop, value.step
    if unify:  # ranges are equal when they run through the same numbers
        try:
            count = len(value)
        except OverflowError as error:
            raise UnencodableError("a range with more items than an index can count") from error
        # Of an empty range nothing counts, and of one with a single number no step does.
        start, stop, step = (start if count else 0), count, (step if count > 1 else 0)
    return b"r%s;%s;%s;" % (_hex(start), _hex(stop), _hex(step))


_ENCODERS: dict[type, Callable[[Any, int, bool], bytes]] = {
    list: lambda value, depth, unify: _items(b"l", value, len(value), depth, unify),
    tuple: lambda value, depth, unify: _items(b"t", value, len(value), depth, unify),
    deque: lambda value, depth, unify: _items(b"Q", value, len(value), depth, unify),
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

# A subclass is rebuilt as its base through the base's own methods. Order matters only for bool, which
# cannot be subclassed, and str/int enums, whose mixin decides.
_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
    (dict, lambda value: dict(dict.items(value))),
    (list, lambda value: list(list.__iter__(value))),
    (tuple, lambda value: tuple(tuple.__iter__(value))),
    (set, lambda value: set(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    (deque, lambda value: deque(deque.__iter__(value))),
    (bytes, lambda value: bytes.__add__(value, b"")),
    (bytearray, lambda value: bytes(bytearray.__add__(value, b""))),
    (complex, lambda value: complex(complex.__complex__(value))),
    (Fraction, lambda value: Fraction(Fraction.numerator.fget(value), Fraction.denominator.fget(value))),  # type: ignore[attr-defined]
    (Decimal, lambda value: Decimal(str(Decimal.__str__(value)))),
)


def _encode_other(value: Any, kind: type, depth: int, unify: bool) -> bytes:
    for base, rebuild in _BASES:
        # By the type's own ancestors: what an instance says of its class is up to the program.
        if base in kind.__mro__:
            return _encode(rebuild(value), depth, unify)
    # By name: NumPy may be absent, and importing it would cost every program.
    if ("numpy", "generic") in {(base.__module__, base.__qualname__) for base in kind.__mro__}:
        plain = value.item()
        if type(plain) is not kind:
            return _encode(plain, depth, unify)
    # By name again: the question's prelude defines these classes, each anew.
    if kind.__name__ in ("ListNode", "TreeNode"):
        return _encode(_node_values(value, is_tree=kind.__name__ == "TreeNode"), depth, unify)
    raise UnencodableError(f"{kind.__module__}.{kind.__qualname__} is not a builtin value")


def _node_values(first: Any, *, is_tree: bool) -> list[Any]:
    """LeetCode's linked list, or its tree level by level: what ``list_node`` and ``tree_node`` make it of."""
    nodes, values = deque([first]), list[Any]()
    while nodes and len(values) <= _MAX_NODES:
        node = nodes.popleft()
        values.append(None if node is None else node.val)
        if node is not None:
            nodes.extend((node.left, node.right) if is_tree else (node.next,) if node.next is not None else ())
    if nodes:
        raise UnencodableError(f"more than {_MAX_NODES} nodes, or a circle of them")
    while values and values[-1] is None:
        values.pop()
    return values
