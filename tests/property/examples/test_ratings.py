"""Laws of ratings: what must hold for any results."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import expit

from examples.crossplay.ratings import RIDGE, changes, fit_strengths, win_rates

sizes = st.tuples(st.integers(1, 4), st.integers(1, 4))


@st.composite
def results(draw):
    """``(wins, played)`` of a matrix, cells without a match included."""
    shape = draw(sizes)
    played = draw(arrays.arrays(float, shape, elements=st.integers(0, 30).map(float)))
    shares = draw(arrays.arrays(float, shape, elements=st.floats(0, 1)))
    return np.floor(played * shares), played


@st.composite
def results_by_question(draw):
    wins, played = draw(results())
    parts = draw(st.integers(1, 4))
    return np.repeat(wins[..., None], parts, axis=2), np.repeat(played[..., None], parts, axis=2)


def lead(theta, num_code):
    return theta[:num_code, None] - theta[None, num_code:]


@given(results())
def test_every_player_is_expected_to_win_as_often_as_it_did_but_for_the_ridge(counts):
    wins, played = counts
    theta = fit_strengths(wins, played)
    missing = wins - played * expit(lead(theta, len(wins)))
    assert missing.sum(axis=1) == pytest.approx(RIDGE * theta[: len(wins)], abs=1e-5)
    assert -missing.sum(axis=0) == pytest.approx(RIDGE * theta[len(wins) :], abs=1e-5)


@given(results())
def test_with_sides_swapped_the_strengths_are_swapped(counts):
    wins, played = counts
    theta = fit_strengths(wins, played)
    swapped = fit_strengths((played - wins).T, played.T)
    assert np.roll(swapped, len(wins)) == pytest.approx(theta, abs=1e-4)


@given(results(), st.randoms(use_true_random=False))
def test_the_order_of_players_does_not_matter(counts, random):
    wins, played = counts
    order = random.sample(range(len(wins)), len(wins))
    theta = fit_strengths(wins, played)
    shuffled = fit_strengths(wins[order], played[order])
    assert shuffled[: len(wins)] == pytest.approx(theta[order], abs=1e-4)
    assert shuffled[len(wins) :] == pytest.approx(theta[len(wins) :], abs=1e-4)


@given(results(), st.data())
def test_another_win_never_lowers_the_lead(counts, data):
    wins, played = counts
    i = data.draw(st.integers(0, wins.shape[0] - 1))
    j = data.draw(st.integers(0, wins.shape[1] - 1))
    more_wins, more_played = wins.copy(), played.copy()
    more_wins[i, j] += 1
    more_played[i, j] += 1
    before = lead(fit_strengths(wins, played), len(wins))[i, j]
    assert lead(fit_strengths(more_wins, more_played), len(wins))[i, j] > before - 1e-4


@given(results(), st.floats(-3, 3))
def test_the_start_of_the_search_does_not_matter(counts, start):
    wins, played = counts
    elsewhere = fit_strengths(wins, played, start_N=np.full(sum(wins.shape), start))
    assert elsewhere == pytest.approx(fit_strengths(wins, played), abs=1e-4)


@given(results_by_question())
def test_intervals_hold_their_value_and_shares_are_shares(counts):
    for cell in (cell for row in win_rates(*counts) for cell in row):
        assert np.isnan(cell.value) or 0 <= cell.low <= cell.value + 1e-12 <= cell.high + 2e-12 <= 1 + 4e-12


@given(results_by_question())
def test_the_other_sides_changes_are_the_same_with_the_sign_turned(counts):
    wins, played = counts
    lost = played - wins
    own = {(one.earlier, one.later, one.opponent): one.difference for one in changes(wins, played)}
    other = {(one.earlier, one.later, one.opponent): one.difference for one in changes(lost, played)}
    assert own.keys() == other.keys()
    for place, difference in own.items():
        assert difference.value == pytest.approx(-other[place].value, abs=1e-12)
        assert difference.low == pytest.approx(-other[place].high, abs=1e-12)
