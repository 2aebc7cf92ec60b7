"""Further calls near given ones: small changes of one literal argument each, of the same type.

They are the same in every run. Hypothesis could draw them too, but what it draws depends on the modules that are
loaded.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import Any

from .literal_calls import LiteralCall, take_apart
from .simplify import opened

_LARGE = 10**18 + 9
"""More than a float holds exactly, and too large for any list of that length to be begun."""
_NOTHING = object()


def variants(calls: Sequence[str], entry_points: Collection[str], *, max_calls: int) -> list[str]:
    """Calls that differ from a given one in one argument, in turns: the first variant of each call, then the second...

    Sequences of one length are also changed together, and neighbours of one type change places.

    Args:
        calls: canonical texts (``sandbox.Call.text``); those without literal arguments have no variants.
        entry_points: names of the functions and classes under test.
        max_calls: of the result.
    """
    taken = [call for text in calls if (call := take_apart(text, entry_points)) is not None]
    known = set(calls)
    found: list[str] = []
    for call in _in_turns(map(_changed_calls, taken)):
        if len(found) == max_calls:
            break
        if call.text not in known:
            known.add(call.text)
            found.append(call.text)
    return found


def _in_turns(groups: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """The first of each group, then the second of each: a bound on calls cuts none of the groups off."""
    for turn in zip_longest(*groups, fillvalue=_NOTHING):
        yield from (value for value in turn if value is not _NOTHING)


def _changed_calls(call: LiteralCall) -> Iterator[LiteralCall]:
    values = [argument.value for argument in call.arguments]
    for places in call.places_by_length().values():
        if len(places) > 1:
            shortened = {place: _parts(values[place]) for place in places}
            for number in range(4):
                yield call.with_values({place: parts[number] for place, parts in shortened.items()})
    changed = [[call.with_values({place: other}) for other in _changed(value)] for place, value in enumerate(values)]
    yield from _in_turns(changed)
    for place, (value, following) in enumerate(pairwise(values)):
        if type(value) is type(following):
            yield call.with_values({place: following, place + 1: value})


def _changed(value: Any) -> list[Any]:
    kind = type(value)
    if kind is bool:
        return [not value]
    if kind is int:
        return [value + 1, value - 1, 0, -value, 1000, _LARGE, -_LARGE]
    if kind is float:
        return [value + 1, value - 1, 0.0, -value, value + 0.5, 1e9, value / 3]
    if kind is str:
        added = [value + more for more in (" ", "0", "é", "ß🙂", value[-1:], "\n")]
        return [*_parts(value), *added, " ", " " + value, value.swapcase(), value.upper(), value.lower()]
    if kind in (bytes, bytearray):
        return [*_parts(value), value + b"\x00"]
    if (parts := opened(value)) is None:
        return []
    items, rebuild = parts
    change = _changed_pair if isinstance(value, dict) else _changed
    length = len(items)
    places = sorted({0, length // 3, 2 * length // 3, length - 1}) if items else []
    changed_items = [
        [[*items[:place], other, *items[place + 1 :]] for other in change(items[place])] for place in places
    ]
    repeated = [items + items[-1:], items[:1] + items]
    return [rebuild(list(changed)) for changed in [*_parts(items), *repeated, *_in_turns(changed_items)]]


def _parts(items: Any) -> list[Any]:
    return [items[:-1], items[1:], items[:0], items + items, items[:1], items[::-1]]


def _changed_pair(pair: tuple[Any, Any]) -> list[tuple[Any, Any]]:
    key, item = pair
    return [*((key, other) for other in _changed(item)), *((other, item) for other in _changed(key))]
