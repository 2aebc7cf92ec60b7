"""Makes simpler calls and values of the same types. A list of choices determines each simpler value.

A choice is an integer from 0 to a highest number; 0 is the simplest choice. If every choice is its highest number, the
result is the given value itself. The number of choices and their highest numbers depend only on the given value. So a
lower choice never changes the meaning of the other choices.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from sandbox.text import spell

from .literal_calls import LiteralCall

Choose = Callable[[int], int]
"""Takes the highest number of a choice, and returns the chosen number."""
_MAX_ITEMS = 32
"""A sequence with more items loses only whole runs of items, and its items are not simplified."""
_MAX_DIGITS = 24
"""Single digits are lowered and removed only in integers with 3 to ``_MAX_DIGITS`` digits."""
_LETTERS = "ab0A "
"""Letters that replace other letters, the simplest first."""


def simplified_call(call: LiteralCall, choose: Choose) -> LiteralCall:
    """Simplify the arguments. Sequences of equal length can lose items at the same places."""
    lost = _lost_together(call.values, choose)
    values = []
    for place, value in enumerate(call.values):
        values.append(simplified(value, choose, lost.get(place, ())))
    return replace(call, values=values)


def simplified(value: Any, choose: Choose, lost: Collection[int] = ()) -> Any:
    """Simplify a value and keep its type. Values of rare types, such as bytes and fractions, do not change.

    Args:
        value: a value that ``sandbox.LiteralReader`` reads.
        choose: makes all choices.
        lost: if the value is a sequence, the places of the items that it loses in any case.
    """
    kind = type(value)
    if kind is bool:
        return bool(choose(int(value)))
    if kind is int:
        return _simplified_int(value, choose)
    if kind is float:
        return _simplified_float(value, choose)
    if kind is str:

        def simplify_letter(place: int) -> str:
            return _simplified_letter(value[place], choose)

        return "".join(_items_left(value, choose, lost, simplify_letter))
    parts = opened(value)
    if parts is None:
        return value
    items, rebuild = parts
    columns = _lost_together(items, choose)

    def simplify(place: int) -> Any:
        item = items[place]
        if isinstance(value, dict):
            return tuple(simplified(part, choose) for part in item)
        return simplified(item, choose, columns.get(place, ()))

    return rebuild(_items_left(items, choose, lost, simplify))


def places_by_length(values: Sequence[Any]) -> dict[int, list[int]]:
    """Group the lists, tuples and texts among the values: length -> places of the values of this length."""
    places: dict[int, list[int]] = {}
    for place, value in enumerate(values):
        if type(value) in (list, tuple, str):
            places.setdefault(len(value), []).append(place)
    return places


def _lost_together(values: Sequence[Any], choose: Choose) -> dict[int, set[int]]:
    """Choose items that all sequences of equal length lose: place of a sequence -> places of its lost items."""
    lost: dict[int, set[int]] = {}
    for length, places in places_by_length(values).items():
        if len(places) < 2:
            continue
        items = set()
        for item in range(min(length, _MAX_ITEMS)):
            if not choose(1):
                items.add(item)
        lost |= dict.fromkeys(places, items)
    return lost


def _items_left(
    items: Any,
    choose: Choose,
    lost: Collection[int],
    simplify: Callable[[int], Any],
) -> list[Any]:
    """Choose the items that stay, and simplify each of them."""
    run_length = math.ceil(len(items) / _MAX_ITEMS)
    left = []
    stays = 1
    for place, item in enumerate(items):
        if place % run_length == 0:
            stays = choose(1)
        # A removed item is simplified too, because the number of choices must not depend on other choices.
        simpler = simplify(place) if run_length == 1 else item
        if stays and place not in lost:
            left.append(simpler)
    return left


def _simplified_int(value: int, choose: Choose) -> int:
    """Bring an integer nearer to 0, or lower some of its digits and remove others."""
    largest = abs(value)
    is_negative = value < 0 and choose(1)
    size = choose(largest)
    if 100 <= largest < 10**_MAX_DIGITS:
        caps = [choose(10) for _ in str(largest)]
        if size == largest:
            digits = ""
            for digit, cap in zip(str(largest), caps, strict=True):
                if cap:  # a cap of 0 removes the digit; any other cap is the highest allowed digit plus 1
                    digits += min(digit, str(cap - 1))
            size = int(digits or "0")
    return -size if is_negative else size


def _simplified_float(value: float, choose: Choose) -> float:
    """Bring a float nearer to 0, or remove digits after the point."""
    whole, _, decimals = repr(abs(value)).partition(".")
    if not (whole + decimals).isdecimal():  # the float is infinite, not a number, or written with an exponent
        return (0.0, 1.0, value)[choose(2)]
    is_negative = math.copysign(1.0, value) < 0 and choose(1)
    whole = str(choose(int(whole)))
    num_decimals = choose(len(decimals))
    size = float(f"{whole}.{decimals[:num_decimals]}0")
    return -size if is_negative else size


def _simplified_letter(letter: str, choose: Choose) -> str:
    simpler_letters = _LETTERS.partition(letter)[0]
    number = choose(len(simpler_letters))
    return (simpler_letters + letter)[number]


def opened(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]] | None:
    """Take the items out of a container; None if the value is no container.

    Returns:
        The items, and a function that makes a container of the same type from other items. The items of a dict are
        tuples (key, value).
    """
    kind = type(value)
    if kind in (list, tuple, deque):
        return list(value), kind
    if kind in (set, frozenset):
        return sorted(value, key=spell), kind
    if kind in (dict, OrderedDict):
        return list(value.items()), kind
    return None
