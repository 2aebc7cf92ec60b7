"""Mistake Book, what goes in: a question's verdicts say which new cases failed and which replays passed."""

from collections.abc import Sequence

from sandbox import CandidateVerdict, CaseOutcome, CaseResult, Rejection, RejectionReason
from sandbox.text import TOTAL_SPENT

from .mistake_book import BookUpdate, FailedCase


def collect_book_update(verdicts: Sequence[CandidateVerdict]) -> BookUpdate:
    """Collect what a question's candidates failed and passed.

    A failure counts once for each candidate and suite: the judge has already merged equal cases of a suite. Time-outs
    and crashes are failures too, as long as the candidate was asked the call.

    Args:
        verdicts: one for each candidate that the judge answered for. The caller leaves out outages.
    """
    failed: list[FailedCase] = []
    passed_replays: list[str] = []
    dropped_replays: list[str] = []
    for verdict in verdicts:
        for suite in verdict.suites:
            for case in suite.cases:
                if _enters_the_book(case):
                    failed.append(FailedCase(id=case.id, call=case.call, answer=case.reference_value))
        passed_replays += [case.id for case in verdict.history if not case.outcome.failed]
        dropped_replays += [call.text for call in verdict.dropped_history if _has_no_answer(call)]
    return BookUpdate(
        failed=tuple(failed),
        passed_replays=tuple(passed_replays),
        dropped_replays=tuple(dropped_replays),
    )


def _enters_the_book(case: CaseResult) -> bool:
    # A candidate that does not load, or hangs in its first calls, would bring in all valid cases of the question. They
    # would push out the cases that tell candidates apart. R_T is 0 for a candidate that does not load, likewise.
    return case.outcome.failed and case.outcome is not CaseOutcome.NOT_LOADED and not case.is_unasked


def _has_no_answer(call: Rejection) -> bool:
    # A duplicate was judged under its other spelling. A reference that ran out of time may still know the answer.
    return call.reason is not RejectionReason.DUPLICATE and call.detail != TOTAL_SPENT
