"""Laws of the curriculum."""

import json

from hypothesis import given, settings, strategies as st

from code_a1_recipe.algorithm.curriculum import Curriculum, CurriculumSettings, reward_variance
from code_a1_recipe.algorithm.question import Question

QUESTIONS = [Question(id=f"q{q}", prompt="p", reference="def f(x): return x") for q in range(6)]
rates = st.floats(0.0, 1.0)
visits = st.lists(
    st.tuples(st.sampled_from([question.id for question in QUESTIONS]), st.lists(rates, max_size=5)), max_size=12
)


@st.composite
def curricula(draw):
    """One after some visits."""
    chosen = CurriculumSettings(name="variance", floor=draw(rates), memory=draw(rates))
    curriculum = Curriculum(chosen, QUESTIONS, seed=draw(st.integers(0, 99)))
    for question_id, rewards in draw(visits):
        curriculum.update(question_id, rewards)
    return curriculum


@given(curriculum=curricula(), step=st.integers(1, 10**6), num=st.integers(1, len(QUESTIONS)))
def test_the_questions_of_a_step_are_distinct_and_as_many_as_asked_for(curriculum, step, num):
    drawn = curriculum.draw(step, num)
    assert len(drawn) == len(set(drawn)) == num
    assert set(drawn) <= set(range(len(QUESTIONS)))


@settings(max_examples=20)
@given(zeros=st.sets(st.sampled_from([question.id for question in QUESTIONS])), num=st.integers(1, len(QUESTIONS)))
def test_the_floor_reaches_every_question_whatever_the_scores(zeros, num):
    curriculum = Curriculum(CurriculumSettings(name="variance", floor=0.5), QUESTIONS, seed=1)
    curriculum.restore(dict.fromkeys(zeros, 0.0))
    assert {q for step in range(200) for q in curriculum.draw(step, num)} == set(range(len(QUESTIONS)))


@given(curriculum=curricula(), later=visits, seed=st.integers(0, 99))
def test_a_state_that_went_through_a_file_goes_on_as_if_nothing_had_happened(curriculum, later, seed):
    chosen = CurriculumSettings(name="variance")
    one, other = (Curriculum(chosen, QUESTIONS, seed=seed) for _ in range(2))
    one.restore(curriculum.state())
    other.restore(json.loads(json.dumps(curriculum.state())))
    for question_id, rewards in later:
        one.update(question_id, rewards)
        other.update(question_id, rewards)
    assert one.state() == other.state()
    assert [one.draw(step, 3) for step in range(4)] == [other.draw(step, 3) for step in range(4)]


@given(curriculum=curricula())
def test_scores_and_metrics_stay_between_0_and_1(curriculum):
    assert all(0 <= value <= 1 for value in (*curriculum.state().values(), *curriculum.metrics().values()))


@given(rewards=st.lists(rates, min_size=2, max_size=8), data=st.data())
def test_the_order_of_a_questions_programs_does_not_matter(rewards, data):
    assert reward_variance(rewards) == reward_variance(data.draw(st.permutations(rewards)))
