"""A reward as the sum of its named parts."""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """One reward as a sum of named parts, with further numbers for logs."""

    parts: Mapping[str, float]
    """Weighted parts by name; their sum is ``total``."""
    terms: Mapping[str, float] = field(default_factory=dict)
    """Unweighted quantities for logs, by name: rates in [0, 1] and counts."""

    def __post_init__(self) -> None:
        for kind in ("parts", "terms"):
            # A copy protects the reward from later changes of the caller's mapping.
            numbers = dict(getattr(self, kind))
            for name, value in numbers.items():
                is_finite = isinstance(value, int | float) and math.isfinite(value)
                if not is_finite or not isinstance(name, str):
                    raise ValueError(f"reward {kind} must be finite numbers by names, got {name!r}: {value!r}")
            object.__setattr__(self, kind, numbers)

    @property
    def total(self) -> float:
        """The reward: the exact sum of ``parts``, rounded once, to float32."""
        # verl stores rewards in float32, and advantages are differences of rewards. Two rewards that are equal in verl
        # must be equal here too.
        exact_sum = math.fsum(self.parts.values())
        return float(struct.unpack("<f", struct.pack("<f", exact_sum))[0])

    def __float__(self) -> float:
        return self.total
