"""Mistake Book, update: what a question's verdicts say about its new cases and its replays."""

from collections.abc import Sequence

from sandbox import CandidateVerdict, CaseOutcome, CaseResult, RejectionReason

from .mistake_book import BookUpdate, FailedCase


def collect_book_update(verdicts: Sequence[CandidateVerdict]) -> BookUpdate:
    """Collect the cases and replays that a question's candidates failed and passed from their verdicts.

    All failures count, time-outs and deaths included, but those of a candidate that does not load.

    Args:
        verdicts: of candidates the judge answered for; rows lost to an outage are left out by the caller.

    Returns:
        Items in the order of candidates, suites and cases; the book does not depend on it.
    """
    new = [case for verdict in verdicts for suite in verdict.suites for case in suite.cases]
    replayed = [case for verdict in verdicts for case in verdict.history]
    return BookUpdate(
        failed=tuple(
            FailedCase(
                call=case.call,
                answer=case.reference_value,
                key=case.key,
            )
            for case in new
            if _is_failure(case)
        ),
        passed_replays=tuple(case.key or case.call for case in replayed if not case.outcome.failed),
        failed_replays=tuple(case.key or case.call for case in replayed if _is_failure(case)),
        # A duplicate was met under its other spelling, so it lost nothing.
        dropped_replays=tuple(
            dropped.text
            for verdict in verdicts
            for dropped in verdict.dropped_history
            if dropped.reason is not RejectionReason.DUPLICATE
        ),
        passed_new=tuple(case.key or case.call for case in new if not case.outcome.failed),
    )


def _is_failure(case: CaseResult) -> bool:
    # A candidate that does not load never ran: all valid cases would enter the book, and push out the ones that tell
    # candidates apart. The gate of R_T says the same.
    return case.outcome.failed and case.outcome is not CaseOutcome.NOT_LOADED
