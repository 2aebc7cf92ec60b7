"""Makes new calls from given calls. A new call differs by a small change of a literal argument, which keeps its type.

The new calls are the same in every run. This module does not use Hypothesis, because the calls that Hypothesis draws
depend on the loaded modules.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from .literal_calls import LiteralCall, take_apart
from .simplify import opened, places_by_length

_LARGE = 10**18 + 9
"""An integer that a float cannot hold exactly. A list of this length never fits into memory."""


def variants(calls: Sequence[str], entry_points: Collection[str], *, max_calls: int) -> list[str]:
    """Make variants of calls: the first variant of each call, then the second variant of each call, and so on.

    A variant differs from its call in one argument. Sequences of equal length are also changed together.

    Args:
        calls: canonical texts (``sandbox.Call.text``). Calls without literal arguments have no variants.
        entry_points: names of the functions and classes under test.
        max_calls: largest number of calls in the result.
    """
    changed = []
    for text in calls:
        if call := take_apart(text, entry_points):
            changed.append(_changed_calls(call))
    known = dict.fromkeys(calls)
    num_given = len(known)
    for variant in _in_turns(changed):
        if len(known) == num_given + max_calls:
            break
        known.setdefault(variant.text)
    return list(known)[num_given:]


def _in_turns(groups: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """Yield the first value of each group, then the second value of each group, and so on."""
    for turn in zip_longest(*groups):
        yield from (value for value in turn if value is not None)


def _changed_calls(call: LiteralCall) -> Iterator[LiteralCall]:
    values = call.values
    for places in places_by_length(values).values():
        if len(places) > 1:
            all_parts = [_parts(values[place]) for place in places]
            for parts in zip(*all_parts, strict=True):
                yield call.with_values(dict(zip(places, parts, strict=True)))
    with_one_changed = []
    for place, value in enumerate(values):
        with_one_changed.append([call.with_values({place: changed}) for changed in _changed(value)])
    yield from _in_turns(with_one_changed)


def _changed(value: Any) -> list[Any]:
    """List changed values of the same type. Values of rare types, such as bytes, are not changed."""
    kind = type(value)
    if kind is bool:
        return [not value]
    if kind in (int, float):
        further = [_LARGE, -_LARGE] if kind is int else [value + 0.5, 1e9, value / 3]
        return [
            value + 1,
            value - 1,
            kind(0),
            -value,
            kind(1000),
            *further,
        ]
    if kind is str:
        longer = [value + end for end in (" ", "0", "é", "ß🙂", value[-1:], "\n")]
        return [
            *_parts(value),
            *longer,
            " ",
            " " + value,
            value.swapcase(),
            value.upper(),
            value.lower(),
        ]
    parts = opened(value)
    if parts is None:
        return []
    items, rebuild = parts
    last = len(items) - 1
    places = sorted({0, last // 3, 2 * last // 3, last}) if items else []
    with_one_changed = []
    for place in places:
        before, item, after = items[:place], items[place], items[place + 1 :]
        changed_items = _changed(item)
        if isinstance(value, dict):
            key, mapped = item
            changed_items = [(key, changed) for changed in _changed(mapped)]
            changed_items += [(changed, mapped) for changed in _changed(key)]
        with_one_changed.append([[*before, changed, *after] for changed in changed_items])
    repeated = [items + items[-1:], items[:1] + items]
    return [rebuild(part) for part in [*_parts(items), *repeated, *_in_turns(with_one_changed)]]


def _parts(items: Any) -> list[Any]:
    """List sequences that are made of the items of a given sequence."""
    return [
        items[:-1],
        items[1:],
        items[:0],
        items + items,
        items[:1],
        items[::-1],
    ]
