"""Rows are dealt once, evenly, and groups stay together."""

from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.verl_plugin.batch_parts import deal


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


@pytest.mark.parametrize(("rows", "ranks", "steps"), [(384, 6, 3 * 3), (10, 4, 1), (12, 5, 2)])
def test_rows_that_no_dealing_makes_even_are_refused(rows, ranks, steps):
    with pytest.raises(ValueError, match=f"{rows} rows cannot be dealt evenly to {ranks} ranks with {steps}"):
        deal(["a"] * rows, [1] * rows, fillers=(), ranks=ranks, steps=steps)
