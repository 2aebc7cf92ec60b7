"""Dynamic sampling: which questions come in place of others, and what a step then learns from."""

from types import SimpleNamespace

import pytest

from code_a1_recipe.algorithm.episode_types import CandidateResult, Episode, EpisodeTask, Response
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.training.episode_worker import _report
from code_a1_recipe.training.refill import give_way, refill
from reward_fns import Breakdown

QUESTIONS = [Question(id=f"q{number}", prompt="p", reference="def f(x): return x") for number in range(20)]


def reports(text):
    """``reports("+-")``: the first question's programs earned different rewards, the second's the same."""
    return [SimpleNamespace(index=n, question_id=f"q{n}", has_spread=mark == "+") for n, mark in enumerate(text)]


@pytest.mark.parametrize(("text", "number"), [("++++", 0), ("+--+", 2), ("----", 4), ("+-+--+", 1), ("-" * 18, 2)])
def test_as_many_are_drawn_as_lack_and_none_twice(text, number):
    drawn = refill(QUESTIONS, reports(text), wanted=4, seed=1, step=7)
    assert drawn == refill(QUESTIONS, reports(text), wanted=4, seed=1, step=7)
    new = set(QUESTIONS[len(text) :]) & set(drawn)
    assert len(new) == len(drawn) == number


def test_another_seed_step_or_round_draws_others():
    rounds = ((8, 1, 7), (8, 2, 7), (8, 1, 8), (9, 1, 7))
    draws = [refill(QUESTIONS, reports("-" * asked), wanted=8, seed=seed, step=step) for asked, seed, step in rounds]
    assert len({tuple(drawn) for drawn in draws}) == 4


@pytest.mark.parametrize(
    ("text", "kept", "left_out"),
    [("+-", [0, 1], []), ("+-+", [0, 2], [1]), ("-+-+", [1, 3], [0, 2]), ("--+", [0, 2], [1]), ("--", [0, 1], [])],
)
def test_those_without_spread_give_way(text, kept, left_out):
    learned, others = give_way(reports(text), wanted=2)
    assert ([one.index for one in learned], [one.index for one in others]) == (kept, left_out)


@pytest.mark.parametrize(
    ("rewards", "has_spread"), [((0.5, 0.5), False), ((0.5, 1.0), True), ((None, 1.0), False), ((), False)]
)
def test_a_question_has_spread_where_two_programs_earned_different_rewards(rewards, has_spread):
    def candidate(reward):
        breakdown = None if reward is None else Breakdown(parts={"new": reward}, terms={})
        return CandidateResult(response=Response.scripted(""), source=None, reward=breakdown)

    task = EpisodeTask(question=QUESTIONS[0], step=1, seed=0, num_candidates=len(rewards), num_suites=0)
    episode = Episode(task=task, candidates=tuple(map(candidate, rewards)))
    assert _report(episode, (), grpo_rows={}, selected=()).has_spread is has_spread
