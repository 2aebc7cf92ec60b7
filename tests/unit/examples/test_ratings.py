"""Ratings and changes with numbers worked out by hand."""

import math

import numpy as np
import pytest

from examples.crossplay.ratings import ELO_POINTS, changes, fit_strengths, rate, turns, win_rates

THREE_TO_ONE = 190.848501887865  # 400 * log10(3)


def on_one_question(cells):
    """Counts of a matrix as if all matches were on one question."""
    return np.array(cells, dtype=float)[..., None]


def ratings_of(wins, played, **options):
    table = rate(on_one_question(wins), on_one_question(played), resamples=5, **options)
    return [[player.rating.value for player in players] for players in (table.code, table.test)]


def gained(table):
    return [[player.gained.value for player in players] for players in (table.code, table.test)]


# ------------------------------ strengths ------------------------------


def test_three_wins_to_one_are_191_points():
    ((code,), (test,)) = ratings_of([[30]], [[40]], ridge=1e-9)
    assert code == 1000.0
    assert code - test == pytest.approx(THREE_TO_ONE, abs=1e-3)


def test_rates_that_fit_the_model_give_its_ratings_back():
    # Odds of the Code LLM: 1 and 1/3 at its first step, 3 and 1 at its second.
    code, test = ratings_of([[20, 10], [30, 20]], [[40, 40], [40, 40]], ridge=1e-9)
    assert code == pytest.approx([1000, 1000 + THREE_TO_ONE], abs=1e-3)
    assert test == pytest.approx([1000, 1000 + THREE_TO_ONE], abs=1e-3)


def test_expected_rates_are_those_of_a_model_that_fits():
    table = rate(on_one_question([[20, 10], [30, 20]]), on_one_question([[40, 40], [40, 40]]), resamples=1, ridge=1e-9)
    assert table.expected == pytest.approx(np.array([[0.5, 0.25], [0.75, 0.5]]), abs=1e-6)


def test_who_plays_more_weighs_more():
    # Against the same opponent 3 of 4 and 1 of 4: each player's own rate, however many the matches.
    code, _ = ratings_of([[3], [100]], [[4], [400]], ridge=1e-9)
    assert code[0] - code[1] == pytest.approx(2 * THREE_TO_ONE, abs=1e-3)


def test_a_player_that_always_wins_stays_finite():
    ((code,), (test,)) = ratings_of([[160]], [[160]])
    assert code - test == pytest.approx(1435.2, abs=0.1)


def test_the_ridge_takes_less_than_a_point_from_a_lead_of_147():
    ((code,), (test,)) = ratings_of([[7]], [[10]])
    assert code - test == pytest.approx(146.84, abs=0.01)


def test_a_player_without_a_match_has_no_rating():
    code, test = ratings_of([[0, 0], [3, 1]], [[0, 0], [4, 4]], ridge=1e-9)
    assert math.isnan(code[0])
    assert code[1] == 1000.0
    assert test[1] - test[0] == pytest.approx(2 * THREE_TO_ONE, abs=1e-3)


def test_strengths_sum_to_zero():
    assert fit_strengths(np.array([[3.0, 9.0]]), np.array([[10.0, 10.0]])).sum() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("wins", "played"), [([[5.0]], [[4.0]]), ([[-1.0]], [[4.0]]), ([[1.0]], [[4.0, 4.0]])])
def test_counts_that_cannot_be_are_refused(wins, played):
    with pytest.raises(ValueError, match=r"wins must lie in \[0, played\]"):
        fit_strengths(np.array(wins), np.array(played))


def test_no_ridge_is_refused():
    with pytest.raises(ValueError, match="ridge must be above 0"):
        fit_strengths(np.array([[1.0]]), np.array([[2.0]]), ridge=0.0)


# ------------------------------ intervals ------------------------------


def test_gains_count_from_the_first_step_of_the_same_policy():
    # Odds of the Code LLM: 3 and 1 at its first step, 9 and 3 at its second.
    table = rate(on_one_question([[30, 20], [36, 30]]), on_one_question([[40, 40], [40, 40]]), resamples=1, ridge=1e-9)
    assert table.test[0].rating.value == pytest.approx(1000 - THREE_TO_ONE, abs=1e-3)
    assert gained(table)[0] == pytest.approx([0, THREE_TO_ONE], abs=1e-3)
    assert gained(table)[1] == pytest.approx([0, THREE_TO_ONE], abs=1e-3)


