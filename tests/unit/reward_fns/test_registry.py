"""Reward functions by name and by path: found, bound to their arguments, called, and what they return checked."""

import runpy
import sys
import types
from pathlib import Path

import pytest

import reward_fns
from reward_fns import (
    Breakdown,
    JudgedCandidate,
    QuestionVerdicts,
    code_llm_reward,
    find_reward,
    reward_code,
    reward_file,
    reward_suites,
    test_llm_reward as reward_of_suite,
)


@pytest.fixture
def question(make_suite, make_verdict):
    """Two candidates with two suites each, and one that met an outage."""
    verdicts = [
        make_verdict(make_suite(2, num_failed=1), make_suite(1), num_history=2, num_history_failed=1),
        make_verdict(make_suite(2, num_failed=2), make_suite(0)),
    ]
    judged = [JudgedCandidate(source="def f(x): ...", verdict=one, suite_texts=("a\x00", "b")) for one in verdicts]
    lost = JudgedCandidate(source="def f(x): ...", verdict=None, suite_texts=("c", "d"))
    return QuestionVerdicts(question_id="q", num_cases=2, candidates=(*judged, lost))


def test_an_unknown_reward_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"^unknown code reward 'pass'; known: pass_rate, weighted$"):
        find_reward("code", "pass")
    with pytest.raises(ValueError, match=r"known: adversary, valid_and_adversarial, weighted$"):
        find_reward("test", "valid")


def test_the_papers_code_reward_is_r_c_of_each_candidate(question):
    first, second, lost = reward_code(find_reward("code", "pass_rate"), question)
    assert (first, second) == tuple(code_llm_reward(one.verdict) for one in question.candidates[:2])
    assert lost is None


def test_the_papers_code_reward_takes_the_pooled_cases_where_there_are_some(question, make_suite):
    from dataclasses import replace

    pooled = replace(question.candidates[0], pooled=make_suite(4, num_failed=4))
    (reward,) = reward_code(find_reward("code", "pass_rate"), replace(question, candidates=(pooled,)))
    assert (reward.terms["num_suites"], reward.terms["pass_new"], reward.total) == (1.0, 0.0, 0.25)


def test_the_papers_test_reward_is_r_t_of_each_suite_with_its_arguments(question):
    options = {"alpha": 0.25, "adversarial": "figure", "nonprintable_penalty": True}
    found = reward_suites(find_reward("test", "valid_and_adversarial", defaults=options), question)
    for candidate, rewards in zip(question.candidates[:2], found[:2], strict=True):
        texts = enumerate(candidate.suite_texts)
        expected = [
            reward_of_suite(candidate.verdict, s, num_cases=2, response_text=text, **options) for s, text in texts
        ]
        assert list(rewards) == expected
    assert found[2] == (None, None)
    assert found[0][0].parts["nonprintable"] == -0.5


MODULE = """
from dataclasses import dataclass

from reward_fns import Breakdown


@dataclass
class Weights:
    value: "float"


def constant(question, *, value=0.5, alpha=None):
    worth = Weights(value) if alpha is None else Weights(alpha)
    return [None if one.verdict is None else Breakdown(parts={"mine": worth.value}) for one in question.candidates]


def needs_two(question, other):
    return []


ten = 10
"""


@pytest.fixture
def own_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MODULE)
    return str(path)


def totals(function, question):
    return [None if one is None else one.total for one in reward_code(function, question)]


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_function_of_the_users_is_found_by_file_and_name(own_file, question, prefix):
    path = prefix + own_file
    assert totals(find_reward("code", "constant", path=path), question) == [0.5, 0.5, None]
    assert totals(find_reward("code", "constant", path=path, kwargs={"value": 0.25}), question) == [0.25, 0.25, None]
    assert str(reward_file(path)) == own_file


