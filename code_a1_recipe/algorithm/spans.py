"""Spans of time, and the seconds that several spans cover together.

A span is a pair of start and end in seconds; the span contains its start, but not its end. A span is empty if it ends
at its start, or before its start because a clock was set back.
"""

from collections.abc import Iterable

Span = tuple[float, float]
"""Start and end in seconds, by a clock that all spans of a call share."""


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Join overlapping and adjacent spans. The result is sorted and covers the same time.

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
    """Number of seconds that at least one span covers; a second that two spans cover counts once."""
    covered = union(spans)
    return sum(end - start for start, end in covered)
