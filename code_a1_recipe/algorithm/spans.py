"""Spans of time, and the seconds that they cover together.

A span is a pair of start and end in seconds; the start belongs to it and the end does not. A span that ends at its
start, or before it because a clock was set back, is empty.
"""

from collections.abc import Iterable

Span = tuple[float, float]
"""Start and end, in seconds on a clock that all spans of a call share."""


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Join spans into the fewest that cover the same time: sorted, with a gap between neighbours.

    Example:
        >>> union([(4, 6), (0, 2), (1, 3), (3, 4)])
        ((0, 6),)
    """
    joined: list[Span] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if joined and start <= joined[-1][1]:
            last_start, last_end = joined[-1]
            joined[-1] = (last_start, max(last_end, end))
        else:
            joined.append((start, end))
    return tuple(joined)


def seconds_of(spans: Iterable[Span]) -> float:
    """Seconds that at least one span covers; a second that two spans cover counts once."""
    return sum(end - start for start, end in union(spans))
