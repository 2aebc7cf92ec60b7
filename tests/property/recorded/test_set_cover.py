from itertools import combinations

import pytest
from hypothesis import given, strategies as st

from examples.harvest_tests.set_cover import cover

SETS = st.lists(st.frozensets(st.integers(0, 7), max_size=5), max_size=8)


def union(sets):
    return set().union(*sets)


@given(SETS, st.data())
def test_the_chosen_sets_hold_what_all_hold(sets, data):
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(sets), max_size=len(sets)))
    chosen = cover(sets, weights)
    assert union(sets[place] for place in chosen) == union(sets)
    assert len(set(chosen)) == len(chosen)


@given(SETS)
def test_none_of_them_can_be_spared(sets):
    chosen = cover(sets, [0] * len(sets))
    for spared in chosen:
        assert union(sets[place] for place in chosen if place != spared) != union(sets)


@given(SETS, st.integers(0, 9))
def test_as_many_as_asked_for_are_chosen_as_far_as_there_are(sets, least):
    chosen = cover(sets, range(len(sets)), least=least)
    assert len(chosen) >= min(least, len(sets))
    assert union(sets[place] for place in chosen) == union(sets)
    fewest = cover(sets, range(len(sets)))
    assert chosen[: len(fewest)] == fewest


@given(SETS)
def test_there_are_no_more_than_the_bound_of_a_greedy_choice(sets):
    least = next(
        size
        for size in range(len(sets) + 1)
        for some in combinations(sets, size)
        if union(some) == union(sets)
    )  # fmt: skip
    harmonic = sum(1 / n for n in range(1, 1 + max(map(len, sets), default=0)))
    assert len(cover(sets, [0] * len(sets))) <= least * max(1.0, harmonic) + 1e-9


def test_the_largest_comes_first_then_the_heavier_then_the_earlier():
    assert cover([{1}, {1, 2, 3}, {4}, {4}, {4}], [9, 0, 1, 2, 2]) == [1, 3]


def test_a_set_that_later_ones_made_needless_goes():
    """Greedy takes the middle one first; the two others hold it between them."""
    sets = [{2, 3, 4, 5}, {1, 2, 3}, {4, 5, 6}]
    assert cover(sets, [0, 0, 0]) == [1, 2]


def test_every_set_has_a_weight():
    with pytest.raises(ValueError, match="need a weight for each set, got 1 sets and 0 weights"):
        cover([{1}], [])
