"""Makes further calls near given ones. Each has a small change of one literal argument, whose type stays.

The calls are the same in every run. Calls that Hypothesis draws would depend on the modules that are loaded.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from .literal_calls import LiteralCall, take_apart
from .simplify import opened, places_by_length

_LARGE = 10**18 + 9
"""A float cannot hold it exactly, and no process can begin a list of this length."""


def variants(calls: Sequence[str], entry_points: Collection[str], *, max_calls: int) -> list[str]:
    """Make calls that differ from a given one in one argument: the first variant of each call, then the second...

    Sequences of one length are also changed together.

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
    """Yield the first value of each group, then the second of each. So a limit on calls is fair to all groups."""
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
    """List small changes of a value, of the same type; none for rare types."""
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
    """List sequences that are made of the items of a given one."""
    return [
        items[:-1],
        items[1:],
        items[:0],
        items + items,
        items[:1],
        items[::-1],
    ]
