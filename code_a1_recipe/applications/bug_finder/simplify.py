"""Simpler calls and values of the same shape, described by choices.

A choice goes from 0, the simplest, to a highest number, which stands for the given value: where all choices are the
highest, the value itself comes back. How many choices there are, and how high they go, depends on the given value
alone. So a lower choice never changes what the others mean.
"""

import math
import string
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from sandbox import spell

from .literal_calls import LiteralCall

Choose = Callable[[int], int]
"""Takes the highest number, gives the chosen one."""
_MAX_ITEMS = 64
"""A longer sequence loses runs of items; its items are not simplified one by one."""
_MAX_DIGITS = 24
_LETTERS = string.ascii_lowercase + string.digits + string.ascii_uppercase + " "
"""The simplest first."""


def simplified_call(call: LiteralCall, choose: Choose) -> LiteralCall:
    """Simplify the arguments; the last ones and the named ones may go, for they may have defaults.

    Sequences of one length can lose an item at the same place, and a number that counts their items goes down with it.
    """
    lost: dict[int, set[int]] = {}
    lowered: Counter[int] = Counter()
    for length, places in call.places_by_length().items():
        counting = [place for place, argument in enumerate(call.arguments) if _counts(argument.value, length)]
        if len(places) + len(counting) < 2:
            continue
        for item in range(min(length, _MAX_ITEMS)):
            choice = choose(2)
            if choice < 2:
                for place in places:
                    lost.setdefault(place, set()).add(item)
            if choice == 0:
                lowered.update(counting)
    kept = []
    for place in reversed(range(len(call.arguments))):
        argument = call.arguments[place]
        may_go = bool(argument.name) or not kept or kept[-1].place != argument.place or bool(kept[-1].name)
        stays = choose(1)
        value = simplified(argument.value, choose, lost.get(place, ()))
        if place in lowered:
            value = max(0, value - lowered[place])
        if stays or not may_go:
            kept.append(replace(argument, value=value))
    return replace(call, arguments=tuple(reversed(kept)))


def _counts(value: Any, length: int) -> bool:
    return type(value) is int and value == length


def simplified(value: Any, choose: Choose, lost: Collection[int] = ()) -> Any:
    """Simplify a value; its type stays.

    Args:
        value: what ``sandbox.LiteralReader`` reads.
        choose: makes all choices.
        lost: places of items that a sequence loses.
    """
    kind = type(value)
    if kind is bool:
        return bool(choose(int(value)))
    if kind is int:
        return _simplified_int(value, choose)
    if kind is float:
        return _simplified_float(value, choose)
    if kind in (Fraction, Decimal):
        return (kind(0), kind(1), value)[choose(2)]
    if kind is str:
        return "".join(_simplified_items(value, choose, _simplified_letter, lost))
    if kind in (bytes, bytearray):
        letters = _simplified_items(value.decode("latin-1"), choose, _simplified_letter, lost)
        return kind("".join(letters).encode("latin-1"))
    if (parts := opened(value)) is None:
        return value
    items, rebuild = parts
    columns: list[int] = []
    if _is_table(value):
        is_square = len(items) == len(items[0])
        for column in range(min(len(items[0]), _MAX_ITEMS)):
            choice = choose(2)
            if choice < 2:
                columns.append(column)
            if choice == 0 and is_square:
                lost = {*lost, column}
    simplify = _simplified_pair if isinstance(value, dict) else partial(simplified, lost=columns)
    return rebuild(_simplified_items(items, choose, simplify, lost))


def _simplified_items(items: Any, choose: Choose, simplify: Callable[..., Any], lost: Collection[int]) -> list[Any]:
    run = -(-len(items) // _MAX_ITEMS)
    kept = []
    stays = 1
    for place, item in enumerate(items):
        if place % run == 0:
            stays = choose(1)
        simpler = simplify(item, choose) if run == 1 else item
        if stays and place not in lost:
            kept.append(simpler)
    return kept


def _simplified_int(value: int, choose: Choose) -> int:
    """Nearer to 0, or without some of its digits."""
    is_negative = choose(1) if value < 0 else 0
    size = choose(abs(value))
    if 100 <= abs(value) < 10**_MAX_DIGITS:
        digits = str(abs(value))
        caps = [choose(10) for _ in digits]
        if size == abs(value):
            lower = [min(digit, str(cap - 1)) for digit, cap in zip(digits, caps, strict=True) if cap]
            size = int("".join(lower) or "0")
    return -size if is_negative else size


def _simplified_float(value: float, choose: Choose) -> float:
    """Nearer to 0, or with fewer digits behind the point."""
    text = repr(abs(value))
    whole, _, decimals = text.partition(".")
    if not (whole + decimals).isdecimal():  # infinite, not a number, or with an exponent
        return (0.0, 1.0, value)[choose(2)]
    is_negative = choose(1) if math.copysign(1.0, value) < 0 else 0
    size = choose(int(whole))
    # Backwards, for what is chosen first becomes simple first.
    behind = "".join(str(choose(int(digit))) for digit in reversed(decimals))[::-1]
    return float(f"{'-' if is_negative else ''}{size}.{behind}")


def _simplified_letter(letter: str, choose: Choose) -> str:
    rank = _LETTERS.find(letter) if letter in _LETTERS else len(_LETTERS)
    simpler = [other for other in "ab0A " if _LETTERS.index(other) < rank]
    return [*simpler, letter][choose(len(simpler))]


def _simplified_pair(pair: tuple[Any, Any], choose: Choose) -> tuple[Any, Any]:
    key, item = pair
    return simplified(key, choose), simplified(item, choose)


def _is_table(items: Any) -> bool:
    """At least two rows of one length, which is not 0."""
    return (
        type(items) in (list, tuple)
        and len(items) > 1
        and all(type(row) in (list, tuple, str) for row in items)
        and len({len(row) for row in items}) == 1
        and len(items[0]) > 0
    )


def opened(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]] | None:
    """The items of a container, and what makes one of its type from others; None of anything else.

    The items of a dict are its pairs, which are tuples.
    """
    kind = type(value)
    if kind in (list, tuple, deque):
        return list(value), kind
    if kind in (set, frozenset):
        return sorted(value, key=spell), kind
    if kind in (dict, OrderedDict):
        return list(value.items()), kind
    return None
