"""A reward as the sum of its named parts."""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """One reward as named parts, with further numbers for logs."""

    parts: Mapping[str, float]
    """Weighted named parts; they sum to ``total``."""
    terms: Mapping[str, float] = field(default_factory=dict)
    """Raw, unweighted quantities for logs: rates in [0, 1] and counts."""

    def __post_init__(self) -> None:
        for kind in ("parts", "terms"):
            numbers = dict(getattr(self, kind))
            for name, value in numbers.items():
                if not isinstance(name, str) or not isinstance(value, int | float) or not math.isfinite(value):
                    raise ValueError(f"reward {kind} must be finite numbers by names, got {name!r}: {value!r}")
            # A copy, since the caller may go on to change its mapping.
            object.__setattr__(self, kind, numbers)

    @property
    def total(self) -> float:
        """The reward: the exact sum of ``parts``, rounded once, to float32."""
        # verl carries rewards in float32, and advantages are differences of rewards. Rewards that are equal in verl
        # must be equal here too.
        exact_sum = math.fsum(self.parts.values())
        return float(struct.unpack("<f", struct.pack("<f", exact_sum))[0])

    def __float__(self) -> float:
        return self.total
