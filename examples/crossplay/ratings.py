"""Ratings of checkpoints that played each other, and what changed from one checkpoint to a later one. Pure; no I/O.

Axes: I Code LLM steps, J Test LLM steps, Q questions, P the steps of one policy, O those of its opponent, N players, B
bootstrap resamples. Samples of one question depend on one another, so questions are what is drawn again; all figures of
a table see the same draws, so their differences are paired.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from code_a1_recipe.stats.bradley_terry import ELO_POINTS, RIDGE, fit_strengths
from scipy.special import expit

from code_a1_recipe.stats.estimates import CONFIDENCE, Array, Estimate

ANCHOR = 1000.0
"""Rating of the first Code LLM step."""
RATING_RESAMPLES = 200
RATE_RESAMPLES = 2_000
_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerRating:
    """One checkpoint in one role, in Elo points."""

    rating: Estimate
    """The first Code LLM step has 1000 and no interval: only differences are observed."""
    gained: Estimate
    """Rating minus that of the same policy's first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingTable:
    """Ratings of both policies, each in the order of its steps."""

    code: tuple[PlayerRating, ...]
    test: tuple[PlayerRating, ...]
    expected: Array
    """[I, J] win rates of the Code LLM as the ratings have them, in [0, 1]; NaN for a player without a match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How much more often a later step wins than an earlier one, against one and the same opponent."""

    opponent: int
    """Places in the order of steps, from 0; so are the next two."""
    earlier: int
    later: int
    difference: Estimate
    """Win rate of the later step minus that of the earlier one, paired over questions."""

    @property
    def is_drop(self) -> bool:
        """Significantly worse: the 95 % interval lies below zero."""
        return self.difference.high < 0

    @property
    def is_rise(self) -> bool:
        return self.difference.low > 0


def win_rates(wins_POQ: Array, played_POQ: Array) -> list[list[Estimate]]:
    """``[p][o]``: share of matches that step p won against step o, with its interval; NaN without a match.

    Args:
        wins_POQ: matches that step p of a policy won against step o of its opponent, on question q.
        played_POQ: matches they played on it.
    """
    value_PO, drawn_BPO = _rates(wins_POQ, played_POQ)
    number = wins_POQ.shape[2]
    return [
        [_estimate(value_PO[p, o], drawn_BPO[:, p, o], number) for o in range(value_PO.shape[1])]
        for p in range(value_PO.shape[0])
    ]


def rate(wins_IJQ: Array, played_IJQ: Array, *, resamples: int = RATING_RESAMPLES, ridge: float = RIDGE) -> RatingTable:
    """Ratings on Elo's scale with 95 % bootstrap intervals: questions are drawn again, and all players rated anew.

    Args:
        wins_IJQ: matches on question q that Code LLM i won against Test LLM j.
        played_IJQ: matches they played on it.
        resamples: at least 1.
        ridge: see :func:`fit_strengths`.

    Returns:
        Ratings; NaN for a player without a match. Where the first Code LLM step has none, the next one is the anchor.
    """
    num_code, num_test, num_questions = wins_IJQ.shape
    theta_N = _fitted(wins_IJQ.sum(axis=2), played_IJQ.sum(axis=2), ridge=ridge)
    drawn_BN = np.full((resamples, num_code + num_test), math.nan)
    for b, times_Q in enumerate(_draws(num_questions, resamples)):
        drawn_BN[b] = _fitted(wins_IJQ @ times_Q, played_IJQ @ times_Q, ridge=ridge, start_N=theta_N)
    anchor = next((i for i in range(num_code) if not math.isnan(theta_N[i])), 0)
    players = []
    for number in range(num_code + num_test):
        first = 0 if number < num_code else num_code
        rating = _elo(theta_N, drawn_BN, number, anchor, num_questions, plus=ANCHOR)
        gained = _elo(theta_N, drawn_BN, number, first, num_questions)
        players.append(PlayerRating(rating=rating, gained=gained))
    return RatingTable(
        code=tuple(players[:num_code]),
        test=tuple(players[num_code:]),
        expected=expit(theta_N[:num_code, None] - theta_N[None, num_code:]),
    )


