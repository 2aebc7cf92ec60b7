"""TOPVAR: the candidates of a question whose suites train the Test LLM.

Axes: C candidates of one question, S suites per candidate.
"""

import statistics
from collections.abc import Callable, Sequence

RewardsCS = Sequence[Sequence[float | None]]
"""[C, S] rewards of one question's suites; None marks a suite that was lost to an outage."""
GroupSelector = Callable[..., tuple[int, ...]]
"""``(reward_CS, *, update_n) -> candidate indices``; see ``top_variance``."""


def top_variance(reward_CS: RewardsCS, *, update_n: int) -> tuple[int, ...]:
    """TOPVAR: the ``update_n`` candidates whose suite rewards have the largest standard deviation.

    Source: Code-A1, arXiv 2603.15611 (``update_n = 1`` in the published runs).

    Args:
        reward_CS: a candidate with a None, or without suites, is not eligible: its group would be incomplete.
        update_n: candidates wanted, at least 1.

    Returns:
        At most ``update_n`` indices into C, largest spread first; ties go to the lowest index. There are fewer, perhaps
        none, where fewer are eligible. A group without spread can be chosen; its advantages are 0.

    Example:
        >>> top_variance([[0.5, 0.5], [0.0, 1.0], [None, 1.0]], update_n=1)
        (1,)
    """
    groups = _complete_groups(reward_CS)
    # The variance ranks as the standard deviation does. `statistics` computes it exactly, so groups with the same
    # rewards in another order tie; with sums of rounded floats they might not. Sorting leaves ties in their order.
    by_spread = sorted(
        groups,
        key=lambda candidate: statistics.pvariance(groups[candidate]),
        reverse=True,
    )
    return tuple(by_spread[:update_n])


def every_candidate(reward_CS: RewardsCS, *, update_n: int = 1) -> tuple[int, ...]:
    """All eligible candidates, in order; ``update_n`` is not used."""
    return tuple(_complete_groups(reward_CS))


GROUP_SELECTORS: dict[str, GroupSelector] = {"topvar": top_variance, "all": every_candidate}
"""Selectors by ``selection.name``; "topvar" is the default."""


def _complete_groups(reward_CS: RewardsCS) -> dict[int, list[float]]:
    """Rewards of the candidates that have suites, each with a reward."""
    groups = {}
    for candidate, suites in enumerate(reward_CS):
        rewards = [reward for reward in suites if reward is not None]
        if rewards and len(rewards) == len(suites):
            groups[candidate] = rewards
    return groups
