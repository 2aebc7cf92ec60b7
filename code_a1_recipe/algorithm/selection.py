"""TOPVAR: the candidates of a question whose suites train the Test LLM.

Axes: C candidates of one question, S suites per candidate.
"""

import math
import statistics
from collections.abc import Callable, Sequence

RewardsCS = Sequence[Sequence[float | None]]
"""[C, S] rewards of one question's suites. None marks a suite that was lost to an outage."""
GroupSelector = Callable[..., tuple[int, ...]]
"""``(reward_CS, *, update_n) -> candidate indices``; see ``top_variance``."""


def top_variance(reward_CS: RewardsCS, *, update_n: int) -> tuple[int, ...]:
    """TOPVAR: the ``update_n`` candidates whose suite rewards have the largest standard deviation.

    Source: Code-A1, arXiv 2603.15611 (``update_n = 1`` in the published runs).

    Args:
        reward_CS: a candidate with a None, or without suites, is not eligible: its group would be incomplete.
        update_n: candidates wanted, at least 1.

    Returns:
        At most ``update_n`` indices into C, largest spread first, ties to the lowest index. Fewer when
        fewer are eligible, perhaps none. A group without spread can be chosen; its advantages are 0.

    Raises:
        ValueError: a reward is not finite.

    Example:
        >>> top_variance([[0.5, 0.5], [0.0, 1.0], [None, 1.0]], update_n=1)
        (1,)
    """
    eligible = _eligible(reward_CS)
    # The variance ranks as the standard deviation does. `statistics` computes it exactly, so that candidates with the
    # same rewards in another order tie, which a sum of rounded floats would not grant.
    variances = {}
    for candidate in eligible:
        rewards = [reward for reward in reward_CS[candidate] if reward is not None]
        variances[candidate] = statistics.pvariance(rewards)
    by_spread = sorted(eligible, key=lambda candidate: (-variances[candidate], candidate))
    return tuple(by_spread[:update_n])


def every_candidate(reward_CS: RewardsCS, *, update_n: int = 1) -> tuple[int, ...]:
    """All eligible candidates, in order; ``update_n`` is not used."""
    return tuple(_eligible(reward_CS))


GROUP_SELECTORS: dict[str, GroupSelector] = {"topvar": top_variance, "all": every_candidate}
"""Selectors by ``selection.name``; "topvar" is the default."""


def _eligible(reward_CS: RewardsCS) -> list[int]:
    """Indices of the candidates that have all their rewards."""
    eligible = []
    for candidate, rewards in enumerate(reward_CS):
        for reward in rewards:
            if reward is not None and not math.isfinite(reward):
                raise ValueError(f"suite rewards must be finite, got {reward!r} for candidate {candidate}")
        if rewards and None not in rewards:
            eligible.append(candidate)
    return eligible
