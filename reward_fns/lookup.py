"""A dictionary lookup with an error message for users."""

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def lookup(name: str, table: Mapping[str, T], *, what: str) -> T:
    """Return ``table[name]``.

    Args:
        name: the name that the user gave.
        table: values by the known names.
        what: noun for the message, such as "code reward".

    Raises:
        ValueError: the name is unknown. The message lists the known names.
    """
    if name not in table:
        raise ValueError(f"unknown {what} {name!r}; known: {', '.join(sorted(table))}")
    return table[name]
