"""TOPVAR and its controls: the candidates of a question whose suites train the Test LLM.

Axes: C candidates of one question, S suites per candidate.
"""

import math
import random
import statistics
from collections.abc import Callable, Sequence

GroupSelector = Callable[..., tuple[int, ...]]
"""``(reward_CS, *, update_n, seed) -> candidate indices``; see ``top_variance``."""


def top_variance(reward_CS: Sequence[Sequence[float | None]], *, update_n: int, seed: int = 0) -> tuple[int, ...]:
    """TOPVAR: the ``update_n`` candidates whose suite rewards have the largest standard deviation.

    Source: Code-A1, arXiv 2603.15611 (``update_n = 1`` in the published runs). The population variance
    ranks the same as the standard deviation and is computed exactly, so that two candidates with the same
    rewards in another order tie.

    Args:
        reward_CS: [C, S] rewards of one question's suites. None marks a suite lost to an outage: its
            candidate is not eligible, nor is one without suites, since its group would be incomplete.
        update_n: candidates wanted, at least 1.
        seed: not used.

    Returns:
        At most ``update_n`` indices into C, largest spread first, ties to the lowest index. Fewer when
        fewer are eligible, perhaps none. A group without spread can be chosen; its advantages are 0.

    Raises:
        ValueError: ``update_n`` is below 1, or a reward is not finite.

    Example:
        >>> top_variance([[0.5, 0.5], [0.0, 1.0], [None, 1.0]], update_n=1)
        (1,)
    """
    del seed
    eligible = _eligible(reward_CS, update_n=update_n)
    variance = {c: statistics.pvariance([r for r in reward_CS[c] if r is not None]) for c in eligible}
    return tuple(sorted(eligible, key=lambda c: (-variance[c], c))[:update_n])


def every_candidate(
    reward_CS: Sequence[Sequence[float | None]], *, update_n: int = 1, seed: int = 0
) -> tuple[int, ...]:
    """All eligible candidates, in order; ``update_n`` and ``seed`` are not used."""
    del seed
    return tuple(_eligible(reward_CS, update_n=update_n))


def random_candidates(reward_CS: Sequence[Sequence[float | None]], *, update_n: int, seed: int) -> tuple[int, ...]:
    """``update_n`` eligible candidates, each set with equal chance; the same for the same ``seed``.

    The control for TOPVAR. Give a seed that differs by question and step.
    """
    eligible = _eligible(reward_CS, update_n=update_n)
    return tuple(random.Random(seed).sample(eligible, min(update_n, len(eligible))))


def hardest_candidates(reward_CS: Sequence[Sequence[float | None]], *, update_n: int, seed: int = 0) -> tuple[int, ...]:
    """The ``update_n`` candidates whose suites earn least, of those whose suites do not all earn the same.

    On the adversarial part of the reward: the programs that the fewest suites break, at least one and not all.
    ``seed`` is not used.
    """
    del seed
    eligible = _eligible(reward_CS, update_n=update_n)
    rewards = {c: [reward for reward in reward_CS[c] if reward is not None] for c in eligible}
    spread = [c for c in eligible if max(rewards[c]) > min(rewards[c])]
    return tuple(sorted(spread, key=lambda c: (statistics.fmean(rewards[c]), c))[:update_n])


GROUP_SELECTORS: dict[str, GroupSelector] = {
    "topvar": top_variance,
    "all": every_candidate,
    "random": random_candidates,
    "hardest": hardest_candidates,
}
"""By name; "topvar" is the default."""


def _eligible(reward_CS: Sequence[Sequence[float | None]], *, update_n: int) -> list[int]:
    """Indices of candidates with all their rewards."""
    if update_n < 1:
        raise ValueError(f"update_n (candidates that train the Test LLM) must be at least 1, got {update_n!r}")
    odd = [(c, r) for c, row in enumerate(reward_CS) for r in row if r is not None and not math.isfinite(r)]
    if odd:
        raise ValueError(f"suite rewards must be finite, got {odd[0][1]!r} for candidate {odd[0][0]}")
    return [c for c, row in enumerate(reward_CS) if row and all(reward is not None for reward in row)]
