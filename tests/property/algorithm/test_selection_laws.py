"""Laws of the group selectors."""

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.algorithm.selection import GROUP_SELECTORS, top_variance

rewards = st.one_of(st.none(), st.floats(min_value=-1.0, max_value=1.0))
tables = st.lists(st.lists(rewards, min_size=1, max_size=5), max_size=6)


@pytest.mark.parametrize("name", sorted(GROUP_SELECTORS))
@given(reward_CS=tables, update_n=st.integers(min_value=1, max_value=8))
def test_choices_are_distinct_eligible_and_not_too_many(name, reward_CS, update_n):
    chosen = GROUP_SELECTORS[name](reward_CS, update_n=update_n)
    eligible = [c for c, row in enumerate(reward_CS) if None not in row]
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= set(eligible)
    assert len(chosen) == (len(eligible) if name == "all" else min(update_n, len(eligible)))


@given(reward_CS=tables, data=st.data())
def test_the_order_of_a_candidates_suites_does_not_matter(reward_CS, data):
    shuffled = [data.draw(st.permutations(row)) for row in reward_CS]
    assert top_variance(reward_CS, update_n=2) == top_variance(shuffled, update_n=2)


@given(reward_CS=tables, update_n=st.integers(min_value=1, max_value=6))
def test_asking_for_more_only_adds_to_the_end(reward_CS, update_n):
    fewer = top_variance(reward_CS, update_n=update_n)
    more = top_variance(reward_CS, update_n=update_n + 1)
    assert more[: len(fewer)] == fewer


@given(low=st.floats(0.0, 0.4), width=st.floats(0.01, 0.25))
def test_a_wider_pair_of_rewards_is_preferred(low, width):
    assert top_variance([[low, low + width], [low, low + 2 * width]], update_n=1) == (1,)
