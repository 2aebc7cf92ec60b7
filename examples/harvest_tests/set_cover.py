"""Few sets that together hold what all of them hold."""

from collections.abc import Sequence, Set


def cover(sets: Sequence[Set[int]], weights: Sequence[float], *, least: int = 0) -> list[int]:
    """Choose few sets with the union of all; the smallest choice is NP-hard to find, so this one is greedy.

    Each time the set with the most members that no chosen one has; ties go to the larger weight, then to the earlier
    set. At most ``1 + ln(n)`` times as many as the smallest choice, with ``n`` the size of the largest set (Chvatal
    1979, "A Greedy Heuristic for the Set-Covering Problem"). Then, from the last one, those go whose members others
    have as well, so that every set chosen for its members has one that no other chosen set has.

    Args:
        sets: any sets.
        weights: one for each.
        least: choose at least so many, as far as there are; the further ones by weight.

    Returns:
        Places in ``sets``, in the order in which they were chosen.

    Example:
        >>> cover([{1}, {1, 2}, {3}, {2, 3}], [0, 0, 0, 5])
        [3, 1]
    """
    if len(sets) != len(weights):
        raise ValueError(f"need a weight for each set, got {len(sets)} sets and {len(weights)} weights")
    missing = set().union(*sets)
    left = list(range(len(sets)))
    chosen: list[int] = []
    while missing:
        best = max(left, key=lambda place: (len(sets[place] & missing), weights[place], -place))
        left.remove(best)
        chosen.append(best)
        missing -= sets[best]
    chosen = _without_redundant(sets, chosen)
    others = sorted(set(range(len(sets))) - set(chosen), key=lambda place: (-weights[place], place))
    return chosen + others[: max(0, least - len(chosen))]


def _without_redundant(sets: Sequence[Set[int]], chosen: list[int]) -> list[int]:
    holders: dict[int, int] = {}
    for place in chosen:
        for member in sets[place]:
            holders[member] = holders.get(member, 0) + 1
    kept = list(chosen)
    for place in reversed(chosen):
        if all(holders[member] > 1 for member in sets[place]):
            kept.remove(place)
            for member in sets[place]:
                holders[member] -= 1
    return kept
