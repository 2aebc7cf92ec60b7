"""Values that are one step simpler than a given one, of the same type: what ``shrink`` tries.

An int goes towards 0 or loses a digit, a float towards a short one, a text towards fewer letters and then towards
``a``; a list, tuple, set or dict loses a run of items or one item, has one item simplified, or, where it is a sequence,
its items put in order. Types are kept: an int stays an int.
"""

import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from sandbox import spell

MAX_SIMPLIFIED_ITEMS = 64
"""Of one sequence; further items are not simplified one by one, but they are removed."""
_HUGE = 10**300
_LARGEST_BY_DIGITS = 10**24
"""Integers below it also lose digits one by one."""
_Rebuild = Callable[[list[Any]], Any]


def simpler_values(value: Any) -> Iterator[Any]:
    """Values of the same type, one step simpler by some measure; the caller keeps those that are smaller.

    Args:
        value: what ``sandbox.LiteralReader`` reads. Nothing is simpler than None, or than another type.
    """
    kind = type(value)
    if kind is bool:
        yield from [False] if value else []
    elif kind is int:
        yield from _simpler_ints(value)
    elif kind is float:
        yield from _simpler_floats(value)
    elif kind in (Fraction, Decimal):
        yield from map(kind, _simpler_wholes(value))
    elif kind is str:
        yield from _simpler_texts(value)
    elif kind in (bytes, bytearray):
        yield from (kind(part) for part in _runs_removed(value))
        yield from (kind(part) for part in _items_replaced(list(value), lambda byte: (97,) if byte != 97 else ()))
    elif (parts := _opened(value)) is not None:
        items, rebuild = parts
        simpler = partial(_simpler_pairs, value) if isinstance(value, dict) else simpler_values
        yield from map(rebuild, _runs_removed(items))
        yield from map(rebuild, _items_replaced(items, simpler))
        if kind in (list, tuple, deque):
            yield from map(rebuild, _in_order(items))


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """``value`` with every number, text and None in it replaced; containers keep their type."""
    if (parts := _opened(value)) is None:
        return change(value)
    items, rebuild = parts
    return rebuild([map_leaves(item, change) for item in items])


def leaves(value: Any) -> Iterator[Any]:
    """Every number, text and None in ``value``, in written order."""
    if (parts := _opened(value)) is None:
        yield value
    else:
        for item in parts[0]:
            yield from leaves(item)


def _opened(value: Any) -> tuple[list[Any], _Rebuild] | None:
    """The items of a container in written order, and what makes one of its type of others; None of anything else.

    Those of a dict are its pairs, which are tuples and can be opened themselves.
    """
    kind = type(value)
    if kind in (list, tuple, deque):
        return list(value), kind
    if kind in (set, frozenset):
        return sorted(value, key=spell), kind
    if isinstance(value, defaultdict):
        return list(value.items()), partial(defaultdict, value.default_factory)
    if isinstance(value, Counter):
        return list(value.items()), lambda pairs: Counter(dict(pairs))
    if isinstance(value, dict):
        return list(value.items()), OrderedDict if isinstance(value, OrderedDict) else dict
    return None


def weight(value: Any) -> Fraction | int:
    """How far a value is from the simplest of its length, at least 0: what orders texts of the same length."""
    return sum((_leaf_weight(leaf) for leaf in leaves(value)), 0)


def without_column(value: Any) -> Iterator[Any]:
    """A table (a list of rows of one length) without one of its columns, and a square one without row and column i."""
    if type(value) not in (list, tuple) or len(value) < 2 or not all(type(row) in (list, tuple, str) for row in value):
        return
    widths = {len(row) for row in value}
    if len(widths) != 1 or 0 in widths:
        return
    for column in range(min(widths.pop(), MAX_SIMPLIFIED_ITEMS)):
        rows = [row[:column] + row[column + 1 :] for row in value]
        yield type(value)(rows)
        if len(value) == len(value[0]):
            yield type(value)(rows[:column] + rows[column + 1 :])


def _simpler_ints(value: int) -> Iterator[int]:
    """0, the positive one, halves of halves, what is left after a step of half the way to 0, ..., of one; digits."""
    if value == 0:
        return
    yield 0
    if value < 0:
        yield -value
    sign, size = (1 if value > 0 else -1), abs(value)
    step = size // 2
    while step:
        yield sign * step
        yield sign * (size - step)
        step //= 2
    if size < _LARGEST_BY_DIGITS:
        yield from (sign * int(text) for text in _fewer_digits(str(size)))


