"""Cuts a rank's rows into micro-batches of prompts that are computed once, within a budget of computed tokens."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import NamedTuple

Rows = list[int]
"""Indices of rows."""


class Row(NamedTuple):
    """What a row costs. Rows of a micro-batch with equal prompts compute the prompt once."""

    prompt: Hashable
    prompt_tokens: int
    response_tokens: int


def computed_tokens(rows: Sequence[Row]) -> int:
    """Count the tokens that go through the model: each response, and each different prompt once."""
    prompts = {row.prompt: row.prompt_tokens for row in rows}
    return sum(prompts.values()) + sum(row.response_tokens for row in rows)


def micro_batches(rows: Sequence[Row], *, budget: int) -> list[Rows]:
    """Cut rows into micro-batches by first fit, the largest group first.

    Rows with equal prompts stay together. A group that alone exceeds the budget is cut, and its prompt is then computed
    in each piece.

    Args:
        rows: of one rank.
        budget: largest number of computed tokens in a micro-batch. Only a single row that is longer exceeds it.

    Returns:
        The indices of each micro-batch. Together they hold each row once.
    """
    groups: dict[Hashable, Rows] = defaultdict(list)
    for number, row in enumerate(rows):
        groups[row.prompt].append(number)
    pieces: list[tuple[int, Rows]] = []  # with their computed tokens
    for group in groups.values():
        prompt = size = rows[group[0]].prompt_tokens
        piece: Rows = []
        for number in group:
            response = rows[number].response_tokens
            if piece and size + response > budget:
                pieces.append((size, piece))
                size, piece = prompt, []
            size += response
            piece.append(number)
        pieces.append((size, piece))
    parts: list[Rows] = []
    room: list[int] = []  # of each part
    for size, piece in sorted(pieces, key=lambda item: -item[0]):
        place = next((place for place, left in enumerate(room) if size <= left), len(parts))
        if place == len(parts):
            parts.append([])
            room.append(budget)
        parts[place] += piece
        room[place] -= size
    return parts


def split_to(parts: Sequence[Rows], rows: Sequence[Row], *, number: int) -> list[Rows]:
    """Split the largest micro-batches until there are ``number``, since all ranks need the same number.

    Raises:
        ValueError: there are fewer rows.
    """
    if number > len(rows):
        raise ValueError(f"{len(rows)} rows cannot be {number} micro-batches")
    parts = list(parts)

    def size(part: Rows) -> int:
        return computed_tokens([rows[row] for row in part])

    while len(parts) < number:
        largest = max((part for part in parts if len(part) > 1), key=size)
        parts.remove(largest)
        cuts = [(largest[:cut], largest[cut:]) for cut in range(1, len(largest))]
        parts += min(cuts, key=lambda cut: max(map(size, cut)))
    return parts
