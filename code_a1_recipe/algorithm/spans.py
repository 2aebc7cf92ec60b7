"""Spans of time: what they cover together, what they leave open, how many run at once. Functions of values only.

A span is a pair of start and end in seconds, with the start in it and the end not. One that ends where it starts, or
before (a clock was set back), is empty: it covers nothing and never runs.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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


def inside(spans: Iterable[Span], *, start: float, end: float) -> list[Span]:
    """The parts of the spans between two times, in their order and overlapping as they did; empty ones are left out."""
    cut = ((max(start, one), min(end, other)) for one, other in spans)
    return [span for span in cut if span[0] < span[1]]


def running(spans: Iterable[Span]) -> list[tuple[float, int]]:
    """How many spans run, as (time, number from this time on), wherever the number changes; times ascend.

    The last number is 0. Empty without spans: the number is 0 at all times.

    Example:
        >>> running([(0, 2), (1, 2), (2, 3)])
        [(0, 1), (1, 2), (2, 1), (3, 0)]
    """
    changes: Counter[float] = Counter()
    for start, end in spans:
        if start < end:
            changes[start] += 1
            changes[end] -= 1
    counts = []
    number = 0
    for time in sorted(changes):
        if changes[time]:
            number += changes[time]
            counts.append((time, number))
    return counts


def mean_running(spans: Iterable[Span], *, start: float, end: float) -> float:
    """Mean number of spans that run at once between two times; 0 where no time lies between them."""
    if end <= start:
        return 0.0
    return sum(other - one for one, other in inside(spans, start=start, end=end)) / (end - start)


@dataclass(frozen=True, slots=True, kw_only=True)
class BusySeconds:
    """Who worked between two times, in seconds; the five parts add up to the whole."""

    only_code: float
    """The Code LLM wrote and the Test LLM did not, whatever the judge did; likewise ``only_test``."""
    only_test: float
    both: float
    only_judge: float
    """Programs were at the judge, and neither LLM wrote."""
    nothing: float


def busy_seconds(
    *, code: Sequence[Span], test: Sequence[Span], judge: Sequence[Span], start: float, end: float
) -> BusySeconds:
    """Divide the seconds from ``start`` to ``end`` by who worked; what lies outside them does not count.

    Args:
        code: requests to the Code LLM; they may overlap, likewise the others.
        test: requests to the Test LLM.
        judge: programs at the judge.
        start: seconds.
        end: seconds, not before ``start``.

    Raises:
        ValueError: ``end`` lies before ``start``.
    """
    if end < start:
        raise ValueError(f"end must not lie before start, got start={start!r} and end={end!r}")
    code, test, judge = (union(inside(spans, start=start, end=end)) for spans in (code, test, judge))
    writing = union([*code, *test])
    only_code = outside(code, test)
    return BusySeconds(
        only_code=seconds_of(only_code),
        only_test=seconds_of(outside(test, code)),
        both=seconds_of(outside(code, only_code)),
        only_judge=seconds_of(outside(judge, writing)),
        nothing=seconds_of(outside([(start, end)], [*writing, *judge])),
    )
