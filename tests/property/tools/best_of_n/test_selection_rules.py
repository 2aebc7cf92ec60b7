"""Laws of the rules that choose among programs."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.tools.best_of_n.selection_rules import (
    NO_ANSWER,
    RULES,
    best_programs,
    expected_pass,
)


@st.composite
def matrices(draw, min_tests=0):
    """(passes, answers, is_right) of up to 6 programs and 6 tests."""
    shape = draw(st.integers(1, 6)), draw(st.integers(min_tests, 6))

    def filled(values, dtype):
        cells = draw(st.lists(values, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
        return np.array(cells, dtype=dtype).reshape(shape)

    right = draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0]))
    return filled(st.booleans(), np.bool_), filled(st.integers(NO_ANSWER, 2), np.int64), np.array(right)


@pytest.mark.parametrize("name", sorted(RULES))
@given(matrix=matrices(), data=st.data())
def test_the_order_of_programs_and_tests_does_not_matter(name, matrix, data):
    passes, answers, right = matrix
    num_programs, num_tests = passes.shape
    programs = data.draw(st.permutations(range(num_programs)))
    order = np.ix_(programs, data.draw(st.permutations(range(num_tests))))
    scores = RULES[name](passes, answers)
    shuffled = RULES[name](passes[order], answers[order])
    assert shuffled == pytest.approx(scores[programs])
    assert expected_pass(shuffled, right[programs]) == expected_pass(scores, right)


@pytest.mark.parametrize("name", ["pass_count", "codet"])
@given(matrix=matrices(min_tests=1))
def test_a_program_that_passes_all_tests_is_never_beaten_by_one_that_passes_fewer_where_it_is_not_alone(name, matrix):
    passes, answers, _ = matrix
    best = np.ones((len(passes) + 1, passes.shape[1]), dtype=np.bool_)
    scores = RULES[name](np.vstack([best, passes]), np.vstack([answers[:1].repeat(len(best), axis=0), answers]))
    assert 0 in best_programs(scores)
