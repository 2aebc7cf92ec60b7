"""Mistake Book, what goes in: a question's verdicts say which new cases failed and which replays passed."""

from collections.abc import Sequence

from sandbox import CandidateVerdict, CaseOutcome, CaseResult, RejectionReason
from sandbox.text import TOTAL_SPENT

from .mistake_book import BookUpdate, FailedCase


def collect_book_update(verdicts: Sequence[CandidateVerdict]) -> BookUpdate:
    """Collect what a question's candidates failed and passed.

    Every failure of a call that the candidate was asked counts, also time-outs and crashes. The judge has already
    merged equal cases of a suite, so an item is one candidate and suite.

    Args:
        verdicts: of candidates the judge answered for; rows lost to an outage are left out by the caller.
    """
    new = [case for verdict in verdicts for suite in verdict.suites for case in suite.cases]
    replayed = [case for verdict in verdicts for case in verdict.history]
    failed = [case for case in new if _enters_the_book(case)]
    return BookUpdate(
        failed=tuple(FailedCase(id=case.id, call=case.call, answer=case.reference_value) for case in failed),
        passed_replays=tuple(case.id for case in replayed if not case.outcome.failed),
        # A duplicate was judged under its other spelling, and a reference that had no time left was not asked.
        dropped_replays=tuple(
            dropped.text
            for verdict in verdicts
            for dropped in verdict.dropped_history
            if dropped.reason is not RejectionReason.DUPLICATE and dropped.detail != TOTAL_SPENT
        ),
    )


def _enters_the_book(case: CaseResult) -> bool:
    # A candidate that does not load, or hangs in its first calls, would bring in all valid cases of the question, and
    # push out the ones that tell candidates apart. The gate of R_T says the same of one that does not load.
    return case.outcome.failed and case.outcome is not CaseOutcome.NOT_LOADED and not case.is_unasked
