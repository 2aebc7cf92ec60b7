import pytest

from reward_fns import JudgedCandidate, QuestionVerdicts, code_llm_reward, find_reward
from sandbox import CaseOutcome

HISTORY = {"num_history": 4, "num_history_failed": 1}
TOTALS = {
    "the mean pass rate of the suites": (
        [{"num_valid": 4, "num_failed": 1}, {"num_valid": 2, "num_failed": 1}],
        {},
        0.625,
    ),
    "a suite without case counts zero": ([{"num_valid": 2}, {}], {}, 0.5),
    "a suite without case leaves the history alone": ([{}], HISTORY, 0.75),
    # (1/2 + 1) / 2 for the full suite, 1/2 for the empty one, mean 0.625.
    "a full and an empty suite are averaged by suite": (
        [{"num_valid": 3}, {}],
        {"num_history": 2, "num_history_failed": 1},
        0.625,
    ),
    "history alone where no suite was judged": ([], HISTORY, 0.75),
    "a candidate that does not load earns nothing": (
        [{"num_valid": 3, "num_failed": 3, "outcome": CaseOutcome.NOT_LOADED}],
        {"loaded": False},
        0.0,
    ),
    "a wrong expected output does not hurt": ([{"num_valid": 4, "num_expected_incorrect": 4}], {}, 1.0),
}


@pytest.mark.parametrize(("suites", "history", "total"), TOTALS.values(), ids=TOTALS)
def test_the_reward_is_made_of_suites_and_history(make_suite, make_verdict, suites, history, total):
    assert code_llm_reward(make_verdict(*(make_suite(**numbers) for numbers in suites), **history)).total == total


def test_with_history_the_reward_is_half_history_and_half_new(make_suite, make_verdict):
    verdict = make_verdict(make_suite(4), num_history=4, num_history_failed=1)
    reward = code_llm_reward(verdict)
    assert reward.parts == {"history": 0.375, "new": 0.5}
    assert reward.total == 0.875


def test_suites_without_case_may_be_left_out(make_suite, make_verdict):
    verdicts = make_verdict(make_suite(2), make_suite(0)), make_verdict(make_suite(0)), None
    programs = tuple(JudgedCandidate(source="", verdict=one, suite_texts=()) for one in verdicts)
    question = QuestionVerdicts(question_id="q", num_cases=2, candidates=programs)
    rewards = find_reward("code", "pass_rate", kwargs={"skip_empty_suites": True})(question)
    assert [one and one.total for one in rewards] == [1.0, 0.0, None]


def test_a_verdict_without_suites_and_history_earns_nothing(make_verdict):
    reward = code_llm_reward(make_verdict())
    assert reward.total == 0.0
    assert reward.terms == {"loaded": 1.0} | dict.fromkeys(
        ("pass_hist", "pass_new", "num_history", "num_suites", "num_suites_without_case"), 0.0
    )


def test_every_kind_of_failure_costs_the_same(make_suite, make_verdict):
    kinds = [kind for kind in CaseOutcome if kind is not CaseOutcome.PASSED]
    totals = {code_llm_reward(make_verdict(make_suite(4, num_failed=1, outcome=kind))).total for kind in kinds}
    assert totals == {0.75}


def test_terms_show_what_the_reward_was_made_of(make_suite, make_verdict):
    verdict = make_verdict(make_suite(4, num_failed=1), make_suite(0), num_history=2)
    assert code_llm_reward(verdict).terms == {
        "loaded": 1.0,
        "pass_hist": 1.0,
        "pass_new": 0.375,
        "num_history": 2.0,
        "num_suites": 2.0,
        "num_suites_without_case": 1.0,
    }
