"""Further calls near given ones: small changes of one literal argument each, of the same type."""

import math
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from sandbox import spell

from .literal_calls import LiteralCall, take_apart

LARGE_INTS = (1_000, 10**18 + 9)
"""The second is beyond what a float holds exactly, and too large for any list of that length to be begun."""
LARGE_FLOAT = 1e9
_CHANGED_ITEMS = 4
"""Of a sequence, items that are changed themselves: the first, the last and two between."""
_ADDED_TEXTS = (" ", "0", "é", "ß🙂")
"""Put behind a text: a space, a digit, a letter of two bytes, one whose capital is two letters, one beyond 2**16."""


def variants(calls: Sequence[str], entry_points: Collection[str], *, max_calls: int) -> list[str]:
    """Calls that differ from a given one in one argument, in turns: the first variant of each call, then the second...

    Numbers: one more, one less, 0, negated, large. Texts: empty, a space, doubled, reversed, other case, a letter
    beyond ASCII. Sequences: empty, one item, reversed, doubled, an item repeated, without the first or last, and with
    an item changed in these ways; two of one length also together. Neighbours of one type: swapped.

    Args:
        calls: canonical texts (``sandbox.Call.text``); those without literal arguments have no variants.
        entry_points: names of the functions and classes under test.
        max_calls: of the result.
    """
    taken = [call for text in calls if (call := take_apart(text, entry_points)) is not None]
    seen = set(calls)
    found: list[str] = []
    for turn in zip_longest(*map(_variants_of, taken)):
        for call in turn:
            if call is None or (text := call.text) in seen:
                continue
            if len(found) == max_calls:
                return found
            seen.add(text)
            found.append(text)
    return found


def _variants_of(call: LiteralCall) -> Iterator[LiteralCall]:
    """Changes of the arguments in turns, so that a bound on calls cuts none of them off."""
    yield from _changed_together(call)
    per_argument = [_changed(argument.value) for argument in call.arguments]
    for turn in zip_longest(*per_argument, fillvalue=_NOTHING):
        for index, value in enumerate(turn):
            if value is not _NOTHING:
                yield call.with_values({index: value})
    for index, (one, other) in enumerate(zip(call.arguments, call.arguments[1:], strict=False)):
        if type(one.value) is type(other.value):
            yield call.with_values({index: other.value, index + 1: one.value})


_NOTHING = object()


def _changed_together(call: LiteralCall) -> Iterator[LiteralCall]:
    """All lists, tuples and texts of one length: without their last items, without their first, empty, doubled."""
    for alike in call.sequences().values():
        if len(alike) > 1:
            yield call.with_values({index: items[:-1] for index, items in alike.items()})
            yield call.with_values({index: items[1:] for index, items in alike.items()})
            yield call.with_values({index: items[:0] for index, items in alike.items()})
            yield call.with_values({index: items + items for index, items in alike.items()})


def _changed(value: Any) -> Iterator[Any]:
    kind = type(value)
    if kind is bool:
        yield not value
    elif kind is int:
        yield from (value + 1, value - 1, 0, -value, *LARGE_INTS, -LARGE_INTS[-1])
    elif kind is float:
        yield from (
            value + 1,
            value - 1,
            0.0,
            -value,
            value + 0.5,
            LARGE_FLOAT,
            value / 3 if math.isfinite(value) else 0.1,
        )
    elif kind is str:
        yield from _changed_texts(value)
    elif kind in (bytes, bytearray):
        yield from (kind(), value[:1], value[::-1], value + value, value + b"\x00")
    elif kind in (list, tuple, deque):
        yield from _changed_items(list(value), kind)
    elif kind in (set, frozenset):
        yield from _changed_sets(sorted(value, key=spell), kind)
    elif kind is dict:
        yield from _changed_dicts(value)


def _changed_texts(value: str) -> Iterator[str]:
    yield from ("", " ", value[:1], value[::-1], value + value, value.swapcase(), value[1:], value[:-1])
    yield from (value + added for added in _ADDED_TEXTS)
    yield from (" " + value, value + value[-1:], value.upper(), value.lower(), value + "\n")


def _changed_items(items: list[Any], kind: Callable[[list[Any]], Any]) -> Iterator[Any]:
    yield from (
        kind(part) for part in ([], items[:1], items[::-1], items + items, items + items[-1:], items[:1] + items)
    )
    yield from (kind(part) for part in (items[1:], items[:-1]))
    length = len(items)
    places = sorted({0, length // 3, 2 * length // 3, length - 1})[:_CHANGED_ITEMS] if items else []
    for turn in zip_longest(*(_with_changed_item(items, place) for place in places)):
        yield from (kind(changed) for changed in turn if changed is not None)


def _with_changed_item(items: list[Any], place: int) -> Iterator[list[Any]]:
    for changed in _changed(items[place]):
        yield [*items[:place], changed, *items[place + 1 :]]


def _changed_sets(items: list[Any], kind: Callable[[list[Any]], Any]) -> Iterator[Any]:
    yield from (kind(part) for part in ([], items[:1], items[:-1]))
    for item in items[:1]:
        yield from (kind([*items, changed]) for changed in _changed(item))


def _changed_dicts(value: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
    pairs = list(value.items())
    yield from (dict(part) for part in ([], pairs[:1], pairs[::-1], pairs[1:], pairs[:-1]))
    for key, item in pairs[:_CHANGED_ITEMS]:
        yield from ({**value, key: changed} for changed in _changed(item))
        yield from ({**value, changed: item} for changed in _changed(key))
