"""Unbiased pass@k, and bootstrap intervals over questions. Pure; no I/O.

Samples of one question depend on one another, so questions are what is drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95
RESAMPLES = 10_000
MOST_UNDEFINED = 0.01
"""Share of resamples on which a statistic may be undefined."""
_BATCH = 1_000
"""Resamples that are in memory at once."""

Array = npt.NDArray[np.float64]
Statistic = Callable[..., Any]
"""``(*columns[..., question]) -> [...]``: reduces the last axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float
    num_questions: int

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    def text(self, *, percent: bool = True, signed: bool = False) -> str:
        """``63.4 [61.0, 65.9]``; in percent unless told otherwise; ``63.4 [?]`` where no interval can be given."""
        if math.isnan(self.value):
            return "–"
        if math.isnan(self.low):
            return f"{self.value * (100 if percent else 1):{'+' if signed else ''}.{1 if percent else 3}f} [?]"
        scale, digits = (100, 1) if percent else (1, 3)
        sign = "+" if signed else ""
        value, low, high = (f"{one * scale:{sign}.{digits}f}" for one in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


def pass_at_k(num_samples: int, num_right: int, k: int) -> float:
    """Chance that at least one of ``k`` samples, drawn without replacement, is right: ``1 - C(n-c, k) / C(n, k)``.

    Unbiased for any n >= k (Chen et al., arXiv 2107.03374, equation 1); pass@1 is the plain average, avg@n.

    Returns:
        A value in [0, 1].

    Raises:
        ValueError: not ``1 <= k <= num_samples`` or not ``0 <= num_right <= num_samples``.
    """
    if not 1 <= k <= num_samples:
        raise ValueError(f"pass@k needs 1 <= k <= the number of samples, got k={k} of {num_samples} samples")
    if not 0 <= num_right <= num_samples:
        raise ValueError(f"num_right must be in [0, {num_samples}], got {num_right}")
    return 1.0 - math.comb(num_samples - num_right, k) / math.comb(num_samples, k)


def mean_over_questions(values: Array) -> Any:
    """The usual statistic: every question weighs the same."""
    return values.mean(axis=-1)


def ratio_of_sums(numerators: Array, denominators: Array) -> Any:
    """``sum / sum`` over questions (micro average); NaN where the denominators sum to zero."""
    total = denominators.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return numerators.sum(axis=-1) / total


def bootstrap(
    *columns: Sequence[float], statistic: Statistic = mean_over_questions, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """``statistic`` with its percentile bootstrap interval (Efron and Tibshirani 1993, chapter 13).

    Args:
        columns: one value per question each, all of the same length; questions are drawn whole.
        statistic: reduces the last axis of its arguments.
        seed: of the resampling; the same input gives the same interval.
        resamples: at least 1.

    Returns:
        The bounds are NaN where the statistic is undefined on more than 1 % of the resamples: those that are left
        would not be a fair sample. With no question at all the value is NaN too.

    Raises:
        ValueError: columns of different lengths.
    """
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    number = arrays[0].shape[0]
    if any(array.shape != (number,) for array in arrays):
        raise ValueError(f"columns must have one value per question each, got {[array.shape for array in arrays]}")
    if not number:
        return Estimate(value=math.nan, low=math.nan, high=math.nan, num_questions=0)
    rng = np.random.default_rng(seed)
    found = []
    for start in range(0, resamples, _BATCH):
        drawn = rng.integers(0, number, size=(min(_BATCH, resamples - start), number))
        found.append(np.asarray(statistic(*(array[drawn] for array in arrays)), dtype=np.float64))
    replicates = np.concatenate(found)
    is_known = ~np.isnan(replicates)
    value = float(statistic(*arrays))
    if is_known.mean() < 1 - MOST_UNDEFINED:
        return Estimate(value=value, low=math.nan, high=math.nan, num_questions=number)
    replicates = replicates[is_known]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(replicates, [tail, 100 - tail])
    return Estimate(value=value, low=float(low), high=float(high), num_questions=number)


def paired_bootstrap(after: Mapping[str, float], before: Mapping[str, float], *, seed: int = 0) -> Estimate:
    """Mean of ``after - before`` over the questions that both have, with its interval.

    Pairing removes the spread between easy and hard questions, which both share.

    Raises:
        ValueError: they share no question.
    """
    shared = [name for name in after if name in before]
    if not shared:
        raise ValueError("the two evaluations share no question; compare evaluations of the same file")
    return bootstrap([after[name] - before[name] for name in shared], seed=seed)
