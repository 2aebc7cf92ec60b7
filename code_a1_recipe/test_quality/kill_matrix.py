"""The tests that break a program, out of many."""

from collections.abc import Iterator, Sequence

from sandbox import (
    HANGS_THROUGHOUT,
    TOTAL_SPENT,
    CaseOutcome,
    CaseResult,
    SuiteVerdict,
)


def cases_by_place(
    tests: Sequence[str],
    suite: SuiteVerdict,
) -> Iterator[tuple[int, CaseResult]]:
    """Each valid case with the place of its text: cases come in written order, without what was refused."""
    refused = {rejection.text for rejection in suite.rejections}
    places = [place for place, text in enumerate(tests) if text not in refused]
    yield from zip(places, suite.cases, strict=True)


def is_broken(case: CaseResult) -> bool:
    """Say if the case broke the program: another value, an exception, a time-out, or it does not load.

    A call for which the program had no time left, or that it was not asked because it hung in all before, says nothing.
    """
    is_asked = case.detail not in (TOTAL_SPENT, HANGS_THROUGHOUT)
    if case.outcome is CaseOutcome.TIMED_OUT:
        return is_asked
    return case.outcome.failed