def test_a_function_of_the_users_is_found_in_a_package(question, tmp_path, monkeypatch):
    (tmp_path / "my_rewards").mkdir()
    (tmp_path / "my_rewards" / "one.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    for path in ("pkg://my_rewards.one", "pkg://my_rewards/one"):
        assert totals(find_reward("code", "constant", path=path), question) == [0.5, 0.5, None]
        assert reward_file(path) is None


def test_a_file_that_changed_is_loaded_again(own_file, question):
    find_reward("code", "constant", path=own_file)
    with open(own_file, "w") as file:
        file.write(MODULE.replace("value=0.5", "value=0.75"))
    assert totals(find_reward("code", "constant", path=own_file), question) == [0.75, 0.75, None]


def test_the_papers_parameters_go_to_a_function_that_has_them(own_file, question):
    options = {"alpha": 0.25, "adversarial": "figure"}
    found = find_reward("test", "constant", path=own_file, defaults=options)(question)
    assert found[0].total == 0.25


@pytest.mark.parametrize(
    ("name", "content", "kwargs", "words"),
    [
        ("constant", None, {}, r"mine.py cannot be loaded: FileNotFoundError.*give pkg://package.module"),
        ("constant", "import nothing_like_it", {}, r"mine.py cannot be loaded: ModuleNotFoundError: No module named"),
        ("constant", "def constant(:", {}, r"mine.py cannot be loaded: SyntaxError"),
        ("constant", "import sys; sys.exit(3)", {}, r"mine.py cannot be loaded: SystemExit: 3"),
        ("other", MODULE, {}, r"mine.py has no function 'other'; define `def other\(question\)` there"),
        ("ten", MODULE, {}, r"mine.py has no function 'ten'"),
        ("constant", MODULE, {"weight": 1}, r"cannot be called as constant\(question, weight=...\)"),
        ("needs_two", MODULE, {}, r"missing a required argument: 'other'.* rewards.code.kwargs holds"),
    ],
)
def test_a_function_that_cannot_be_used_is_refused_with_the_reason(tmp_path, name, content, kwargs, words):
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=words):
        find_reward("code", name, path=str(path), kwargs=kwargs)


def test_a_package_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"pkg://nothing.like_it cannot be loaded: ModuleNotFoundError"):
        find_reward("code", "f", path="pkg://nothing.like_it")


HALF = Breakdown(parts={"mine": 0.5})


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        (None, "must return a list, one for each candidate, got None; return reward_fns.Breakdown"),
        ([HALF], "must return 3 items, one for each candidate, got 1"),
        ([HALF] * 4, "must return 3 items, one for each candidate, got 4"),
        ([0.5, HALF, None], r"must reward candidate 0 with a Breakdown or None, got 0.5"),
        ([HALF, Breakdown(parts={"mine": 1e300}), None], "must reward candidate 1 with a number that float32 can hold"),
        ([HALF, HALF, HALF], "must reward candidate 2 with None, since the candidate has no verdict, got 0.5"),
    ],
)
def test_code_rewards_of_a_wrong_shape_are_refused(question, rewards, words):
    with pytest.raises(ValueError, match=words):
        reward_code(lambda _: rewards, question)


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        ([[HALF, HALF]] * 2, "must return 3 items, a list for each candidate, got 2"),
        ([[HALF], [HALF, HALF], [None, None]], "must return 2 items, one for each of candidate 0's suite_texts, got 1"),
        ([HALF, HALF, HALF], "must return a list, one for each of candidate 0's suite_texts, got Breakdown"),
        ([[HALF, 1], [HALF, HALF], [None, None]], "must reward suite 1 of candidate 0 with a Breakdown or None, got 1"),
        ([[HALF, HALF], [HALF, HALF], [None, HALF]], "must reward suite 1 of candidate 2 with None"),
    ],
)
def test_suite_rewards_of_a_wrong_shape_are_refused(question, rewards, words):
    with pytest.raises(ValueError, match=words):
        reward_suites(lambda _: rewards, question)


def test_a_reward_may_leave_out_what_has_a_verdict(question):
    assert reward_code(lambda _: [None, HALF, None], question) == (None, HALF, None)


def test_a_foreign_package_called_sandbox_is_refused_with_its_place_and_a_cure(monkeypatch):
    foreign = types.ModuleType("sandbox")
    foreign.__file__ = "/elsewhere/sandbox/__init__.py"
    foreign.Judge = object
    monkeypatch.setitem(sys.modules, "sandbox", foreign)
    with pytest.raises(ImportError, match=r"'CandidateVerdict' from 'sandbox' \(/elsewhere/sandbox.*PYTHONPATH"):
        runpy.run_path(str(Path(reward_fns.__file__)))
