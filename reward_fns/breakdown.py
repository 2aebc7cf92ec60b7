"""A reward as the sum of its named parts."""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """One reward, with what it is made of."""

    parts: Mapping[str, float]
    """Weighted named parts; they sum to ``total``."""
    terms: Mapping[str, float] = field(default_factory=dict)
    """Raw, unweighted quantities for logs: rates in [0, 1] and counts."""

    def __post_init__(self) -> None:
        for kind, numbers in (("parts", self.parts), ("terms", self.terms)):
            for name, value in numbers.items():
                if not isinstance(name, str) or not isinstance(value, int | float) or not math.isfinite(value):
                    raise ValueError(f"reward {kind} must be finite numbers by names, got {name!r}: {value!r}")
        # Copies: whoever made the mappings may go on to change them.
        object.__setattr__(self, "parts", dict(self.parts))
        object.__setattr__(self, "terms", dict(self.terms))

    @property
    def total(self) -> float:
        """The reward: the exact sum of ``parts``, rounded once, to float32.

        float32 because verl carries rewards in it and a group-relative advantage subtracts rewards that
        are close to one another: two rewards that are equal there should be equal here.
        """
        return float(struct.unpack("<f", struct.pack("<f", math.fsum(self.parts.values())))[0])

    def __float__(self) -> float:
        return self.total
