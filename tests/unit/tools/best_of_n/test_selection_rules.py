"""Each rule on matrices small enough to be worked out by hand."""

import numpy as np
import pytest

from code_a1_recipe.tools.best_of_n.selection_rules import (
    NO_ANSWER,
    RULES,
    best_programs,
    expected_pass,
)


def passes(*rows):
    """``passes("110", "001")``: programs x tests."""
    return np.array([[letter == "1" for letter in row] for row in rows], dtype=np.bool_)


def answers(*rows):
    """``answers("001", "0x1")``: ids of answers; x is no answer."""
    return np.array([[NO_ANSWER if letter == "x" else int(letter) for letter in row] for row in rows], dtype=np.int64)


def scores(name, passes_NM, answers_NM=None):
    given = np.zeros(passes_NM.shape, dtype=np.int64) if answers_NM is None else answers_NM
    return RULES[name](passes_NM, given).tolist()


THREE_AGREE = passes("1100", "1100", "1100", "1111", "0011")


def test_pass_count_counts_tests_passed():
    assert scores("pass_count", THREE_AGREE) == [2, 2, 2, 4, 2]


def test_codet_multiplies_the_size_of_a_consensus_set_with_the_tests_it_passes():
    # Three programs pass the same two tests: 3 * 2. One passes all four: 1 * 4. One passes two alone: 1 * 2.
    assert scores("codet", THREE_AGREE) == [6, 6, 6, 4, 2]


def test_mbr_exec_counts_programs_with_the_same_answers_whatever_the_claims():
    given = answers("01", "01", "00", "11")
    assert scores("mbr_exec", passes("00", "00", "11", "11"), given) == [2, 2, 1, 1]


def test_a_program_without_an_answer_agrees_with_none_not_even_itself():
    given = answers("0x", "0x", "00")
    assert scores("mbr_exec", passes("11", "11", "00"), given) == [0, 0, 1]


def test_ties_are_settled_by_their_expected_value():
    right = np.array([True, False, False, True])
    assert expected_pass(np.array([5.0, 5.0, 5.0, 1.0]), right) == pytest.approx(1 / 3)
    assert expected_pass(np.array([0.0, 0.0, 0.0, 0.0]), right) == 0.5


@pytest.mark.parametrize(("name", "chance"), [("random", 0.5), ("pass_count", 0.0), ("codet", 0.0), ("mbr_exec", 0.5)])
def test_the_chance_that_a_rule_chooses_the_right_one_of_two(name, chance):
    scores = RULES[name](passes("1", "0"), answers("0", "1"))
    assert expected_pass(scores, np.array([False, True])) == chance


@pytest.mark.parametrize("name", sorted(RULES))
def test_without_tests_every_program_is_as_good(name):
    empty = np.zeros((3, 0), dtype=np.bool_)
    result = RULES[name](empty, np.zeros((3, 0), dtype=np.int64))
    assert best_programs(result).tolist() == [0, 1, 2]
