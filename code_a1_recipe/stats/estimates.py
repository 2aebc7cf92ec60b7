"""Estimates with 95 % intervals, and the unbiased pass@k. Nothing here reads or writes files.

Intervals over questions come from the bootstrap, intervals over seeds from Student's t. The bootstrap resamples whole
questions, because the samples of one question depend on each other.
"""

import math
import statistics
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 10_000
MOST_UNDEFINED = 0.01
"""Largest share of resamples on which a statistic may be undefined."""
_BATCH = 1_000
"""Number of resamples that are in memory at once."""

Key = TypeVar("Key", bound=Hashable)
Array = NDArray[np.float64]
Statistic = Callable[..., Any]
"""A function ``(*columns[..., question]) -> [...]`` that reduces the last axis."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure with its 95 % interval.

    The bounds are NaN where no interval can be given, and infinite for the mean of a single value.
    """

    value: float
    low: float
    high: float
    num_values: int
    """Number of questions or seeds behind the figure."""

    @property
    def half_width(self) -> float:
        """Half the width of a symmetric interval, such as Student's t."""
        return (self.high - self.low) / 2

    @property
    def excludes_zero(self) -> bool:
        """True if 0 lies outside of the interval.

        Fewer than three values never exclude zero, because two values may agree by chance.
        """
        return self.num_values >= 3 and (self.low > 0 or self.high < 0)

    def text(self, *, signed: bool = False) -> str:
        """Return percents such as ``63.4 [61.0, 65.9]``, or ``63.4 [?]`` where no interval can be given."""
        if math.isnan(self.value):
            return "–"
        sign = "+" if signed else ""
        value = f"{self.value * 100:{sign}.1f}"
        if math.isnan(self.low):
            return f"{value} [?]"
        return f"{value} [{self.low * 100:{sign}.1f}, {self.high * 100:{sign}.1f}]"

    def plus_minus(self, *, signed: bool = False) -> str:
        """Return a text such as ``0.512 ± 0.034``, for symmetric intervals; differences are shown ``signed``."""
        sign = "+" if signed else ""
        half = f"{self.half_width:.3f}" if math.isfinite(self.half_width) else "?"
        return f"{self.value:{sign}.3f} ± {half}"


def pass_at_k(num_samples: int, num_right: int, k: int) -> float:
    """Estimate pass@k by ``1 - C(n-c, k) / C(n, k)``, with n samples of which c are right.

    This is the chance that at least one of ``k`` samples, drawn without replacement, is right. The estimate is unbiased
    for any n >= k (Chen et al., arXiv 2107.03374, equation 1). pass@1 is the plain average, avg@n.

    Returns:
        A value in [0, 1].

    Raises:
        ValueError: ``k`` is outside of [1, num_samples], or ``num_right`` outside of [0, num_samples].
    """
    if not 1 <= k <= num_samples:
        raise ValueError(f"pass@k needs 1 <= k <= the number of samples, got k={k} of {num_samples} samples")
    if not 0 <= num_right <= num_samples:
        raise ValueError(f"num_right must be in [0, {num_samples}], got {num_right}")
    all_wrong = math.comb(num_samples - num_right, k)
    return 1.0 - all_wrong / math.comb(num_samples, k)


def mean_over_questions(values: Array) -> Any:
    """The plain mean: every question weighs the same."""
    return values.mean(axis=-1)


def ratio_of_sums(numerators: Array, denominators: Array) -> Any:
    """Divide both sums over questions (micro average); NaN where the denominators sum to zero."""
    total = denominators.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return numerators.sum(axis=-1) / total


def bootstrap(*columns: Sequence[float], statistic: Statistic = mean_over_questions, seed: int = 0) -> Estimate:
    """Estimate ``statistic`` with its percentile bootstrap interval (Efron and Tibshirani 1993, chapter 13).

    Args:
        columns: each holds one value per question; questions are drawn whole.
        statistic: reduces the last axis of its arguments.
        seed: seed of the resampling; the same input gives the same interval.

    Returns:
        The bounds are NaN where the statistic is undefined on more than 1 % of the resamples, because the other
        resamples would not be a fair sample. Without any question the value is NaN too.

    Raises:
        ValueError: the columns have different lengths.
    """
    values = np.array(list(zip(*columns, strict=True)), dtype=np.float64)
    number = len(values)
    arrays = list(values.T)
    value = float(statistic(*arrays)) if number else math.nan
    if number < 2:
        return Estimate(value=value, low=value, high=value, num_values=number)
    from scipy import stats  # not at the top: it loads slowly, and most users of this module do without it

    with np.errstate(all="ignore"):  # scipy also makes an interval of its own, which warns about undefined figures
        replicates = stats.bootstrap(
            arrays,
            lambda *drawn, axis: statistic(*drawn),
            n_resamples=RESAMPLES,
            batch=_BATCH,
            paired=True,
            vectorized=True,
            method="percentile",
            rng=np.random.default_rng(seed),
        ).bootstrap_distribution
    defined = replicates[~np.isnan(replicates)]
    low = high = math.nan
    if len(defined) >= (1 - MOST_UNDEFINED) * RESAMPLES:
        tail = 100 * (1 - CONFIDENCE) / 2
        low, high = map(float, np.percentile(defined, [tail, 100 - tail]))
    return Estimate(value=value, low=low, high=high, num_values=number)


def mean_estimate(values: Sequence[float]) -> Estimate:
    """Estimate the mean of independent values with Student's t interval.

    Raises:
        ValueError: there are no values.
    """
    from scipy import stats  # not at the top, as in ``bootstrap``

    if not values:
        raise ValueError("an interval needs at least one value")
    number = len(values)
    mean = statistics.fmean(values)
    half = math.inf
    if number > 1:
        quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, number - 1))
        half = quantile * statistics.stdev(values) / math.sqrt(number)
    return Estimate(value=mean, low=mean - half, high=mean + half, num_values=number)


def paired_difference(after: Mapping[Key, float], before: Mapping[Key, float]) -> Estimate:
    """Estimate the mean of ``after - before`` over the questions or seeds that both have; see :func:`mean_estimate`.

    Raises:
        ValueError: they share no key.
    """
    differences = [after[key] - before[key] for key in after if key in before]
    return mean_estimate(differences)
