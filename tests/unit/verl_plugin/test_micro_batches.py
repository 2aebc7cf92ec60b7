"""Micro-batches: each row once, never above the budget, prompts once, and the same number on every rank."""

from itertools import chain

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.verl_plugin.micro_batches import Row, computed_tokens, micro_batches, split_to

groups = st.lists(st.tuples(st.integers(1, 60), st.lists(st.integers(1, 40), min_size=1, max_size=9)), min_size=1)


def rows_of(drawn):
    return [Row(number, prompt, response) for number, (prompt, responses) in enumerate(drawn) for response in responses]


def sizes(parts, rows):
    return [computed_tokens([rows[row] for row in part]) for part in parts]


@given(groups, st.integers(20, 200))
def test_each_row_is_in_one_micro_batch_and_only_a_single_row_exceeds_the_budget(drawn, budget):
    rows = rows_of(drawn)
    parts = micro_batches(rows, budget=budget)
    assert sorted(chain(*parts)) == list(range(len(rows)))
    assert all(size <= budget or len(part) == 1 for part, size in zip(parts, sizes(parts, rows), strict=True))


@given(groups)
def test_a_group_that_fits_is_never_cut(drawn):
    rows = rows_of(drawn)
    budget = max(sizes([[row for row in range(len(rows)) if rows[row].prompt == one.prompt] for one in rows], rows))
    assert sum(sizes(micro_batches(rows, budget=budget), rows)) == computed_tokens(rows)


@given(groups, st.integers(20, 200), st.data())
def test_any_number_of_micro_batches_up_to_the_rows_can_be_made(drawn, budget, data):
    rows = rows_of(drawn)
    parts = micro_batches(rows, budget=budget)
    number = data.draw(st.integers(len(parts), len(rows)))
    more = split_to(parts, rows, number=number)
    assert (len(more), sorted(chain(*more))) == (number, list(range(len(rows))))
    assert all(more)
    assert max(sizes(more, rows)) <= max(sizes(parts, rows))


def test_a_split_goes_between_groups_where_it_can():
    rows = rows_of([(50, [5, 5]), (40, [5, 5])])
    assert split_to([[0, 1, 2, 3]], rows, number=2) == [[0, 1], [2, 3]]


def test_more_micro_batches_than_rows_are_refused():
    with pytest.raises(ValueError, match="2 rows cannot be 3 micro-batches"):
        split_to([[0, 1]], rows_of([(3, [1, 1])]), number=3)


def test_a_missing_row_and_a_row_of_its_own_cost_their_own_tokens():
    """Thirty groups of eight: without one row, and with two rows of other prompts."""
    whole = [(500 + number, [300 + 7 * member for member in range(8)]) for number in range(30)]
    rows, budget = rows_of(whole), 24_576
    total = sum(sizes(micro_batches(rows, budget=budget), rows))
    assert total == sum(prompt + sum(responses) for prompt, responses in whole)
    less = rows[:11] + rows[12:]
    assert sum(sizes(micro_batches(less, budget=budget), less)) == total - rows[11].response_tokens
    more = [*rows, Row("lesson", 700, 90), Row("filler", 127, 1)]
    assert sum(sizes(micro_batches(more, budget=budget), more)) == total + 700 + 90 + 127 + 1
