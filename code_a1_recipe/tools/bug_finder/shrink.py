"""Shrinks a failing call with Hypothesis, as long as it still fails.

Hypothesis shrinks the choices by which a value was drawn (MacIver and Donaldson, ECOOP 2020). The choices of the
failing call are known (``simplify``), so they are stored in an example database in memory, from which Hypothesis
begins.
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
        text: canonical text of a call that fails (``sandbox.Call.text``); it is not asked again.
        fails: says whether a call still fails; each text is asked once.
        entry_points: names of the functions and classes under test.
        max_asked: ends the search.

    Returns:
        All calls that failed: the simplest first, then from the last asked to the given one.
    """
    known = {text: True}

    def still_fails(simpler: str) -> bool:
        if simpler not in known:
            known[simpler] = len(known) <= max_asked and fails(simpler)
        return known[simpler]

    simplest = text
    starts = set()
    # A further search makes steps that the one before could not make: what was a run of items is now single ones.
    while simplest not in starts:
        starts.add(simplest)
        call = take_apart(simplest, entry_points)
        if call is not None:
            simplest = _simplest(call, still_fails)
    failing = [asked for asked, fails_too in known.items() if fails_too]
    failing.reverse()
    return list(dict.fromkeys([simplest, *failing]))


def _simplest(call: LiteralCall, fails: Callable[[str], bool]) -> str:
    @st.composite
    def texts(draw: st.DrawFn, *, is_start: bool) -> str:
        def choose(most: int) -> int:
            # From 1, for a choice from 0 may be replaced at random, and that reads and caches the source of modules.
            lowest = most + 1 if is_start else 1
            return draw(st.integers(lowest, most + 1)) - 1

        simpler = simplified_call(call, choose)
        if is_start:  # one choice too many, for Hypothesis takes stored choices that fit exactly as shrunk already
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
