"""Laws of the rewards that pay for what a question's suites find together, for any judged question."""

import math
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, strategies as st

from reward_fns import JudgedCandidate, QuestionVerdicts, find_test_reward, reward_suites, test_reward as paper_reward
from reward_fns.adversary_reward import FITNESS, adversary_rewards
from sandbox import CandidateVerdict, CaseOutcome, CaseResult, Rejection, RejectionReason, SuiteVerdict

CALLS = ("f(0)", "f(1)", "f(2)", "f(3)", "f(4)")
REJECTED = Rejection(text="assert True", reason=RejectionReason.NO_CALL)
weights = st.floats(min_value=0.0, max_value=0.5)
exponents = st.floats(min_value=0.0, max_value=3.0)


def case(call, *, failed, right):
    outcome = CaseOutcome.WRONG_VALUE if failed else CaseOutcome.PASSED
    return CaseResult(call=call, reference_value="1", expected="1", expected_correct=right, outcome=outcome)


@st.composite
def questions(draw, max_history=2):
    """Candidates that fail some of five calls, each with as many suites of distinct calls, and all on the pool."""
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
            history=history[:max_history],
            dropped_history=(),
            cpu_seconds=0.0,
            wall_seconds=0.0,
        )
        pool = SuiteVerdict(cases=tuple(case(c, failed=c in broken, right=True) for c in CALLS), rejections=())
        texts = ("",) * num_suites
        candidates.append(JudgedCandidate(source="", verdict=verdict, suite_texts=texts, pooled=pool))
    return QuestionVerdicts(question_id="q", num_cases=draw(st.integers(1, 4)), candidates=tuple(candidates))


@given(
    question=questions(), fitness=st.sampled_from(sorted(FITNESS)), crowding=exponents, alpha=weights, claims=weights,
    gated=st.booleans(), scope=st.sampled_from(["candidate", "question"]), set_size=st.integers(1, 9),
)  # fmt: skip
def test_a_reward_is_a_share_and_the_sum_of_its_parts(question, **arguments):
    function = find_test_reward("adversary", kwargs=arguments)
    for reward in (one for row in reward_suites(function, question) for one in row):
        assert 0.0 <= reward.total <= 1.0
        assert abs(reward.total - sum(reward.parts.values())) < 1e-6
        assert all(0.0 <= value <= 1.0 for value in reward.terms.values())


@given(question=questions(), alpha=weights, reading=st.sampled_from(["release", "figure"]))
def test_without_crowding_and_gate_the_papers_fitness_is_the_papers_reward(question, alpha, reading):
    rows = adversary_rewards(
        question, fitness="paper", crowding=0.0, gated=False, alpha=alpha, adversarial=reading, claims=0.0
    )
    for candidate, row in zip(question.candidates, rows, strict=True):
        for s, reward in enumerate(row):
            paper = paper_reward(candidate.verdict, s, num_cases=question.num_cases, alpha=alpha, adversarial=reading)
            assert reward.total == pytest.approx(paper.total)


@given(question=questions())
def test_with_full_crowding_kills_of_a_candidate_sum_to_its_distinct_failed_calls(question):
    """Efficiency of Shapley values: they sum to the worth of the game, and equal suites earn the same."""
    rows = adversary_rewards(question, fitness="kills", crowding=1.0)
    number = question.num_cases
    for candidate, row in zip(question.candidates, rows, strict=True):
        cut = [suite.cases[:number] for suite in candidate.verdict.suites]
        worth = {one.call for cases in cut for one in cases if one.outcome.failed}
        assert math.fsum(reward.terms["adv"] for reward in row) * number == pytest.approx(len(worth))
        earned = {tuple(one.call for one in cases): reward.terms["adv"] for cases, reward in zip(cut, row, strict=True)}
        for cases, reward in zip(cut, row, strict=True):
            assert earned[tuple(one.call for one in cases)] == reward.terms["adv"]


@given(question=questions(), size=st.integers(1, 4))
def test_a_suite_of_a_set_earns_what_the_sets_that_hold_it_do(question, size):
    rows = adversary_rewards(question, fitness="set", set_size=size)
    for candidate, row in zip(question.candidates, rows, strict=True):
        cases = [suite.cases[: question.num_cases] for suite in candidate.verdict.suites]
        breaks = [any(one.outcome.failed for one in suite) for suite in cases]
        for s, reward in enumerate(row):
            sets = [chosen for chosen in combinations(range(len(breaks)), min(size, len(breaks))) if s in chosen]
            expected = sum(any(breaks[member] for member in chosen) for chosen in sets) / len(sets)
            assert reward.terms["adv"] == pytest.approx(expected)


@given(question=questions())
def test_shares_of_a_broken_candidate_sum_to_at_most_one_each(question):
    rows = adversary_rewards(question, fitness="sharing")
    broken = sum(one.verdict.loaded and any(c.outcome.failed for c in one.pooled.cases) for one in question.candidates)
    assert math.fsum(reward.terms["adv"] for row in rows for reward in row) <= broken + 1e-9


@given(question=questions(), crowding=exponents)
def test_a_call_that_all_or_no_candidates_fail_teaches_nothing(question, crowding):
    rows = adversary_rewards(question, fitness="learnability", crowding=crowding)
    failed = [
        {one.call for one in candidate.pooled.cases if one.outcome.failed}
        for candidate in question.candidates
        if candidate.verdict.loaded
    ]
    for candidate, row in zip(question.candidates, rows, strict=True):
        for suite, reward in zip(candidate.verdict.suites, row, strict=True):
            calls = [one.call for one in suite.cases[: question.num_cases]]
            split = [call for call in calls if 0 < sum(call in keys for keys in failed) < len(failed)]
            assert (reward.terms["adv"] > 0.0) is bool(split)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"fitness": "kils"}, "unknown fitness 'kils'; known: kills, learnability, paper, set, sharing"),
        ({"scope": "all"}, "unknown scope of crowding 'all'; known: candidate, question"),
        ({"crowding": -1.0}, "crowding .* must be at least 0, got -1.0"),
        ({"alpha": 0.7, "claims": 0.5}, "at most 1 together, got 0.7 and 0.5"),
        ({"set_size": 0}, "set_size .* must be at least 1, got 0"),
        ({"adversarial": "papers"}, "unknown reading"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, rule):
    question = QuestionVerdicts(question_id="q", num_cases=1, candidates=())
    with pytest.raises(ValueError, match=rule):
        adversary_rewards(question, **arguments)


@given(question=questions(), novelty=exponents)
def test_novelty_lowers_what_was_asked_before_and_nothing_else(question, novelty):
    plain = adversary_rewards(question, gated=False)
    known = adversary_rewards(replace(question, asked=dict.fromkeys(CALLS, 3)), gated=False, novelty=novelty)
    unknown = adversary_rewards(replace(question, asked={"f(9)": 3}), gated=False, novelty=novelty)
    for before, after in zip(plain, known, strict=True):
        adv = [one.terms["adv"] * 4.0**-novelty for one in before]
        assert [one.terms["adv"] for one in after] == pytest.approx(adv)
    assert [[one.total for one in row] for row in unknown] == [[one.total for one in row] for row in plain]
