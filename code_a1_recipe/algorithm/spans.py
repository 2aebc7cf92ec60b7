"""Spans of time: what they cover together, and what they leave open. Functions of values only.

A span is a pair of start and end in seconds, with the start in it and the end not. One that ends where it starts, or
before (a clock was set back), is empty: it covers nothing and never runs.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

Span = tuple[float, float]
"""Start and end, in seconds on a clock that all spans of a call share."""


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """What at least one span covers, as the fewest spans: sorted, disjoint, with a gap between neighbours.

    Example:
        >>> union([(4, 6), (0, 2), (1, 3), (3, 4)])
        ((0, 6),)
    """
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return tuple(joined)


def seconds_of(spans: Iterable[Span]) -> float:
    """Seconds that at least one span covers; a second under two of them counts once. At least 0."""
    return sum(end - start for start, end in union(spans))


def outside(spans: Iterable[Span], others: Iterable[Span]) -> tuple[Span, ...]:
    """What ``spans`` cover and ``others`` do not; sorted and disjoint.

    Example:
        >>> outside([(0, 10)], [(2, 3), (9, 12)])
        ((0, 2), (3, 9))
    """
    taken = union(others)
    starts, ends = [start for start, _ in taken], [end for _, end in taken]
    left: list[Span] = []
    for start, end in union(spans):
        for taken_start, taken_end in taken[bisect_right(ends, start) : bisect_left(starts, end)]:
            left.append((start, taken_start))
            start = taken_end
        left.append((start, end))
    return tuple(span for span in left if span[0] < span[1])
