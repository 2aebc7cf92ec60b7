"""Laws of the rewards that pay for what a question's suites find together, for any judged question."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from reward_fns import (
    JudgedCandidate,
    QuestionVerdicts,
    find_reward,
    reward_suites,
    test_llm_reward as paper_reward,
)
from reward_fns.adversary_reward import adversary_rewards
from sandbox import CandidateVerdict, CaseOutcome, CaseResult, Rejection, RejectionReason, SuiteVerdict

CALLS = ("f(0)", "f(1)", "f(2)", "f(3)", "f(4)")
REJECTED = Rejection(text="assert True", reason=RejectionReason.NO_CALL)
weights = st.floats(min_value=0.0, max_value=0.5)
exponents = st.floats(min_value=0.0, max_value=3.0)


def case(call, *, failed, right):
    outcome = CaseOutcome.WRONG_VALUE if failed else CaseOutcome.PASSED
    return CaseResult(call=call, reference_value="1", expected="1", expected_correct=right, outcome=outcome)


@st.composite
def questions(draw):
    """Candidates that fail some of five calls, each with as many suites of distinct calls."""
    num_suites = draw(st.integers(min_value=1, max_value=4))
    candidates = []
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        broken = draw(st.sets(st.sampled_from(CALLS)))
        suites = []
        for _ in range(num_suites):
            calls = draw(st.lists(st.sampled_from(CALLS), unique=True, max_size=4))
            cases = tuple(case(call, failed=call in broken, right=draw(st.booleans())) for call in calls)
            suites.append(SuiteVerdict(cases=cases, rejections=(REJECTED,) * draw(st.integers(0, 2))))
        history = tuple(case(call, failed=call in broken, right=True) for call in CALLS[: draw(st.integers(0, 2))])
        verdict = CandidateVerdict(
            loaded=draw(st.booleans()),
            load_error="",
            suites=tuple(suites),
            history=history,
            dropped_history=(),
            cpu_seconds=0.0,
            wall_seconds=0.0,
        )
        candidates.append(JudgedCandidate(source="", verdict=verdict, suite_texts=("",) * num_suites))
    return QuestionVerdicts(question_id="q", num_cases=draw(st.integers(1, 4)), candidates=tuple(candidates))


@given(question=questions(), crowding=exponents, alpha=weights)
def test_a_reward_is_a_share_and_the_sum_of_its_parts(question, **arguments):
    function = find_reward("test", "adversary", kwargs=arguments)
    for reward in (one for row in reward_suites(function, question) for one in row):
        assert 0.0 <= reward.total <= 1.0
        assert abs(reward.total - sum(reward.parts.values())) < 1e-6
        assert all(0.0 <= value <= 1.0 for value in reward.terms.values())


@given(question=questions(), alpha=weights)
def test_without_crowding_and_history_a_full_suite_earns_the_papers_reward(question, alpha):
    rows = adversary_rewards(question, crowding=0.0, alpha=alpha)
    for candidate, row in zip(question.candidates, rows, strict=True):
        verdict = replace(candidate.verdict, history=())
        for s, reward in enumerate(row):
            paper = paper_reward(verdict, s, num_cases=question.num_cases, alpha=alpha)
            assert reward.total == pytest.approx(reward.terms["usable"] * paper.total)


@given(question=questions())
def test_with_full_crowding_kills_of_a_candidate_sum_to_its_distinct_failed_calls(question):
    """Efficiency of Shapley values: they sum to the worth of the game, and equal suites earn the same."""
    rows = adversary_rewards(question, crowding=1.0)
    number = question.num_cases
    for candidate, row in zip(question.candidates, rows, strict=True):
        cut = [suite.cases[:number] for suite in candidate.verdict.suites]
        worth = {one.call for cases in cut for one in cases if one.outcome.failed}
        assert math.fsum(reward.terms["adv"] for reward in row) * number == pytest.approx(len(worth))
        earned = {tuple(one.call for one in cases): reward.terms["adv"] for cases, reward in zip(cut, row, strict=True)}
        for cases, reward in zip(cut, row, strict=True):
            assert earned[tuple(one.call for one in cases)] == reward.terms["adv"]


@given(question=questions())
def test_a_suite_that_no_test_llm_wrote_gets_no_reward(question):
    given_tests = [replace(candidate, suite_texts=()) for candidate in question.candidates]
    rows = reward_suites(find_reward("test", "adversary"), replace(question, candidates=tuple(given_tests)))
    assert [list(row) for row in rows] == [[]] * len(given_tests)


@given(question=questions())
def test_an_outage_earns_no_reward(question):
    lost = [replace(candidate, verdict=None) for candidate in question.candidates]
    rows = adversary_rewards(replace(question, candidates=tuple(lost)), alpha=1.0)
    assert rows == [[None] * len(candidate.suite_texts) for candidate in lost]


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"crowding": -1.0}, "crowding .* must be finite and >= 0, got -1.0"),
        ({"crowding": math.inf}, "crowding .* must be finite and >= 0, got inf"),
        ({"alpha": -0.5}, r"alpha .* must be in \[0, 1\], got -0.5"),
        ({"alpha": 1.5}, r"alpha .* must be in \[0, 1\], got 1.5"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, rule):
    question = QuestionVerdicts(question_id="q", num_cases=1, candidates=())
    with pytest.raises(ValueError, match=rule):
        adversary_rewards(question, **arguments)
