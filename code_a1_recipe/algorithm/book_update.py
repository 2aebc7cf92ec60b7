"""Mistake Book: collects the input of an update, which is a question's failed new cases and its passed replays."""

from collections.abc import Sequence

from sandbox import CandidateVerdict, CaseOutcome, CaseResult, Rejection, RejectionReason
from sandbox.text import TOTAL_SPENT

from .mistake_book import BookUpdate, FailedCase


def collect_book_update(verdicts: Sequence[CandidateVerdict]) -> BookUpdate:
    """Collect the cases that a question's candidates failed, and the replays that they passed.

    If several candidates fail a case, or if a case fails in several suites, each failure counts. Cases of one suite
    that show the same mistake count once. Time-outs and crashes are failures too, if the program was really called.

    Args:
        verdicts: one verdict for each candidate that met no outage.
    """
    failed: list[FailedCase] = []
    passed_replays: list[str] = []
    dropped_replays: list[str] = []
    for verdict in verdicts:
        for suite in verdict.suites:
            entering: dict[str, CaseResult] = {}
            for case in filter(_enters_the_book, suite.cases):
                entering.setdefault(case.id, case)
            failed += map(_failed_case, entering.values())
        passed_replays += [case.call for case in verdict.history if not case.outcome.failed]
        dropped_replays += [call.text for call in verdict.dropped_history if _has_no_answer(call)]
    return BookUpdate(
        failed=tuple(failed),
        passed_replays=tuple(passed_replays),
        dropped_replays=tuple(dropped_replays),
    )


def _failed_case(case: CaseResult) -> FailedCase:
    return FailedCase(
        id=case.id,
        call=case.call,
        answer=case.reference_value,
    )


def _enters_the_book(case: CaseResult) -> bool:
    # A program that does not load fails every case, and most calls of a program that hangs are skipped. In the book,
    # cases of programs that do not load or that hang would push out the cases that tell programs apart.
    if case.outcome is CaseOutcome.NOT_LOADED or case.is_unasked:
        return False
    return case.outcome.failed


def _has_no_answer(call: Rejection) -> bool:
    """Return True if the judge dropped a replay because the reference no longer answers its call."""
    # A duplicate of a replay was judged under another spelling. If the reference's total time ran out, the reference
    # may still be able to answer the call.
    return call.reason is not RejectionReason.DUPLICATE and call.detail != TOTAL_SPENT
