"""The configured reward functions on a judged question: what they see, what comes of it, what is refused."""

import pickle
from dataclasses import replace

import pytest

from code_a1_recipe.algorithm.episode_types import CandidateResult, Response, SuiteResult
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.algorithm.rewards import QuestionRewards, RewardChoice, RewardSettings
from code_a1_recipe.errors import CodeA1Error, SettingsError
from reward_fns import code_llm_reward, test_llm_reward as reward_of_suite

QUESTION = Question(id="q", prompt="Add.", reference="def f(x): return x", entry_points=("f",), kind="in_place")

MODULE = """
import json
import sys

from reward_fns import Breakdown

seen = []


def count_code(question, *, step=1.0):
    seen.append(question)
    return [one.verdict and Breakdown(parts={"place": c * step}) for c, one in enumerate(question.candidates)]


def count_suites(question, *, alpha):
    return [
        [one.verdict and Breakdown(parts={"place": s + alpha}) for s, _ in enumerate(one.suite_texts)]
        for one in question.candidates
    ]


def fails(question):
    return 1 / 0


def numbers(question):
    return [1.0 for _ in question.candidates]


def reads(question):
    return json.loads("")


def leaves(question):
    sys.exit(3)


def no_number(question):
    return [Breakdown(parts={"a": 1.0}, terms={"b": "high"}) for _ in question.candidates]


class Fails:
    def __call__(self, question):
        return 1 / 0


an_object = Fails()
"""


def response(text: str) -> Response:
    return Response(prompt_ids=(), token_ids=(), log_probs=(), text=text, policy_version=0)


@pytest.fixture
def own_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MODULE)
    return str(path)


def settings(**changes) -> RewardSettings:
    return RewardSettings(**({"alpha": 0.25, "adversarial": "figure", "nonprintable_penalty": True} | changes))


@pytest.fixture
def candidates(make_suite, make_verdict):
    """Judged, lost to an outage, too long to be shown to the Test LLM, without a program, without suites."""
    verdict = make_verdict(make_suite(2, num_failed=1), make_suite(1), num_history=2)
    suites = tuple(SuiteResult(response=response(text), asserts=("assert f(0) == 1",)) for text in ("a\x00", "b"))
    three = replace(response("p"), token_ids=(7, 8, 9))
    judged = CandidateResult(response=three, source="p", suites=suites, verdict=verdict)
    return [
        judged,
        replace(judged, verdict=None, outage="down"),
        replace(judged, suites=(), is_too_long_to_test=True),
        replace(judged, suites=(), source=None, verdict=make_verdict(loaded=False)),
        replace(judged, suites=()),
    ]


def totals(results):
    return [one.reward and one.reward.total for one in results]


def suite_totals(results):
    return [[suite.reward and suite.reward.total for suite in one.suites] for one in results]


def test_the_papers_rewards_are_the_default_with_the_keys_of_the_configuration(candidates):
    rewarded = QuestionRewards(settings(), num_cases=2).apply(QUESTION, candidates)
    verdict = candidates[0].verdict
    options = {"alpha": 0.25, "adversarial": "figure", "nonprintable_penalty": True}
    assert [suite.reward for suite in rewarded[0].suites] == [
        reward_of_suite(verdict, s, num_cases=2, response_text=text, **options) for s, text in enumerate(["a\x00", "b"])
    ]
    full = code_llm_reward(verdict).total
    assert totals(rewarded) == [full, None, None, 0.0, full]
    assert suite_totals(rewarded)[1:] == [[None, None], [], [], []]


def test_a_function_of_the_users_sees_all_candidates_of_the_question_at_once(candidates, own_file):
    chosen = settings(code=RewardChoice(name="count_code", path=own_file, kwargs={"step": 0.5}))
    rewards = QuestionRewards(chosen, num_cases=2)
    assert totals(rewards.apply(QUESTION, candidates)) == [0.0, None, None, 1.5, 2.0]
    (question,) = rewards._code.func.__globals__["seen"]
    assert (question.question_id, question.num_cases, len(question.candidates)) == ("q", 2, 5)
    assert [one.suite_texts for one in question.candidates] == [("a\x00", "b"), ("a\x00", "b"), (), (), ()]
    assert question.candidates[0].response_tokens == 3
    assert [one.verdict is None for one in question.candidates] == [False, True, True, False, False]
    assert [one.source for one in question.candidates] == ["p", "p", "p", None, "p"]


