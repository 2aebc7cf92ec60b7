from dataclasses import replace

import pytest

from code_a1_recipe.algorithm.book_update import collect_book_update
from code_a1_recipe.algorithm.mistake_book import FailedCase
from sandbox import CandidateVerdict, CaseOutcome, Rejection, RejectionReason, SuiteVerdict
from sandbox.text import HANGS_THROUGHOUT, TOTAL_SPENT


def test_failures_count_once_for_each_candidate_and_suite(make_suite, make_verdict):
    suite = make_suite(2, num_failed=1)
    book_update = collect_book_update([make_verdict(suite, suite), make_verdict(suite)])
    assert book_update.failed == (FailedCase(id="f(0)", call="f(0)", answer="1"),) * 3


def test_passed_replays_count_once_for_each_candidate_and_failed_ones_not_at_all(make_verdict):
    verdict = make_verdict(num_history=3, num_history_failed=1)
    assert collect_book_update([verdict, verdict]).passed_replays == ("f(1)", "f(2)", "f(1)", "f(2)")
    assert collect_book_update([verdict]).failed == ()


def test_a_candidate_that_does_not_load_teaches_nothing(make_suite, make_verdict):
    suite = make_suite(3, num_failed=3, outcome=CaseOutcome.NOT_LOADED)
    book_update = collect_book_update([make_verdict(suite, loaded=False)])
    assert (book_update.failed, book_update.passed_replays) == ((), ())


@pytest.mark.parametrize("detail", [TOTAL_SPENT, HANGS_THROUGHOUT])
def test_a_call_that_a_candidate_was_not_asked_teaches_nothing(make_suite, make_verdict, detail):
    suite = make_suite(3, num_failed=3, outcome=CaseOutcome.TIMED_OUT)
    asked, *unasked = suite.cases
    suite = replace(suite, cases=(asked, *[replace(case, detail=detail) for case in unasked]))
    assert [case.id for case in collect_book_update([make_verdict(suite)]).failed] == [asked.id]


def test_every_other_failure_is_stored_with_the_references_answer(make_case, make_verdict):
    kinds = [kind for kind in CaseOutcome if kind not in (CaseOutcome.PASSED, CaseOutcome.NOT_LOADED)]
    cases = tuple(
        make_case(call=kind.value, reference_value="1", expected="2", expected_correct=False, outcome=kind)
        for kind in kinds
    )
    book_update = collect_book_update([make_verdict(SuiteVerdict(cases=cases, rejections=()))])
    assert book_update.failed == tuple(FailedCase(id=kind.value, call=kind.value, answer="1") for kind in kinds)
    assert len(kinds) == 6


def test_a_replay_that_the_reference_has_no_answer_to_is_dropped_and_a_repeated_one_is_not():
    def verdict(*dropped):
        return CandidateVerdict(
            loaded=True,
            load_error="",
            suites=(),
            history=(),
            dropped_history=dropped,
            cpu_seconds=0.0,
            wall_seconds=0.0,
        )

    slow = Rejection(text="f(1)", reason=RejectionReason.REFERENCE_TIMED_OUT, detail="")
    again = Rejection(text="f(n=2)", reason=RejectionReason.DUPLICATE, detail="f(2)")
    # Of another process, so that the text is equal and not the same object.
    unasked = Rejection(text="f(3)", reason=RejectionReason.REFERENCE_TIMED_OUT, detail="".join(list(TOTAL_SPENT)))
    gone = [
        Rejection(text="f(4)", reason=reason, detail="z") for reason in (min(RejectionReason), max(RejectionReason))
    ]
    dropped = collect_book_update([verdict(slow, again, unasked, *gone), verdict(slow)]).dropped_replays
    assert dropped == ("f(1)", "f(4)", "f(4)", "f(1)")
