"""Parts of a step cover it, keep every rank's rows and cut no group."""

from collections import Counter
from itertools import chain

import numpy as np
from hypothesis import given, strategies as st

from code_a1_recipe.verl_plugin.batch_parts import balanced_parts, deal, group_parts


@given(st.integers(1, 5), st.integers(0, 40), st.integers(1, 20))
def test_balanced_parts_cover_every_row_once_and_keep_it_with_its_rank(ranks, block, at_once):
    parts = balanced_parts(ranks * block, ranks=ranks, at_once=at_once)
    assert sorted(place for part in parts for place in part) == list(range(ranks * block))
    for part in parts:
        assert len(part) <= max(at_once, ranks)
        places_of_ranks = np.reshape(part, (ranks, -1))
        assert (places_of_ranks // block == np.arange(ranks)[:, None]).all()


@given(st.lists(st.sampled_from("abcdef")), st.integers(1, 10))
def test_group_parts_cover_every_row_once_and_cut_no_group(groups, at_once):
    parts = group_parts(groups, at_once=at_once)
    assert sorted(place for part in parts for place in part) == list(range(len(groups)))
    homes = [{groups[place] for place in part} for part in parts]
    assert sum(map(len, homes)) == len(set(groups))
    for part, home in zip(parts, homes, strict=True):
        assert len(part) <= at_once or len(home) == 1


@given(st.lists(st.integers(1, 9), min_size=1), st.integers(1, 4), st.integers(1, 4))
def test_rows_are_dealt_once_and_every_step_gets_as_many_real_ones(sizes, ranks, steps):
    groups = [f"{number}" for number, size in enumerate(sizes) for _ in range(size)]
    num_real = len(groups)
    groups += ["pad"] * (-num_real % (ranks * steps))
    fillers = set(range(num_real, len(groups)))
    blocks = deal(groups, [7] * len(groups), fillers=fillers, ranks=ranks, steps=steps)
    assert sorted(chain(*blocks)) == list(range(len(groups)))
    num_real_of_steps = (np.reshape(blocks, (ranks, steps, -1)) < num_real).sum(axis=(0, 2))
    assert np.ptp(num_real_of_steps) <= ranks * max(sizes)


def test_groups_of_one_size_are_dealt_evenly_and_stay_together():
    groups = [f"{number}" for number in range(24) for _ in range(8)] + ["pad"] * 64
    tokens = [100 + place % 17 for place in range(192)] + [1] * 64
    blocks = deal(groups, tokens, fillers=set(range(192, 256)), ranks=4, steps=2)
    for cell in np.reshape(blocks, (8, 32)):
        counts = Counter(groups[place] for place in cell)
        assert (counts["pad"], sorted(counts.values())) == (8, [8, 8, 8, 8])


def test_rows_that_count_nothing_are_in_no_part_alone():
    groups = ["pad"] * 30 + ["a", "a", "b"]
    parts = group_parts(groups, fillers=range(30), at_once=2)
    assert [part[:2] for part in parts] == [[30, 31], [32, 1]]
    assert sorted(chain(*parts)) == list(range(33))


def test_a_small_step_is_one_part_in_its_order():
    assert balanced_parts(6, ranks=2, at_once=100) == [[0, 1, 2, 3, 4, 5]]
    assert group_parts(["a", "a", "b"], at_once=100) == [[0, 1, 2]]