def _fitted(wins_IJ: Array, played_IJ: Array, *, ridge: float, start_N: Array | None = None) -> Array:
    """Strengths, NaN for players without a match: the ridge alone would call them average."""
    start = None if start_N is None else np.nan_to_num(start_N)
    theta_N = fit_strengths(wins_IJ, played_IJ, ridge=ridge, start_N=start)
    matches_N = np.concatenate([played_IJ.sum(axis=1), played_IJ.sum(axis=0)])
    return np.where(matches_N > 0, theta_N, math.nan)


def _elo(theta_N: Array, drawn_BN: Array, number: int, base: int, num_questions: int, *, plus: float = 0.0) -> Estimate:
    """Elo points of a player above another one."""
    value = plus + ELO_POINTS * (theta_N[number] - theta_N[base])
    return _estimate(value, plus + ELO_POINTS * (drawn_BN[:, number] - drawn_BN[:, base]), num_questions)


def changes(wins_POQ: Array, played_POQ: Array) -> list[Change]:
    """Every pair of steps of one policy against every opponent; pairs without a match are left out.

    Arguments as those of :func:`win_rates`.
    """
    value_PO, drawn_BPO = _rates(wins_POQ, played_POQ)
    num_steps, num_opponents, num_questions = wins_POQ.shape
    found = []
    for later in range(num_steps):
        for earlier in range(later):
            value_O = value_PO[later] - value_PO[earlier]
            drawn_BO = drawn_BPO[:, later] - drawn_BPO[:, earlier]
            for opponent in range(num_opponents):
                difference = _estimate(value_O[opponent], drawn_BO[:, opponent], num_questions)
                if not math.isnan(difference.value):
                    found.append(Change(opponent=opponent, earlier=earlier, later=later, difference=difference))
    return found


def turns(found: Sequence[Change]) -> list[tuple[Change, Change]]:
    """Drops that a later rise against the same opponent undoes in part or whole: signs of cycling.

    Both changes are significant, and the rise begins where the drop ends.
    """
    drops = [change for change in found if change.is_drop]
    rises = [change for change in found if change.is_rise]
    return [
        (drop, rise)
        for drop in drops
        for rise in rises
        if rise.opponent == drop.opponent and rise.earlier == drop.later
    ]


def _draws(num_questions: int, resamples: int) -> Array:
    """[B, Q]: how often each question is in each resample; no resample where there is no question."""
    if not num_questions:
        return np.zeros((0, 0))
    chances_Q = np.full(num_questions, 1 / num_questions)
    return np.random.default_rng(_SEED).multinomial(num_questions, chances_Q, size=resamples).astype(np.float64)


def _rates(wins_POQ: Array, played_POQ: Array) -> tuple[Array, Array]:
    """[P, O] win rates and [B, P, O] those of resamples; NaN without a match."""
    draws_BQ = _draws(wins_POQ.shape[2], RATE_RESAMPLES)
    wins_BPO, played_BPO = (np.moveaxis(array @ draws_BQ.T, -1, 0) for array in (wins_POQ, played_POQ))
    with np.errstate(invalid="ignore"):
        return wins_POQ.sum(axis=2) / played_POQ.sum(axis=2), wins_BPO / played_BPO


def _estimate(value: float, replicates_B: Array, num_questions: int) -> Estimate:
    """With the percentile interval (Efron and Tibshirani 1993, chapter 13) of the resamples that have a figure."""
    known = replicates_B[~np.isnan(replicates_B)]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(known, [tail, 100 - tail]) if known.size else (value, value)
    return Estimate(value=float(value), low=float(low), high=float(high), num_values=num_questions)
