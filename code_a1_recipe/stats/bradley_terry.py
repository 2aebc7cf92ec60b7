"""Strengths of two sides whose members played each other: the Bradley-Terry model, and the game's equilibrium.

Axes: I members of one side, J of the other, N = I + J players.
"""

import math
from collections.abc import Mapping

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.special import expit

from .estimates import Array

ELO_POINTS = 400.0 / math.log(10.0)
"""Points a unit of log odds: 400 points more are ten times the odds, as on Elo's scale."""
RIDGE = 0.01
"""Half of it times the sum of squared strengths (log odds) is added to the loss, so that a player who always wins stays
finite: 1,435 points ahead after 160 of 160. A lead of 147 points (7 of 10) shrinks by less than one."""

Games = Mapping[tuple[int, int], tuple[int, int]]
"""``{(member i, member j) -> (matches that i won, matches)}``; what has not met is not there."""


def fit_strengths(wins_IJ: Array, played_IJ: Array, *, ridge: float = RIDGE, start_N: Array | None = None) -> Array:
    """Maximum likelihood strengths of the Bradley-Terry model (Bradley and Terry, Biometrika 39, 1952).

    Member i wins against member j with probability ``1 / (1 + exp(theta_j - theta_i))``. Members of one side never
    meet, so a shift of all strengths changes nothing: the ridge makes them sum to zero, and only differences mean
    something.

    Args:
        wins_IJ: matches that member i won against member j.
        played_IJ: matches they played; 0 where they played none.
        ridge: above 0; weight of ``sum(theta ** 2) / 2``, which keeps players that always win finite.
        start_N: where to begin the search; the result does not depend on it.

    Returns:
        [N] log odds, the I members first, then the J others.

    Raises:
        ValueError: not ``0 <= wins <= played``, or the ridge is not above 0.
    """
    if wins_IJ.shape != played_IJ.shape or np.any(wins_IJ < 0) or np.any(wins_IJ > played_IJ):
        raise ValueError(f"wins must lie in [0, played], cell by cell, got {wins_IJ.tolist()} of {played_IJ.tolist()}")
    if ridge <= 0:
        raise ValueError(f"ridge must be above 0 (without it a player that always wins has no rating), got {ridge}")
    num_code, num_test = wins_IJ.shape
    played, wins = played_IJ.ravel(), wins_IJ.ravel()
    pairs = np.hstack([np.repeat(np.eye(num_code), num_test, axis=0), np.tile(-np.eye(num_test), (num_code, 1))])

    def loss(theta_N: Array) -> tuple[float, Array]:
        lead = pairs @ theta_N
        surprise = played @ np.logaddexp(0.0, -lead) + (played - wins) @ lead
        slope_N = (played * expit(lead) - wins) @ pairs
        return float(surprise + ridge / 2 * theta_N @ theta_N), slope_N + ridge * theta_N

    def curvature(theta_N: Array) -> Array:
        lead = pairs @ theta_N
        weights = played * expit(lead) * expit(-lead)
        return np.asarray((pairs.T * weights) @ pairs + ridge * np.eye(num_code + num_test))

    start = np.zeros(num_code + num_test) if start_N is None else start_N
    found = minimize(loss, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-7})
    theta: Array = np.asarray(found.x, dtype=np.float64)
    return theta


def equilibrium(rate_IJ: Array) -> tuple[Array, Array]:
    """Mixed strategies of the zero-sum game in which member i wins with probability ``rate_IJ[i, j]`` against j.

    Each maximises the worst case by a linear program (von Neumann 1928): PSRO's meta-solver (arXiv 1711.00832).

    Args:
        rate_IJ: in [0, 1].

    Returns:
        [I] and [J] probabilities, each sums to 1.
    """
    return _maximin(rate_IJ), _maximin(1.0 - rate_IJ.T)


def _maximin(rate_IJ: Array) -> Array:
    """[I] the mixture with the greatest worst case over columns."""
    rows, columns = rate_IJ.shape
    found = linprog(  # of (mixture, value): value at most what each column concedes
        np.append(np.zeros(rows), -1.0),
        A_ub=np.hstack([-rate_IJ.T, np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=np.append(np.ones(rows), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * rows + [(None, None)],
    )
    mixture = np.clip(found.x[:rows], 0.0, None)
    return np.asarray(mixture / mixture.sum(), dtype=np.float64)


def elo_ratings(games: Games) -> tuple[dict[int, float], dict[int, float]]:
    """Ratings of the members of either side in Elo points, which sum to zero over both; empty without games."""
    first, second, wins_IJ, played_IJ = _tables(games)
    points = (ELO_POINTS * fit_strengths(wins_IJ, played_IJ)).tolist() if games else []
    border = len(first)
    return dict(zip(first, points[:border], strict=True)), dict(zip(second, points[border:], strict=True))


def equilibria(games: Games) -> tuple[dict[int, float], dict[int, float]]:
    """:func:`equilibrium` of the win rates; pairs that have not met have that of their strengths. Empty without."""
    if not games:
        return {}, {}
    first, second, wins_IJ, played_IJ = _tables(games)
    strength_N = fit_strengths(wins_IJ, played_IJ)
    expected_IJ = expit(strength_N[: len(first), None] - strength_N[None, len(first) :])
    rate_IJ = np.where(played_IJ > 0, wins_IJ / np.maximum(played_IJ, 1), expected_IJ)
    one, other = equilibrium(rate_IJ)
    return dict(zip(first, one.tolist(), strict=True)), dict(zip(second, other.tolist(), strict=True))


def _tables(games: Games) -> tuple[list[int], list[int], Array, Array]:
    """Members of either side, ascending, and [I, J] matches won by the first and played."""
    first, second = (sorted({pair[side] for pair in games}) for side in (0, 1))
    wins_IJ, played_IJ = (np.zeros((len(first), len(second))) for _ in range(2))
    for (i, j), (won, played) in games.items():
        cell = first.index(i), second.index(j)
        wins_IJ[cell], played_IJ[cell] = won, played
    return first, second, wins_IJ, played_IJ
