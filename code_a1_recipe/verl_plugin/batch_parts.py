"""Deals the rows of a step to ranks and optimizer steps.

verl adds filler rows, which train nothing, until the number of rows is a multiple of the mini-batch size. verl puts the
fillers at the end of the batch. With all fillers at the end, the last optimizer step would have few real rows at the
full learning rate.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from itertools import chain, islice

Rows = list[int]
"""Indices of rows."""


def deal(
    groups: Sequence[str],
    tokens: Sequence[int],
    *,
    fillers: Collection[int],
    ranks: int,
    steps: int,
) -> list[Rows]:
    """Deal rows to ranks and their optimizer steps.

    The optimizer steps get nearly equal numbers of real rows, and the ranks about equal numbers of tokens. The rows of
    a group share a prompt, so they stay together if there is room for all of them.

    Args:
        groups: the group of each row; the number of rows is a multiple of ``ranks * steps``.
        tokens: the number of tokens of each row.
        fillers: indices of the filler rows.
        ranks: data-parallel ranks, at least 1.
        steps: optimizer steps, at least 1. Each step takes the same share of a rank's rows.

    Returns:
        For each rank the indices of its rows, in the order of the optimizer steps.

    Raises:
        ValueError: the rows cannot be dealt evenly.
    """
    if len(groups) % (ranks * steps):
        raise ValueError(f"{len(groups)} rows cannot be dealt evenly to {ranks} ranks with {steps} optimizer steps")
    members: dict[str, Rows] = defaultdict(list)
    for row, group in enumerate(groups):
        if row not in fillers:
            members[group].append(row)

    def weight(rows: Rows) -> int:
        return sum(tokens[row] for row in rows)

    # A cell is one optimizer step of one rank. All cells have the same size.
    size = len(groups) // (ranks * steps)
    cells: list[Rows] = [[] for _ in range(ranks * steps)]
    rows_of_step = [0] * steps
    weights = [0] * len(cells)

    def load(number: int) -> tuple[int, int, int]:
        """Measure how full a cell is: by its rows, then by the rows of its optimizer step, then by its tokens."""
        return len(cells[number]), rows_of_step[number % steps], weights[number]

    # The heaviest group comes first, as in bin packing. Light groups at the end can then even out the cells.
    heaviest_first = sorted(members.values(), key=weight, reverse=True)
    waiting = deque(heaviest_first)
    while waiting:
        rows = waiting.popleft()
        room = size - len(rows)
        fitting = [number for number, cell in enumerate(cells) if len(cell) <= room]
        if fitting:
            emptiest = min(fitting, key=load)
            cells[emptiest] += rows
            rows_of_step[emptiest % steps] += len(rows)
            weights[emptiest] += weight(rows)
        else:  # no cell has room for the whole group, so its rows are dealt one by one
            waiting.extendleft([row] for row in rows)

    unused = iter(sorted(fillers))
    for cell in cells:
        cell.extend(islice(unused, size - len(cell)))
    of_ranks = (cells[first : first + steps] for first in range(0, len(cells), steps))
    return [list(chain(*own)) for own in of_ranks]
