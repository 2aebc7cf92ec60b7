"""A step's rows in parts, so that the trainer never holds the tensors of a whole step at once."""

from collections.abc import Sequence
from itertools import groupby

ROWS_AT_ONCE = 1024
"""Rows whose tensors the trainer holds at a time; a step with fewer is one part."""


def balanced_parts(num_rows: int, *, ranks: int, at_once: int = ROWS_AT_ONCE) -> list[list[int]]:
    """Places of the rows of each part, for phases that go through the workers.

    verl lays a batch out as one block of equal length for each rank. Every part takes the same share of every block,
    so that a rank gets the same rows as in one go.

    Args:
        num_rows: a multiple of ``ranks``.
        ranks: data-parallel ranks, at least 1.
        at_once: most rows of a part; at least ``ranks`` are taken.

    Returns:
        Lists of places that cover 0 to ``num_rows - 1``, each once.

    Example:
        >>> balanced_parts(8, ranks=2, at_once=4)
        [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    # A part that took rows from the front alone would give them all to the first rank.
    block = num_rows // ranks
    width = max(1, at_once // ranks)
    return [
        [rank * block + place for rank in range(ranks) for place in range(start, min(start + width, block))]
        for start in range(0, block, width)
    ]


def group_parts(groups: Sequence[str], *, at_once: int = ROWS_AT_ONCE) -> list[list[int]]:
    """Places of the rows of each part, for advantages: no group is cut, since they are relative to its members.

    Args:
        groups: the group of each row, in any order.
        at_once: rows from which on a part is full; one group alone may have more.

    Returns:
        Lists of places that cover all rows, each once.
    """
    # Rows arrive in the order in which episodes ended, so the members of a group are first brought together.
    order = sorted(range(len(groups)), key=lambda place: groups[place])
    parts: list[list[int]] = [[]]
    for _, members in groupby(order, key=lambda place: groups[place]):
        places = list(members)
        if parts[-1] and len(parts[-1]) + len(places) > at_once:
            parts.append([])
        parts[-1] += places
    return parts
