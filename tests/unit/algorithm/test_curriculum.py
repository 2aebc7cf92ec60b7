from collections import Counter

import pytest

from code_a1_recipe.algorithm.curriculum import Curriculum, CurriculumSettings, reward_variance
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.errors import SettingsError


def make(num=4, *, seed=1, **settings):
    questions = [Question(id=f"q{q}", prompt="p", reference="def f(x): return x") for q in range(num)]
    return Curriculum(CurriculumSettings(**({"name": "variance"} | settings)), questions, seed=seed)


@pytest.mark.parametrize(
    ("rewards", "variance"),
    [
        ([0.0, 1.0], 1.0),
        ([0.0, 0.0], 0.0),
        ([0.5, 0.0], 0.25),
        ([0.0, 0.0, 0.0, 1.0], 0.75),
        ([-1.0, 1.0], 1.0),  # of a user's own function
    ],
)
def test_a_visit_is_scored_by_the_spread_of_its_rewards(rewards, variance):
    assert reward_variance(rewards) == variance


def test_the_first_visit_sets_the_score_and_later_ones_move_it():
    curriculum = make(memory=0.25)
    curriculum.update("q1", [0.0, 1.0])
    assert curriculum.state() == {"q1": 1.0}
    curriculum.update("q1", [1.0, 1.0])
    assert curriculum.state() == {"q1": 0.75}


@pytest.mark.parametrize("rewards", [[], [0.5]])
def test_fewer_than_two_rewards_leave_the_score_as_it_is(rewards):
    curriculum = make()
    curriculum.update("q0", rewards)
    assert curriculum.state() == {}
    curriculum.update("q0", [0.0, 1.0])
    curriculum.update("q0", rewards)
    assert curriculum.state() == {"q0": 1.0}


def test_questions_are_drawn_in_proportion_to_their_scores():
    curriculum = make(3, floor=0.0)
    curriculum.restore({"q0": 0.0, "q1": 0.25})  # q2 was not visited: 1
    drawn = Counter(curriculum.draw(step, 1)[0] for step in range(2000))
    assert drawn[0] == 0
    assert drawn[1] / 2000 == pytest.approx(0.2, abs=0.03)
    assert {tuple(sorted(curriculum.draw(step, 2))) for step in range(50)} == {(1, 2)}


def test_the_floor_is_drawn_uniformly_and_rounded_up():
    curriculum = make(4, floor=0.25)
    curriculum.restore({"q1": 0.0, "q2": 0.0, "q3": 0.0})
    assert Counter(curriculum.draw(step, 1)[0] for step in range(400))[0] == pytest.approx(100, abs=30)
    drawn = Counter(q for step in range(400) for q in curriculum.draw(step, 2))  # one of two by its score
    assert drawn[0] == 400
    assert min(drawn.values()) > 100
    places = Counter(curriculum.draw(step, 2).index(0) for step in range(400))
    assert min(places.values()) > 150


def test_questions_without_any_score_are_drawn_uniformly():
    curriculum = make(3, floor=0.0)
    curriculum.restore(dict.fromkeys(("q0", "q1", "q2"), 0.0))
    assert min(Counter(curriculum.draw(step, 1)[0] for step in range(300)).values()) > 70


def test_a_draw_depends_on_seed_and_step():
    def draws(seed):
        return [make(20, seed=seed).draw(step, 5) for step in range(3)]

    assert draws(1) == draws(1)
    assert len({tuple(draw) for seed in (1, 2) for draw in draws(seed)}) == 6


def test_all_questions_can_be_drawn():
    assert sorted(make(4).draw(1, 4)) == [0, 1, 2, 3]


def test_the_metrics_count_questions_without_a_visit_as_one():
    curriculum = make(4)
    curriculum.update("q0", [0.5, 0.5])
    assert curriculum.metrics() == {"curriculum/mean_score": 0.75, "curriculum/unvisited_frac": 0.75}


def test_a_state_is_a_copy():
    curriculum, state = make(), {"q0": 0.5}
    curriculum.restore(state)
    curriculum.update("q0", [0.0, 1.0])
    assert (state, curriculum.state()) == ({"q0": 0.5}, {"q0": 0.75})
    curriculum.state().clear()
    assert curriculum.state() == {"q0": 0.75}
    curriculum.restore({})
    assert curriculum.state() == {}


def test_the_settings_are_bounded():
    assert CurriculumSettings() == CurriculumSettings(name="none", floor=0.25, memory=0.5)
    words = r"here.name must be one of none, variance \(did you mean variance\?\), got 'varance'"
    with pytest.raises(SettingsError, match=words):
        CurriculumSettings.read({"name": "varance"}, where="here")
    with pytest.raises(SettingsError, match=r"here.floor must be at most 1, got 1.5"):
        CurriculumSettings.read({"floor": 1.5}, where="here")