def _simpler_floats(value: float) -> Iterator[float]:
    yield 0.0
    yield 1.0
    if not math.isfinite(value):
        return
    yield abs(value)
    if abs(value) < _HUGE:
        yield from map(float, _simpler_ints(math.trunc(value)))
        yield float(math.trunc(value))
    yield value / 2
    yield 0.5 if value > 0 else -0.5
    yield from (round(value, digits) for digits in (1, 2, 3, 6))
    text = repr(value)
    if "e" not in text:
        yield from (math.copysign(float(shorter), value) for shorter in _fewer_digits(text.lstrip("-")))


def _fewer_digits(text: str) -> Iterator[str]:
    """A number without one of its digits, or with one of them 0 or 1."""
    for place, letter in enumerate(text):
        rest = text[:place], text[place + 1 :]
        if letter.isdigit():
            yield from (shorter for shorter in (rest[0] + rest[1],) if shorter.strip("."))
            yield from (f"{rest[0]}{digit}{rest[1]}" for digit in "01" if digit != letter)


def _simpler_wholes(value: Any) -> Iterator[int]:
    yield from (0, 1)
    if abs(value) < _HUGE:  # neither infinite nor NaN
        yield math.trunc(value)
        yield from _simpler_ints(math.trunc(value))


def _simpler_texts(value: str) -> Iterator[str]:
    yield from _runs_removed(value)
    for letter in dict.fromkeys(value):
        yield from (value.replace(letter, simpler) for simpler in _simpler_letters(letter))
    yield from ("".join(letters) for letters in _items_replaced(list(value), _simpler_letters))


def _simpler_letters(letter: str) -> tuple[str, ...]:
    return tuple(other for other in ("a", "b", "0", "A", " ") if _letter_weight(other) < _letter_weight(letter))


def _letter_weight(letter: str) -> int:
    """a to z, then digits, capitals, the space and everything else."""
    for start, first, last in ((0, "a", "z"), (26, "0", "9"), (36, "A", "Z")):
        if first <= letter <= last:
            return start + ord(letter) - ord(first)
    return 62 if letter == " " else 63 + ord(letter)


def _in_order(items: list[Any]) -> Iterator[list[Any]]:
    """All items in order, or two neighbours: of mirror images one is left."""
    texts = [(weight(item), spell(item)) for item in items]
    places = sorted(range(len(items)), key=texts.__getitem__)
    yield [items[place] for place in places]
    for place in range(min(len(items) - 1, MAX_SIMPLIFIED_ITEMS)):
        if texts[place + 1] < texts[place]:
            yield [*items[:place], items[place + 1], items[place], *items[place + 2 :]]


def _simpler_pairs(value: dict[Any, Any], pair: tuple[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """A pair with a simpler key, unless that is another key of the dict, or with a simpler item."""
    key, item = pair
    yield from ((simpler, item) for simpler in simpler_values(key) if simpler == key or simpler not in value)
    yield from ((key, simpler) for simpler in simpler_values(item))


def _runs_removed(items: Sequence[Any]) -> Iterator[Any]:
    """Without all items, without a half, a quarter, ..., without each single one."""
    length = len(items)
    while length:
        for start in range(0, len(items), length):
            yield items[:start] + items[start + length :]  # type: ignore[operator]
        length //= 2


def _items_replaced(items: list[Any], simpler: Callable[[Any], Any]) -> Iterator[list[Any]]:
    for index, item in enumerate(items[:MAX_SIMPLIFIED_ITEMS]):
        for replacement in simpler(item):
            yield [*items[:index], replacement, *items[index + 1 :]]


def _leaf_weight(leaf: Any) -> Fraction | int:
    if isinstance(leaf, bool):
        return int(leaf)
    if isinstance(leaf, str):
        return sum(map(_letter_weight, leaf))
    if isinstance(leaf, (bytes, bytearray)):
        return sum(byte != 97 for byte in leaf)
    if isinstance(leaf, int):
        return 4 * abs(leaf) + (leaf < 0)
    if isinstance(leaf, (float, Fraction, Decimal)):
        return _number_weight(leaf)
    return 0


def _number_weight(number: Any) -> Fraction:
    """Exact, for a step that rounding hides would never end or never be tried."""
    if not abs(number) < _HUGE:
        return Fraction(8 * _HUGE if number != number else 4 * _HUGE)
    size = abs(Fraction(number))
    return 4 * size + int(number < 0) + 2 * int(size.denominator > 1)
