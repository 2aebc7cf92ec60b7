"""Rewards with free weights: by hand (``AdversarialReward``) and as the functions that a run uses."""

import doctest
import math

import pytest
from hypothesis import given, strategies as st

from reward_fns import (
    AdversarialReward,
    JudgedCandidate,
    QuestionVerdicts,
    find_reward,
    test_llm_reward as paper_reward,
    verl_entry,
    weighted_reward,
)
from sandbox import Judge, JudgeRequest, LocalRunner, SandboxUnavailableError

RIGHT = "def double(x): return 2 * x"
WRONG = "def double(x): return abs(2 * x)"
BROKEN = "def double("
TEST = "assert double(1) == 2"
SUITES = {
    "valid, breaks": ("assert double(3) == 6", "assert double(-1) == -2"),
    "valid, breaks nothing": ("assert double(3) == 6", "assert double(0) == 0"),
    "one is wrong": ("assert double(3) == 7", "assert double(-1) == -2"),
    "nothing valid": ("assert double() == 1", "double(2)"),
}


@pytest.fixture(scope="module")
def verdicts():
    """By program, with all suites in their order."""
    with LocalRunner(num_workers=2) as runner:
        judge = Judge(runner)
        suites = tuple(SUITES.values())
        return {
            program: judge.judge(JudgeRequest(question_id="double", reference=RIGHT, candidate=program, suites=suites))
            for program in (RIGHT, WRONG, BROKEN)
        }


def question(verdicts, *programs):
    """A question of these programs; None stands for one that met an outage."""
    candidates = tuple(
        JudgedCandidate(source=one, verdict=verdicts[one] if one else None, suite_texts=("",) * len(SUITES))
        for one in programs
    )
    return QuestionVerdicts(question_id="double", num_cases=2, candidates=candidates)


def rewards(verdicts, program, **weights):
    [row] = find_reward("test", "weighted", kwargs=weights)(question(verdicts, program))
    return dict(zip(SUITES, (one.total for one in row), strict=True))


def test_the_docstring_is_true():
    assert doctest.testmod(weighted_reward).failed == 0


def test_validity_and_difficulty_are_weighted_and_an_invalid_suite_costs(verdicts):
    assert rewards(verdicts, WRONG) == pytest.approx(
        {
            "valid, breaks": 0.6 + 0.4 * 0.5,
            "valid, breaks nothing": 0.6,
            "one is wrong": 0.6 * 0.5 + 0.4 * 0.5,
            "nothing valid": -0.5,
        }
    )


def test_a_program_that_does_not_load_teaches_nothing_but_what_is_invalid(verdicts):
    found = rewards(verdicts, BROKEN)
    assert found.pop("nothing valid") == -0.5
    assert set(found.values()) == {0.0}


def test_no_program_costs_what_invalid_code_says(verdicts):
    function = find_reward("code", "weighted", kwargs={"invalid_code": -2.0})
    right, wrong, broken, outage = function(question(verdicts, RIGHT, WRONG, BROKEN, None))
    assert (right.total, broken.total, outage) == (0.75, -2.0, None)  # the invalid suite counts 0, as in the release
    assert 0.0 < wrong.total < right.total
    assert broken.parts == {"invalid": -2.0}


def test_an_outage_has_no_reward(verdicts):
    assert find_reward("test", "weighted")(question(verdicts, None)) == [[None] * len(SUITES)]


