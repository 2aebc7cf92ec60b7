from itertools import combinations

from hypothesis import given, strategies as st

from code_a1_recipe.tools.recorded.harvest import cover

SETS = st.lists(st.frozensets(st.integers(0, 7), max_size=5), max_size=8).map(
    lambda sets: {f"test {number}": members for number, members in enumerate(sets)}
)


def union(sets, names):
    return set().union(*(sets[name] for name in names))


@given(SETS)
def test_the_chosen_sets_hold_what_all_hold_and_none_can_be_spared(sets):
    chosen = cover(sets)
    assert union(sets, chosen) == union(sets, sets)
    for spared in chosen:
        assert union(sets, [name for name in chosen if name != spared]) != union(sets, sets)


@given(SETS)
def test_there_are_no_more_than_the_bound_of_a_greedy_choice(sets):
    least = next(
        size
        for size in range(len(sets) + 1)
        for some in combinations(sets, size)
        if union(sets, some) == union(sets, sets)
    )
    harmonic = sum(1 / n for n in range(1, 1 + max(map(len, sets.values()), default=0)))
    assert len(cover(sets)) <= least * max(1.0, harmonic) + 1e-9


def test_the_largest_comes_first_then_the_earlier():
    assert cover({"a": {1}, "b": {1, 2, 3}, "c": {4}, "d": {4}}) == ["b", "c"]


def test_a_set_that_later_ones_made_needless_goes():
    """Greedy takes the first one first; the two others hold it between them."""
    assert cover({"a": {2, 3, 4, 5}, "b": {1, 2, 3}, "c": {4, 5, 6}}) == ["b", "c"]
