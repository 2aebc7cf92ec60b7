"""A step's rows: dealt over ranks and optimizer steps, and in parts, so that the trainer never holds all at once.

verl fills a step up with rows that count nothing, until its number is a multiple of a mini-batch. It puts them at the
end: the last optimizer step would be made of few real rows at the full learning rate, and a part of none.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from itertools import chain, groupby, islice

ROWS_AT_ONCE = 1024
"""Rows whose tensors the trainer holds at a time; a step with fewer is one part."""


def deal(
    groups: Sequence[str], tokens: Sequence[int], *, fillers: Collection[int], ranks: int, steps: int
) -> list[list[int]]:
    """Places of the rows of each rank, in the order of its optimizer steps.

    Every step gets as many real rows as every other, but for a group, and ranks about as many tokens. A group stays
    together where it fits, since its rows share a prompt.

    Args:
        groups: the group of each row; their number is a multiple of ``ranks * steps``.
        tokens: of each row.
        fillers: places of the rows that count nothing.
        ranks: data-parallel ranks, at least 1.
        steps: optimizer steps, at least 1; each takes the same share of a rank's rows.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for place, group in enumerate(groups):
        if place not in fillers:
            members[group].append(place)

    def weight(places: list[int]) -> int:
        return sum(tokens[place] for place in places)

    def order(number: int) -> tuple[int, int, int]:
        """Fewest rows, then those of the step with the fewest, then the lightest."""
        return (
            len(cells[number]),
            of_steps[number % steps],
            weight(cells[number]),
        )

    size = len(groups) // (ranks * steps)
    cells: list[list[int]] = [[] for _ in range(ranks * steps)]
    of_steps = [0] * steps
    waiting = deque(sorted(members.values(), key=weight, reverse=True))
    while waiting:
        places = waiting.popleft()
        room = size - len(places)
        fitting = [number for number, cell in enumerate(cells) if len(cell) <= room]
        if fitting:
            best = min(fitting, key=order)
            cells[best] += places
            of_steps[best % steps] += len(places)
        else:
            waiting.extendleft([place] for place in places)  # one by one

    unused = iter(sorted(fillers))
    for cell in cells:
        cell.extend(islice(unused, size - len(cell)))
    return [list(chain(*cells[rank * steps : (rank + 1) * steps])) for rank in range(ranks)]


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


def group_parts(
    groups: Sequence[str], *, fillers: Collection[int] = (), at_once: int = ROWS_AT_ONCE
) -> list[list[int]]:
    """Places of the rows of each part, for advantages: no group is cut, since they are relative to its members.

    Args:
        groups: the group of each row, in any order.
        fillers: places of the rows that count nothing; every part gets some of them, since none may hold them alone.
        at_once: rows from which on a part is full; one group alone may have more.

    Returns:
        Lists of places that cover all rows, each once.
    """
    # Rows arrive in the order in which episodes ended, so the members of a group are first brought together.
    order = sorted(set(range(len(groups))) - set(fillers), key=lambda place: groups[place])
    parts: list[list[int]] = [[]]
    for _, members in groupby(order, key=lambda place: groups[place]):
        places = list(members)
        if parts[-1] and len(parts[-1]) + len(places) > at_once:
            parts.append([])
        parts[-1] += places
    for number, place in enumerate(sorted(fillers)):
        parts[number % len(parts)].append(place)
    return parts
