"""Deals the rows of a step to ranks and optimizer steps, and divides the rows into parts.

The trainer holds the tensors of one part at a time. verl adds filler rows, which train nothing, until the number of
rows is a multiple of the mini-batch size. verl puts the fillers at the end of the batch. With all fillers at the end,
the last optimizer step would have few real rows at the full learning rate. A part might have no real row at all.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from itertools import chain, groupby, islice

Rows = list[int]
"""Indices of rows."""

ROWS_AT_ONCE = 1024
"""Largest number of rows whose tensors the trainer holds at a time. A step with fewer rows is one part."""


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
    """
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

    def load(number: int) -> tuple[int, int, int]:
        """Measure how full a cell is: by its rows, then by the rows of its optimizer step, then by its tokens."""
        cell = cells[number]
        return len(cell), rows_of_step[number % steps], weight(cell)

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
        else:  # no cell has room for the whole group, so its rows are dealt one by one
            waiting.extendleft([row] for row in rows)

    unused = iter(sorted(fillers))
    for cell in cells:
        cell.extend(islice(unused, size - len(cell)))
    of_ranks = (cells[first : first + steps] for first in range(0, len(cells), steps))
    return [list(chain(*own)) for own in of_ranks]


def balanced_parts(num_rows: int, *, ranks: int, at_once: int = ROWS_AT_ONCE) -> list[Rows]:
    """Cut rows into parts for phases that run on the workers.

    verl cuts a batch into one block for each rank, and all blocks have the same length. Every part takes the same share
    of every block, so each rank gets the rows that it would get from the whole batch. Parts of consecutive rows would
    spread the rows of one rank over all ranks.

    Args:
        num_rows: a multiple of ``ranks``.
        ranks: data-parallel ranks, at least 1.
        at_once: largest number of rows in a part. But a part always has at least ``ranks`` rows.

    Returns:
        Lists of row indices. Together they hold each index from 0 to ``num_rows - 1`` once.

    Example:
        >>> balanced_parts(8, ranks=2, at_once=4)
        [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    block = num_rows // ranks
    width = max(1, at_once // ranks)
    parts = []
    for start in range(0, block, width):
        end = min(start + width, block)
        rows: Rows = []
        for first in range(0, num_rows, block):  # the first row of each rank's block
            rows += range(first + start, first + end)
        parts.append(rows)
    return parts


def group_parts(
    groups: Sequence[str],
    *,
    fillers: Collection[int] = (),
    at_once: int = ROWS_AT_ONCE,
) -> list[Rows]:
    """Cut rows into parts to compute advantages. No group is cut, since an advantage compares the members of a group.

    Args:
        groups: the group of each row, in any order.
        fillers: indices of the filler rows. Fillers are spread over the parts, since no part may consist of fillers
            alone.
        at_once: largest number of rows in a part, unless a single group has more rows.

    Returns:
        Lists of row indices. Together they hold each row once.
    """
    # Rows arrive in the order in which episodes ended, so the members of a group must be brought together.
    real = set(range(len(groups))).difference(fillers)
    order = sorted(real, key=groups.__getitem__)
    parts: list[Rows] = [[]]
    for _, members in groupby(order, key=groups.__getitem__):
        rows = list(members)
        if parts[-1] and len(parts[-1]) + len(rows) > at_once:
            parts.append([])
        parts[-1] += rows
    for number, row in enumerate(sorted(fillers)):
        parts[number % len(parts)].append(row)
    return parts
