"""TOPVAR: the candidates of a question whose suites train the Test LLM.

Axes: C candidates of one question, S suites per candidate.
"""

import statistics
from collections.abc import Sequence
from typing import Protocol

RewardsCS = Sequence[Sequence[float | None]]
"""[C, S] rewards of one question's suites; None marks a suite without a reward, for example after an outage."""


class GroupSelector(Protocol):
    """Returns the indices of the candidates whose suites train the Test LLM, as :func:`top_variance` does."""

    def __call__(self, reward_CS: RewardsCS, *, update_n: int) -> tuple[int, ...]: ...


def top_variance(reward_CS: RewardsCS, *, update_n: int) -> tuple[int, ...]:
    """TOPVAR: the ``update_n`` candidates whose suite rewards have the largest standard deviation.

    Source: Code-A1, arXiv 2603.15611 (``update_n = 1`` in the published runs).

    Args:
        reward_CS: the rewards. A candidate with a None, or without suites, is not eligible, because its GRPO group
            would be incomplete.
        update_n: number of candidates to choose, at least 1.

    Returns:
        Indices of candidates, the largest standard deviation first; ties go to the lowest index. If fewer than
        ``update_n`` candidates are eligible, the result has all eligible candidates. A candidate whose suites have
        equal rewards can be chosen; the advantages of its suites are 0.

    Example:
        >>> top_variance([[0.5, 0.5], [0.0, 1.0], [None, 1.0]], update_n=1)
        (1,)
    """
    groups = _complete_groups(reward_CS)
    # The variance gives the same order as the standard deviation. `statistics` computes the variance exactly, so the
    # order of a group's rewards does not change it. With rounded sums of floats, the order could change it.
    by_spread = sorted(
        groups,
        key=lambda candidate: statistics.pvariance(groups[candidate]),
        reverse=True,
    )
    # A stable sort keeps the order of ties.
    return tuple(by_spread[:update_n])


def every_candidate(reward_CS: RewardsCS, *, update_n: int = 1) -> tuple[int, ...]:
    """All eligible candidates in their order; ``update_n`` is ignored."""
    return tuple(_complete_groups(reward_CS))


GROUP_SELECTORS: dict[str, GroupSelector] = {"topvar": top_variance, "all": every_candidate}
"""Selectors by their names in ``selection.name``; "topvar" is the default."""


def _complete_groups(reward_CS: RewardsCS) -> dict[int, list[float]]:
    """The suite rewards of each candidate that has suites, and whose suites all have rewards."""
    groups = {}
    for candidate, suites in enumerate(reward_CS):
        rewards = [reward for reward in suites if reward is not None]
        is_complete = len(rewards) == len(suites)
        if rewards and is_complete:
            groups[candidate] = rewards
    return groups
