"""Estimates with 95 % intervals, and the unbiased pass@k. Nothing in this file reads or writes files.

An interval over questions is a bootstrap interval, and an interval over seeds is Student's t interval. The bootstrap
resamples whole questions, because the samples of one question depend on each other.
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
"""Largest share of resamples on which a statistic may be undefined, such as a ratio of zeros."""
_BATCH = 1_000
"""Number of resamples that are in memory at once."""

Key = TypeVar("Key", bound=Hashable)
Array = NDArray[np.float64]
Statistic = Callable[..., Any]
"""A function of one or more arrays ``[..., question]`` that reduces their last axis."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure with its 95 % interval.

    The bounds are NaN if no interval can be computed, and infinite for the mean of a single value.
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
        """Whether 0 lies outside of the interval.

        An estimate from fewer than three values never excludes zero, because two values may agree by chance.
        """
        return self.num_values >= 3 and (self.low > 0 or self.high < 0)

    def text(self, *, signed: bool = False) -> str:
        """Return percentages such as ``63.4 [61.0, 65.9]``, or ``63.4 [?]`` without an interval."""
        if math.isnan(self.value):
            return "–"
        form = "+.1f" if signed else ".1f"
        value = f"{100 * self.value:{form}}"
        if math.isnan(self.low):
            return f"{value} [?]"
        return f"{value} [{100 * self.low:{form}}, {100 * self.high:{form}}]"

    def plus_minus(self, *, signed: bool = False) -> str:
        """Return a text such as ``0.512 ± 0.034``, for a symmetric interval.

        With ``signed``, a plus sign is written too.
        """
        form = "+.3f" if signed else ".3f"
        half = f"{self.half_width:.3f}" if math.isfinite(self.half_width) else "?"
        return f"{self.value:{form}} ± {half}"


def pass_at_k(num_samples: int, num_right: int, k: int) -> float:
    """Estimate pass@k by ``1 - C(n-c, k) / C(n, k)``, for n samples of which c are right.

    pass@k is the chance that at least one of ``k`` samples is right, if they are drawn without replacement. The
    estimate is unbiased for any n >= k (Chen et al., arXiv 2107.03374, equation 1). pass@1 equals the average, avg@n.

    Returns:
        A value in [0, 1].

    Raises:
        ValueError: ``k`` is outside of [1, num_samples], or ``num_right`` outside of [0, num_samples].
    """
    if not 1 <= k <= num_samples or not 0 <= num_right <= num_samples:
        raise ValueError(f"pass@k needs 1 <= k <= n and 0 <= c <= n, got k={k}, c={num_right}, n={num_samples}")
    num_wrong_draws = math.comb(num_samples - num_right, k)
    return 1.0 - num_wrong_draws / math.comb(num_samples, k)


def mean_over_questions(values: Array) -> Any:
    """Average over questions. Every question has the same weight."""
    return values.mean(axis=-1)


def ratio_of_sums(numerators: Array, denominators: Array) -> Any:
    """Divide the sum of the numerators by the sum of the denominators (micro average).

    If both sums are zero, the result is NaN.
    """
    total = denominators.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return numerators.sum(axis=-1) / total


def bootstrap(*columns: Sequence[float], statistic: Statistic = mean_over_questions) -> Estimate:
    """Estimate ``statistic`` with its percentile bootstrap interval (Efron and Tibshirani 1993, chapter 13).

    Args:
        columns: each holds one value per question. Whole questions are drawn, so the values of a question stay
            together.
        statistic: reduces the last axis of its arguments.

    Returns:
        The estimate, which is the same for the same input. Its bounds are NaN if the statistic is undefined on more
        than 1 % of the resamples, because the remaining resamples would be biased. Without any question the value is
        NaN too.

    Raises:
        ValueError: the columns have different lengths.
    """
    values = np.array(list(zip(*columns, strict=True)), dtype=np.float64)
    number = len(values)
    arrays = list(values.T)
    value = float(statistic(*arrays)) if number else math.nan
    if number < 2:
        return Estimate(value=value, low=value, high=value, num_values=number)
    from scipy import stats  # not imported at the top, because scipy is slow to load

    with np.errstate(all="ignore"):  # scipy's own interval, which is not used, warns about undefined values
        replicates = stats.bootstrap(
            arrays,
            lambda *drawn, axis: statistic(*drawn),
            n_resamples=RESAMPLES,
            batch=_BATCH,
            paired=True,
            vectorized=True,
            method="percentile",
            rng=np.random.default_rng(0),
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
    from scipy import stats  # scipy is slow to load, so it is not imported at the top

    number = len(values)
    mean = statistics.fmean(values)
    half = math.inf
    if number > 1:
        quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, number - 1))
        half = quantile * statistics.stdev(values) / math.sqrt(number)
    return Estimate(value=mean, low=mean - half, high=mean + half, num_values=number)


def paired_difference(after: Mapping[Key, float], before: Mapping[Key, float]) -> Estimate:
    """Estimate the mean of ``after - before`` over the shared questions or seeds, as :func:`mean_estimate` does.

    Raises:
        ValueError: no key is in both mappings.
    """
    differences = [after[key] - before[key] for key in after if key in before]
    return mean_estimate(differences)