def test_suites_are_rewarded_by_a_function_of_the_users_with_the_key_alpha(candidates, own_file):
    chosen = settings(test=RewardChoice(name="count_suites", path=own_file))
    rewarded = QuestionRewards(chosen, num_cases=2).apply(QUESTION, candidates)
    assert suite_totals(rewarded) == [[0.25, 1.25], [None, None], [], [], []]
    assert totals(rewarded)[0] == code_llm_reward(candidates[0].verdict).total


def test_by_the_paper_nothing_of_the_users_is_left(own_file):
    mine = RewardChoice(name="fails", path=own_file)
    chosen = settings(code=mine, test=mine, code_tests="pooled")
    assert chosen.by_the_paper() == settings()
    assert {key: str(path) for key, path in chosen.user_files.items()} == {
        "rewards.code.path": own_file,
        "rewards.test.path": own_file,
    }
    assert settings(code=RewardChoice(name="f", path="pkg://mine")).user_files == {}


@pytest.mark.parametrize(
    ("role", "name", "words"),
    [
        ("code", "fails", r"rewards.code: .*mine.py:fails at question 'q': ZeroDivisionError.*mine.py, line 23\)"),
        ("code", "reads", r"at question 'q': JSONDecodeError: .*mine.py, line 31\)"),
        ("code", "leaves", r"at question 'q': SystemExit: 3 \(.*mine.py, line 35\)"),
        ("code", "no_number", r"reward terms must be finite numbers by names, got 'b': 'high' \(.*mine.py, line 39\)"),
        ("code", "an_object", r"at question 'q': ZeroDivisionError.*mine.py, line 44\)"),
        ("code", "numbers", r"rewards.code: .*must reward candidate 0 with a Breakdown or None, got 1.0"),
        ("test", "numbers", r"rewards.test: .*must return a list, one for each of candidate 0's suite_texts, got 1.0"),
    ],
)
def test_a_function_that_fails_or_returns_no_reward_stops_the_run(candidates, own_file, role, name, words):
    rewards = QuestionRewards(settings(**{role: RewardChoice(name=name, path=own_file)}), num_cases=2)
    with pytest.raises(CodeA1Error, match=words) as caught:
        rewards.apply(QUESTION, candidates)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_every_choice_that_cannot_be_used_is_named(own_file):
    assert list(settings().problems()) == []
    missing = settings(
        code=RewardChoice(name="crowd", path=own_file), test=RewardChoice(name="numbers", kwargs={"power": 2})
    )
    code_problem, test_problem = missing.problems()
    assert code_problem.startswith("rewards.code: ")
    assert "mine.py has no function 'crowd'" in code_problem
    assert test_problem.startswith("rewards.test: ")
    assert "'numbers'" in test_problem
    with pytest.raises(SettingsError, match=r"rewards.code: .*mine.py has no function 'crowd'"):
        QuestionRewards(missing, num_cases=2)


def test_a_parameter_with_a_key_of_its_own_is_no_keyword_argument():
    (problem,) = settings(test=RewardChoice(name="nobody", kwargs={"alpha": 0.5, "power": 2})).problems()
    assert problem == (
        "rewards.test.kwargs must not contain ['alpha']; set rewards.alpha instead, got {'alpha': 0.5, 'power': 2}"
    )


@pytest.mark.parametrize(("tests", "given"), [("suites", False), ("pooled", False), ("golden", True), ("hidden", True)])
def test_golden_and_hidden_tests_are_given_by_the_dataset(tests, given):
    assert settings(code_tests=tests).uses_given_tests is given
    assert settings(code_tests="".join(tests)).is_pooled is (tests == "pooled")


def test_pooled_cases_are_rewarded_only_where_the_run_says_so(candidates, make_suite):
    pooled = replace(candidates[0], pooled=make_suite(4, num_failed=3))
    rewards = {}
    for tests in ("suites", "pooled"):
        (rewarded,) = QuestionRewards(settings(code_tests=tests), num_cases=2).apply(QUESTION, [pooled])
        rewards[tests] = rewarded.reward.terms["pass_new"]
    assert rewards == {"suites": 0.75, "pooled": 0.25}


def test_arguments_of_a_registered_reward_are_looked_at_and_a_function_of_the_users_is_not_called(own_file):
    choice = RewardChoice(name="adversary", kwargs={"crowding": -1.0})
    (problem,) = settings(test=choice).problems()
    assert problem.startswith("rewards.test.kwargs: crowding (exponent")
    assert list(settings(code=RewardChoice(name="fails", path=own_file)).problems()) == []
