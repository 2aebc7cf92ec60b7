"""How many spans run at once, and who worked when; the spans are those of ``code_a1_recipe.algorithm.spans``."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from code_a1_recipe.algorithm.spans import Span, outside, seconds_of, union


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
