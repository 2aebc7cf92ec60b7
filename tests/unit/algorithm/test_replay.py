import pytest

from code_a1_recipe.algorithm.mistake_book import BookUpdate, FailedCase, MistakeBook
from code_a1_recipe.algorithm.replay import REPLAY_SAMPLERS, collect_book_update
from sandbox import CandidateVerdict, CaseOutcome, Rejection, RejectionReason, SuiteVerdict


@pytest.fixture
def book():
    """20 cases of one question, f(n) failed n + 1 times."""
    book = MistakeBook()
    for n in range(20):
        book.update("q", BookUpdate(failed=[FailedCase(call=f"f({n})", answer="0")] * (n + 1)))
    return book


def calls(entries):
    return [entry.call for entry in entries]


def test_the_default_sampler_takes_the_most_frequent(book):
    drawn = REPLAY_SAMPLERS["frequency"](book, "q", limit=3, seed=0)
    assert calls(drawn) == ["f(19)", "f(18)", "f(17)"]


def test_the_uniform_sampler_repeats_itself_for_a_seed_and_differs_between_seeds(book):
    sample = REPLAY_SAMPLERS["uniform"]
    assert sample(book, "q", limit=8, seed=1) == sample(book, "q", limit=8, seed=1)
    assert sample(book, "q", limit=8, seed=1) != sample(book, "q", limit=8, seed=2)


def test_the_uniform_sampler_reaches_rare_cases(book):
    sample = REPLAY_SAMPLERS["uniform"]
    assert {call for seed in range(200) for call in calls(sample(book, "q", limit=2, seed=seed))} == {
        f"f({n})" for n in range(20)
    }


def test_the_weighted_sampler_prefers_cases_of_quality_and_reaches_all(book):
    sample = REPLAY_SAMPLERS["weighted"]
    drawn = [call for seed in range(400) for call in calls(sample(book, "q", limit=2, seed=seed))]
    assert set(drawn) == {f"f({n})" for n in range(20)}
    assert drawn.count("f(0)") > 2 * drawn.count("f(19)")  # qualities 8/9 and 0.17
    assert sample(book, "q", limit=8, seed=1) == sample(book, "q", limit=8, seed=1)


def test_the_cells_take_turns_with_their_best():
    book = MistakeBook()
    failed = [("f(1)", 3), ("f(2)", 1), ("f('a')", 2), ("f(3)", 2), ("f('b')", 4), ("f(None)", 9)]
    for call, number in failed:
        book.update("q", BookUpdate(failed=[FailedCase(call=call, answer="0")] * number))
    drawn = REPLAY_SAMPLERS["cells"](book, "q", limit=5, seed=0)
    assert calls(drawn) == ["f(2)", "f('a')", "f(None)", "f(3)", "f('b')"]


@pytest.mark.parametrize("name", sorted(REPLAY_SAMPLERS))
def test_every_sampler_gives_distinct_cases_within_the_limit(book, name):
    sample = REPLAY_SAMPLERS[name]
    for limit in (0, 1, 8, 50):
        drawn = calls(sample(book, "q", limit=limit, seed=3))
        assert len(drawn) == len(set(drawn)) == min(limit, 20)
    assert sample(book, "unknown", limit=8, seed=3) == ()


def test_failures_count_once_for_each_candidate_and_suite(make_suite, make_verdict):
    suite = make_suite(2, num_failed=1)
    book_update = collect_book_update([make_verdict(suite, suite), make_verdict(suite)])
    assert book_update.failed == (FailedCase(call="f(0)", answer="1"),) * 3


def test_passed_replays_count_once_for_each_candidate_and_failed_ones_not_at_all(make_verdict):
    verdict = make_verdict(num_history=3, num_history_failed=1)
    assert collect_book_update([verdict, verdict]).passed_replays == ("f(1)", "f(2)", "f(1)", "f(2)")
    assert collect_book_update([verdict]).failed == ()
    assert collect_book_update([verdict, verdict]).failed_replays == ("f(0)", "f(0)")


def test_passed_new_cases_are_told_for_each_suite(make_suite, make_verdict):
    suite = make_suite(3, num_failed=1)
    assert collect_book_update([make_verdict(suite, suite)]).passed_new == ("f(1)", "f(2)") * 2


def test_a_candidate_that_does_not_load_teaches_nothing(make_suite, make_verdict):
    suite = make_suite(3, num_failed=3, outcome=CaseOutcome.NOT_LOADED)
    book_update = collect_book_update([make_verdict(suite, loaded=False)])
    assert (book_update.failed, book_update.passed_replays) == ((), ())
    assert (book_update.failed_replays, book_update.passed_new) == ((), ())


def test_every_other_failure_is_stored_with_the_references_answer(make_case, make_verdict):
    kinds = [kind for kind in CaseOutcome if kind not in (CaseOutcome.PASSED, CaseOutcome.NOT_LOADED)]
    cases = tuple(
        make_case(call=kind.value, reference_value="1", expected="2", expected_correct=False, outcome=kind)
        for kind in kinds
    )
    book_update = collect_book_update([make_verdict(SuiteVerdict(cases=cases, rejections=()))])
    assert book_update.failed == tuple(FailedCase(call=kind.value, answer="1", outcome=kind) for kind in kinds)
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
    assert collect_book_update([verdict(slow, again), verdict(slow)]).dropped_replays == ("f(1)", "f(1)")
