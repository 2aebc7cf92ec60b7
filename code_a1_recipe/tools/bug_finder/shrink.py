"""Shrinks a failing call with Hypothesis: searches for the simplest call that still fails.

Hypothesis shrinks the choices by which a value was drawn (MacIver and Donaldson, ECOOP 2020). The choices that give the
failing call itself are known (see ``simplify``). This module stores the known choices in an example database in memory,
where Hypothesis finds its starting point.
"""

from collections.abc import Callable, Collection

from hypothesis import Phase, find, settings, strategies as st
from hypothesis.database import InMemoryExampleDatabase

from .literal_calls import LiteralCall, take_apart
from .simplify import simplified_call

_KEY = b"failing call"


def shrink(
    text: str,
    fails: Callable[[str], bool],
    *,
    entry_points: Collection[str],
    max_asked: int,
) -> list[str]:
    """Simplify the literal arguments of a failing call.

    Args:
        text: canonical text of a call that fails (``sandbox.Call.text``); this call is not made again.
        fails: makes a call, and says whether the call still fails. ``fails`` gets each text at most once.
        entry_points: names of the functions and classes under test.
        max_asked: number of calls after which the search ends.

    Returns:
        The texts of all calls that failed: first the simplest call, then the others, from the newest to the oldest.
        ``text`` comes last.
    """
    known = {text: True}

    def still_fails(simpler: str) -> bool:
        if simpler not in known:
            known[simpler] = len(known) <= max_asked and fails(simpler)
        return known[simpler]

    simplest = text
    starts = set()
    # A long sequence loses only whole runs of items. Once the sequence is shorter, a further search can also remove
    # single items.
    while simplest not in starts:
        starts.add(simplest)
        call = take_apart(simplest, entry_points)
        if call is not None:
            simplest = _simplest(call, still_fails)
    failing = [asked for asked, fails_too in reversed(known.items()) if fails_too]
    return list(dict.fromkeys([simplest, *failing]))


def _simplest(call: LiteralCall, fails: Callable[[str], bool]) -> str:
    @st.composite
    def texts(draw: st.DrawFn, *, is_start: bool) -> str:
        def choose(most: int) -> int:
            # The range begins at 1, because Hypothesis may draw constants of loaded modules from a range that contains
            # 0. To find such constants, Hypothesis would read the source of the modules and write a cache.
            lowest = most + 1 if is_start else 1
            return draw(st.integers(lowest, most + 1)) - 1

        simpler = simplified_call(call, choose)
        if is_start:  # store one choice too many, because Hypothesis would not shrink stored choices that fit exactly
            draw(st.integers(0, 0))
        return simpler.text

    store = settings(
        database=InMemoryExampleDatabase(),
        phases=[Phase.generate],
        deadline=None,
    )
    find(
        texts(is_start=True),
        lambda text: True,
        settings=store,
        database_key=_KEY,
    )
    shrinking = settings(store, phases=[Phase.reuse, Phase.shrink])
    return find(
        texts(is_start=False),
        fails,
        settings=shrinking,
        database_key=_KEY,
    )