@given(alpha=st.floats(0, 1), reading=st.sampled_from(["release", "figure"]))
def test_with_the_papers_weights_it_is_the_papers_reward(verdicts, alpha, reading):
    weights = {"validity_weight": alpha, "difficulty_weight": 1 - alpha, "invalid_test": 0.0, "adversarial": reading}
    for program, verdict in verdicts.items():
        for s, total in enumerate(rewards(verdicts, program, **weights).values()):
            paper = paper_reward(verdict, s, num_cases=2, alpha=alpha, adversarial=reading).total
            assert total == pytest.approx(paper)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"validity_weight": -0.1}, "at least 0.*validity_weight.*-0.1"),
        ({"difficulty_weight": math.inf}, "difficulty_weight must be a finite number, got inf"),
        ({"invalid_code": math.nan}, "invalid_code must be a finite number, got nan"),
        ({"invalid_code": -math.inf}, "invalid_code must be a finite number, got -inf"),
        ({"invalid_code": -1e30}, "invalid_code must be a finite number"),
        ({"invalid_test": 1e30}, "invalid_test must be a finite number"),
        ({"invalid_test": "much"}, "invalid_test must be a finite number, got 'much'"),
        ({"validity_weight": 10**400}, "validity_weight must be a finite number"),
        ({"validity_weight": True}, "validity_weight must be a finite number, got True"),
        ({"sandbox": 5}, "sandbox must hold arguments of sandbox.LocalRunner, got 5"),
        ({"adversarial": "own"}, "unknown reading of the adversarial reward 'own'; known: figure, release"),
    ],
)
def test_values_out_of_range_are_refused_at_once(values, message):
    with pytest.raises(ValueError, match=message):
        AdversarialReward(**values)


def test_scores_by_hand_take_texts_lists_and_responses():
    reward = AdversarialReward(invalid_code=-3.0)
    tests = list(SUITES["valid, breaks"])
    fenced = f"Here:\n```python\n{WRONG}\n```\n"
    programs = (RIGHT, fenced, "sorry")
    assert [float(reward.score_code(one, tests, reference=RIGHT)) for one in programs] == [1, 0.5, -3]
    assert reward.score_code(WRONG, "\n".join(tests), reference=RIGHT).total == 0.5
    suites = (tests, tests[1:], "\n".join(tests), "no test here", [])
    found = [float(reward.score_test(suite, WRONG, RIGHT)) for suite in suites]
    assert found == pytest.approx([0.8, 1.0, 0.8, -0.5, -0.5])


@pytest.mark.parametrize(
    ("tests", "reference", "got"),
    [
        ("", RIGHT, "0, none valid: no assert was found"),
        ([], RIGHT, "0, none valid: no assert was found"),
        ([""], RIGHT, "1, none valid: "),
        ("no asserts here", RIGHT, "0, none valid: no assert was found"),
        (["assert double() == 1"], RIGHT, "1, none valid: reference_raised: "),
        (["assert double() == 1", ""], RIGHT, "2, none valid: unparsable: "),
        (TEST, "import nope", "1, none valid: "),
        (TEST, "def other(): pass", "1, none valid: "),
        (TEST, "", "1, none valid: "),
    ],
)
def test_a_program_without_a_valid_test_has_no_score(tests, reference, got):
    with pytest.raises(ValueError, match=f"tests must hold at least one valid test to score a program, got {got}"):
        AdversarialReward().score_code(RIGHT, tests, reference=reference)


@pytest.mark.parametrize(("test", "code"), [(TEST, None), (TEST, b"x"), (None, RIGHT), ({TEST}, RIGHT)])
def test_arguments_of_other_types_are_refused(test, code):
    with pytest.raises(ValueError, match="must be texts"):
        AdversarialReward().score_test(test, code, RIGHT)


def test_a_reference_that_is_no_program_is_refused():
    with pytest.raises(ValueError, match="'reference' is not Python 3"):
        AdversarialReward().score_code(RIGHT, TEST, reference="def")


def test_a_run_takes_the_reward_by_the_keys_of_its_settings():
    reward = AdversarialReward(validity_weight=0.7, difficulty_weight=0.2, invalid_code=-2.0, invalid_test=-0.1)
    test_kwargs = {"validity_weight": 0.7, "difficulty_weight": 0.2, "invalid_test": -0.1}
    assert reward.settings() == {
        "rewards.code": {"name": "weighted", "path": None, "kwargs": {"invalid_code": -2.0}},
        "rewards.test": {"name": "weighted", "path": None, "kwargs": test_kwargs},
        "rewards.adversarial": "release",
    }


def test_an_outage_is_no_score(monkeypatch):
    class Down:
        def judge(self, request, options):
            raise SandboxUnavailableError("down")

    monkeypatch.setattr(verl_entry, "_SHARED", Down())
    with pytest.raises(SandboxUnavailableError):
        AdversarialReward().score_test(TEST, WRONG, RIGHT)