def test_the_anchor_has_no_interval_and_the_others_have_one():
    wins = np.array([[[4, 0, 2, 2, 1, 3.0]], [[4, 3, 2, 4, 1, 3.0]]])
    first, second = rate(wins, np.full(wins.shape, 4.0), resamples=50).code
    assert (first.rating.low, first.rating.high) == (1000, 1000)
    assert second.rating.low < second.rating.value < second.rating.high
    assert second.gained.value == pytest.approx(second.rating.value - 1000)


def test_equal_questions_leave_nothing_to_doubt():
    wins = np.full((2, 2, 6), 3.0)
    table = rate(wins, np.full((2, 2, 6), 4.0), resamples=20)
    assert all(one.rating.high - one.rating.low < 1e-6 for one in (*table.code, *table.test))


def test_win_rates_are_sums_over_sums():
    # 1 of 4 and 1 of 1: five matches, two won; a mean over questions would say 0.625.
    ((cell,),) = win_rates(np.array([[[1.0, 1.0]]]), np.array([[[4.0, 1.0]]]))
    assert (cell.value, cell.low, cell.high, cell.num_values) == (0.4, 0.25, 1.0, 2)


def test_without_questions_nothing_is_known():
    nothing = np.zeros((1, 1, 0))
    assert math.isnan(win_rates(nothing, nothing)[0][0].value)
    assert math.isnan(rate(nothing, nothing).code[0].rating.value)
    assert changes(nothing, nothing) == []


# ------------------------------ changes ------------------------------

EASY_AND_HARD = np.array([4, 4, 4, 4, 1, 1, 1, 1], dtype=float)


def steps_against_one(*rows):
    """``[step, opponent, question]`` of 4 matches a question."""
    wins = np.array([[row] for row in rows], dtype=float)
    return wins, np.full(wins.shape, 4.0)


def test_a_change_is_paired_over_questions():
    # One match fewer on every question: 62.5 % and 37.5 %, no doubt about the difference though questions differ much.
    (change,) = changes(*steps_against_one(EASY_AND_HARD, EASY_AND_HARD - 1))
    assert (change.earlier, change.later, change.opponent) == (0, 1, 0)
    difference = change.difference
    assert (difference.value, difference.low, difference.high) == pytest.approx((-0.25, -0.25, -0.25))
    assert (change.is_drop, change.is_rise) == (True, False)


def test_every_pair_is_compared_against_every_opponent():
    wins = np.full((3, 2, 4), 2.0)
    found = {(one.earlier, one.later, one.opponent) for one in changes(wins, np.full(wins.shape, 4.0))}
    assert found == {(a, b, o) for a, b in ((0, 1), (0, 2), (1, 2)) for o in (0, 1)}


def test_a_difference_that_one_question_makes_is_not_significant():
    other = EASY_AND_HARD.copy()
    other[0] = 0
    (change,) = changes(*steps_against_one(EASY_AND_HARD, other))
    assert change.difference.value == pytest.approx(-0.125)
    assert not change.is_drop


def test_pairs_without_a_match_are_left_out():
    wins, played = steps_against_one(EASY_AND_HARD, EASY_AND_HARD, EASY_AND_HARD)
    wins[1], played[1] = 0, 0
    assert [(one.earlier, one.later) for one in changes(wins, played)] == [(0, 2)]


def test_a_turn_is_a_drop_and_then_a_rise_against_the_same_opponent():
    found = changes(*steps_against_one(EASY_AND_HARD, EASY_AND_HARD - 1, EASY_AND_HARD))
    assert [(a.earlier, a.later, b.later) for a, b in turns(found)] == [(0, 1, 2)]


def test_a_rise_counts_from_where_the_drop_ended():
    high, low = EASY_AND_HARD, EASY_AND_HARD - 1
    found = changes(*steps_against_one(high, low, low, high))
    assert [(a.earlier, a.later, b.earlier, b.later) for a, b in turns(found)] == [(0, 1, 1, 3), (0, 2, 2, 3)]


def test_a_rise_before_a_drop_is_no_turn():
    found = changes(*steps_against_one(EASY_AND_HARD - 1, EASY_AND_HARD, EASY_AND_HARD - 1))
    assert turns(found) == []


def test_a_rise_against_another_opponent_is_no_turn():
    high, low = EASY_AND_HARD, EASY_AND_HARD - 1
    wins = np.array([[high, low], [low, low], [low, high]])
    assert turns(changes(wins, np.full(wins.shape, 4.0))) == []


def test_an_elo_point_is_defined_by_ten_to_one():
    assert ELO_POINTS * math.log(10) == pytest.approx(400)
