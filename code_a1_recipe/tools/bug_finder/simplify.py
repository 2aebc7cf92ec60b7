"""Simpler calls and values of the same shape, described by choices.

A choice goes from 0, the simplest, to a highest number, which stands for the given value: where all choices are the
highest, the value itself comes back. How many choices there are, and how high they go, depends on the given value
alone. So a lower choice never changes what the others mean.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

from sandbox.text import spell

from .literal_calls import LiteralCall

Choose = Callable[[int], int]
"""Takes the highest number, gives the chosen one."""
_MAX_ITEMS = 32
"""A longer sequence loses runs of items; its items are not simplified one by one."""
_MAX_DIGITS = 24
_LETTERS = "ab0A "
"""What other letters may become, the simplest first."""


def simplified_call(call: LiteralCall, choose: Choose) -> LiteralCall:
    """Simplify the arguments; sequences of one length can lose an item at the same place."""
    lost = _lost_together(call.values, choose)
    changed = [simplified(value, choose, lost.get(place, ())) for place, value in enumerate(call.values)]
    return call.with_values(dict(enumerate(changed)))


def simplified(value: Any, choose: Choose, lost: Collection[int] = ()) -> Any:
    """Simplify a value; its type stays. Rare types, such as bytes and fractions, stay as they are.

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
    if kind is str:
        return "".join(_items_left(value, choose, lost, lambda place: _simplified_letter(value[place], choose)))
    if (parts := opened(value)) is None:
        return value
    items, rebuild = parts
    columns = _lost_together(items, choose)

    def simplify(place: int) -> Any:
        if isinstance(value, dict):
            return tuple(simplified(part, choose) for part in items[place])
        return simplified(items[place], choose, columns.get(place, ()))

    return rebuild(_items_left(items, choose, lost, simplify))


def places_by_length(values: Sequence[Any]) -> dict[int, list[int]]:
    """The places of lists, tuples and texts among the values, by their length."""
    places: dict[int, list[int]] = {}
    for place, value in enumerate(values):
        if type(value) in (list, tuple, str):
            places.setdefault(len(value), []).append(place)
    return places


def _lost_together(values: Sequence[Any], choose: Choose) -> dict[int, set[int]]:
    """The items that sequences of one length lose at the same places, by the place of each sequence."""
    lost: dict[int, set[int]] = {}
    for length, places in places_by_length(values).items():
        if len(places) > 1:
            gone = {item for item in range(min(length, _MAX_ITEMS)) if not choose(1)}
            lost |= dict.fromkeys(places, gone)
    return lost


def _items_left(items: Any, choose: Choose, lost: Collection[int], simplify: Callable[[int], Any]) -> list[Any]:
    """Items that stay, each simplified."""
    run = -(-len(items) // _MAX_ITEMS)
    left = []
    stays = 1
    for place, item in enumerate(items):
        if place % run == 0:
            stays = choose(1)
        simpler = simplify(place) if run == 1 else item
        if stays and place not in lost:
            left.append(simpler)
    return left


def _simplified_int(value: int, choose: Choose) -> int:
    """Nearer to 0, or without some of its digits."""
    is_negative = choose(1) if value < 0 else 0
    size = choose(abs(value))
    if 100 <= abs(value) < 10**_MAX_DIGITS:
        digits = str(abs(value))
        caps = [choose(10) for _ in digits]
        if size == abs(value):
            lower = ""
            for digit, cap in zip(digits, caps, strict=True):
                if cap:
                    lower += min(digit, str(cap - 1))
            size = int(lower or "0")
    return -size if is_negative else size


def _simplified_float(value: float, choose: Choose) -> float:
    """Nearer to 0, or with fewer digits behind the point."""
    text = repr(abs(value))
    whole, _, decimals = text.partition(".")
    if not (whole + decimals).isdecimal():  # infinite, not a number, or with an exponent
        return (0.0, 1.0, value)[choose(2)]
    is_negative = choose(1) if math.copysign(1.0, value) < 0 else 0
    size = choose(int(whole))
    behind = decimals[: choose(len(decimals))]
    sign = "-" if is_negative else ""
    return float(f"{sign}{size}.{behind}0")


def _simplified_letter(letter: str, choose: Choose) -> str:
    simpler = _LETTERS.partition(letter)[0]
    return (simpler + letter)[choose(len(simpler))]


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
