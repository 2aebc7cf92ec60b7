"""Means with 95 % confidence intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from scipy import stats

CONFIDENCE = 0.95
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean and its 95 % confidence interval; the interval of one value is unbounded."""

    mean: float
    half_width: float
    num_values: int

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width

    @property
    def excludes_zero(self) -> bool:
        """Of at least three values: two that happen to agree say nothing."""
        return self.num_values >= 3 and (self.low > 0 or self.high < 0)

    def text(self, *, signed: bool = False, digits: int = 3) -> str:
        """``0.512 ± 0.034``; with a sign for differences."""
        sign = "+" if signed else ""
        half = f"{self.half_width:.{digits}f}" if math.isfinite(self.half_width) else "?"
        return f"{self.mean:{sign}.{digits}f} ± {half}"


def interval_of(values: Sequence[float]) -> Interval:
    """Student's t interval of the mean of independent values.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("an interval needs at least one value")
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Interval(mean=mean, half_width=math.inf, num_values=1)
    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    half = quantile * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(mean=mean, half_width=half, num_values=len(values))


def paired_difference(after: Mapping[Key, float], before: Mapping[Key, float]) -> Interval:
    """``after - before`` over the keys (questions, or seeds) that both have.

    Raises:
        ValueError: they share no key.
    """
    return interval_of([after[key] - before[key] for key in after if key in before])
