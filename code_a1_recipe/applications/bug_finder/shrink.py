"""A failing call -> a minimal one: its literal arguments simplified as long as the call still fails.

Property-testing libraries shrink what they generated themselves and cannot start from a given value (hypothesis shrinks
its own sequence of choices, MacIver and Donaldson, ECOOP 2020), so this is own code. The idea of removing runs of
halving length is that of delta debugging (Zeller and Hildebrandt, IEEE TSE 28(2), 2002); here all simplifications of a
round are asked of the program together, for a batch costs about as much as one call.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

from .literal_calls import LiteralCall, take_apart
from .simpler_values import MAX_SIMPLIFIED_ITEMS, leaves, map_leaves, simpler_values, weight, without_column

BATCH_CALLS = 64
"""Calls that are asked at once."""
MAX_ASKED = 4_000
"""Calls that are asked for one start, in all."""
_Size = tuple[int, Fraction | int, str]

StillFails = Callable[[list[str]], list[bool]]
"""``still_fails(calls)[i]``: call i is valid and fails as the start does. Gets at most the batch, in order of size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """What became of one failing call."""

    call: str
    path: tuple[str, ...]
    """The calls on the way, each smaller than the one before: from the start to ``call``, both included."""
    num_asked: int
    is_minimal: bool
    """No single simplification still fails; False where ``max_asked`` ended the search."""


def shrink(
    call: str,
    still_fails: StillFails,
    *,
    entry_points: Collection[str],
    batch: int = BATCH_CALLS,
    max_asked: int = MAX_ASKED,
) -> Shrunk:
    """Simplify the literal arguments of a failing call, greedily: shorter texts first, then smaller values.

    In each round all single simplifications (:func:`simpler_calls`) are asked in batches, the smallest first; the
    smallest that still fails is the next round's start. Deterministic where ``still_fails`` is.

    Args:
        call: canonical text of a call that fails (``sandbox.Call.text``); it is not asked again.
        still_fails: tests many calls at once.
        entry_points: names of the functions and classes under test.
        batch: calls asked at once, at least 1.
        max_asked: ends the search, at least 0.

    Raises:
        ValueError: ``batch`` or ``max_asked`` is below its least value.
    """
    if batch < 1 or max_asked < 0:
        raise ValueError(f"batch must be at least 1 and max_asked at least 0, got {batch} and {max_asked}")
    current = take_apart(call, entry_points)
    path = [call]
    asked = {call}
    pending: list[LiteralCall] = []
    while current is not None:
        path.append(current.text)
        pending = [simpler for simpler in simpler_calls(current) if simpler.text not in asked]
        current = None
        while pending and current is None and (room := max_asked + 1 - len(asked)) > 0:
            part, pending = pending[: min(batch, room)], pending[min(batch, room) :]
            asked.update(simpler.text for simpler in part)
            answers = still_fails([simpler.text for simpler in part])
            current = next((simpler for simpler, fails in zip(part, answers, strict=True) if fails), None)
    return Shrunk(
        call=path[-1],
        path=tuple(dict.fromkeys(path)),
        num_asked=len(asked) - 1,
        is_minimal=not pending and len(path) > 1,
    )


def size_of(call: LiteralCall) -> _Size:
    """What shrinking makes smaller: length of the text, then distance of the values from 0, ``a`` and False."""
    text = call.text
    # False is simpler than True, and set() than {0}, although they are longer.
    length = len(text) + text.count("True") - 3 * text.count("set()")
    return length, sum(weight(argument.value) for argument in call.arguments), text


def simpler_calls(call: LiteralCall) -> list[LiteralCall]:
    """All single simplifications of a call that are smaller by :func:`size_of`, the smallest first, each once.

    Beside those of one argument: leave the argument out (it may have a default), simplify all equal numbers or texts
    together (a repeated value stays repeated), shorten sequences of one length together, and a sequence together with
    the number that counts it.
    """
    start = size_of(call)
    found: dict[str, tuple[_Size, LiteralCall]] = {}
    for simpler in _simplifications(call):
        size = size_of(simpler)
        if size < start:
            found.setdefault(size[-1], (size, simpler))
    return [simpler for _, simpler in sorted(found.values(), key=lambda pair: pair[0])]


def _simplifications(call: LiteralCall) -> Iterator[LiteralCall]:
    for index, argument in enumerate(call.arguments):
        if argument.name or index + 1 == len(call.arguments) or call.arguments[index + 1].place != argument.place:
            yield call.without(index)
        for value in chain(simpler_values(argument.value), without_column(argument.value)):
            yield call.with_values({index: value})
    yield from _equal_leaves(call)
    yield from _parallel_sequences(call)


def _equal_leaves(call: LiteralCall) -> Iterator[LiteralCall]:
    """Numbers and texts that stand in the call more than once, simplified together."""
    everything = [leaf for argument in call.arguments for leaf in leaves(argument.value)]
    counts: dict[tuple[type, Any], int] = {}
    for leaf in everything:
        if isinstance(leaf, (int, float, str)) and not isinstance(leaf, bool):
            counts[type(leaf), leaf] = counts.get((type(leaf), leaf), 0) + 1
    repeated = [key for key, count in counts.items() if count > 1]
    for kind, old in repeated[:MAX_SIMPLIFIED_ITEMS]:
        for new in simpler_values(old):

            def change(leaf: Any, kind: type = kind, old: Any = old, new: Any = new) -> Any:
                return new if type(leaf) is kind and leaf == old else leaf

            yield call.with_values({index: map_leaves(one.value, change) for index, one in enumerate(call.arguments)})


def _parallel_sequences(call: LiteralCall) -> Iterator[LiteralCall]:
    """Sequences of one length shortened at the same place, alone and with a number that counts them lowered."""
    counts = {index: one.value for index, one in enumerate(call.arguments) if type(one.value) is int and one.value > 0}
    for length, sequences in call.sequences().items():
        half = (length + 1) // 2
        runs = [(0, half), (length - half, length), *((at, at + 1) for at in range(min(length, MAX_SIMPLIFIED_ITEMS)))]
        for first, last in runs:
            shorter = {index: items[:first] + items[last:] for index, items in sequences.items()}
            if len(sequences) > 1:
                yield call.with_values(shorter)
            for index, count in counts.items():
                if count >= last - first:
                    yield call.with_values({**shorter, index: count - (last - first)})
