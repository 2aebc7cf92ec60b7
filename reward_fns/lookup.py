"""A dictionary look-up with a message for users."""

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def lookup(name: str, table: Mapping[str, T], *, what: str) -> T:
    """Return ``table[name]``.

    Args:
        name: what the user wrote.
        table: the known names.
        what: kind of the thing, for the message, such as "code reward".

    Raises:
        ValueError: the name is unknown; the message lists the known ones.
    """
    if name not in table:
        raise ValueError(f"unknown {what} {name!r}; known: {', '.join(sorted(table))}")
    return table[name]
