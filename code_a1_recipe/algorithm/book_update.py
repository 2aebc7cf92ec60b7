"""Mistake Book, input of its update: a question's new cases that failed, and its replays that passed."""

from collections.abc import Sequence

from sandbox import CandidateVerdict, CaseOutcome, CaseResult, Rejection, RejectionReason
from sandbox.text import TOTAL_SPENT

from .mistake_book import BookUpdate, FailedCase


def collect_book_update(verdicts: Sequence[CandidateVerdict]) -> BookUpdate:
    """Collect the cases that a question's candidates failed, and the replays that they passed.

    A case that several candidates or suites show as failed is counted for each of them. Equal cases of one suite count
    once, because the judge has merged them. Time-outs and crashes are failures too, if the program was really called.

    Args:
        verdicts: one for each candidate, without the candidates that met an outage.
    """
    failed: list[FailedCase] = []
    passed_replays: list[str] = []
    dropped_replays: list[str] = []
    for verdict in verdicts:
        for suite in verdict.suites:
            failed += [_failed_case(case) for case in suite.cases if _enters_the_book(case)]
        passed_replays += [case.id for case in verdict.history if not case.outcome.failed]
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
    # these cases would push out the cases that tell programs apart.
    if case.outcome is CaseOutcome.NOT_LOADED or case.is_unasked:
        return False
    return case.outcome.failed


def _has_no_answer(call: Rejection) -> bool:
    """The reference no longer answers the call of a replay that the judge dropped."""
    # A duplicate was judged under its other spelling. A reference whose total time is spent may still know the answer.
    return call.reason is not RejectionReason.DUPLICATE and call.detail != TOTAL_SPENT
