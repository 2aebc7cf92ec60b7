"""Lessons: which cases become one, which are drawn for a question, and how many are kept."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.algorithm.episode_types import CandidateResult, EpisodeTask, Response
from code_a1_recipe.algorithm.hooks import Imitated, JudgedQuestion
from code_a1_recipe.algorithm.mistake_book import MistakeBook
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.extensions.hindsight import Hindsight, HindsightSettings, Lesson, find_lessons
from code_a1_recipe.extensions.states import saved_states
from sandbox import CaseOutcome

QUESTION = Question(id="q", prompt="Add one.", reference="def f(x): return x + 1")
LESSON = Lesson(prompt="Add one.", entry_points="`f(x)`", candidate="def f(x): ...", asserts=("assert f(1) == 2",))


@pytest.fixture
def candidate(make_suite, make_verdict):
    """A program that fails the first ``num_failed`` of the question's ``num_cases`` cases."""

    def build(num_failed, num_cases, *, outcome=CaseOutcome.WRONG_VALUE, **history):
        return CandidateResult(
            response=Response.scripted(""),
            source="def f(x): return 1",
            verdict=make_verdict(make_suite(0), **history),
            pooled=make_suite(num_cases, num_failed=num_failed, outcome=outcome),
        )

    return build


def judged(*candidates):
    """A question whose candidates have the verdict on all cases in ``pooled``."""
    all_cases = [candidate.pooled for candidate in candidates]
    return JudgedQuestion(task=task(), candidates=candidates, all_cases=all_cases)


def asserts_of(*candidates, num_cases=1, rate=0.15):
    settings = HindsightSettings(weight=1.0, max_break_rate=rate)
    found = find_lessons(judged(*candidates), settings=settings, num_cases=num_cases)
    return [lesson.asserts for lesson in found]


def test_a_case_that_breaks_a_program_which_few_cases_break_is_a_lesson(candidate):
    assert asserts_of(candidate(2, 20)) == [("assert f(0) == 1",), ("assert f(1) == 1",)]


def test_what_many_or_no_cases_break_is_no_lesson_and_equal_programs_give_one(candidate):
    assert asserts_of(candidate(4, 20), candidate(0, 20)) == []
    lost = replace(candidate(1, 20), pooled=None)
    assert asserts_of(lost, candidate(4, 20), candidate(1, 20), candidate(1, 20)) == [("assert f(0) == 1",)]


def test_a_lesson_is_filled_up_to_k_with_cases_that_the_program_passes(candidate):
    assert asserts_of(candidate(1, 20), num_cases=3) == [("assert f(0) == 1", "assert f(1) == 1", "assert f(2) == 1")]


def test_a_failed_replay_teaches_too_and_a_case_met_twice_teaches_once(candidate):
    assert asserts_of(candidate(0, 19, num_history=1, num_history_failed=1), rate=0.5) == []  # met again, and passed
    only_replayed = candidate(0, 0, num_history=2, num_history_failed=1)
    assert asserts_of(only_replayed, rate=0.5) == [("assert f(0) == 1",)]


def test_programs_that_were_not_run_teach_nothing(candidate):
    given = candidate(1, 20)
    assert asserts_of(candidate(1, 20, outcome=CaseOutcome.TIMED_OUT)) == []  # perhaps it was never reached
    outage, unpooled, none = replace(given, verdict=None), replace(given, pooled=None), replace(given, source=None)
    assert asserts_of(outage, unpooled, none, candidate(1, 20, outcome=CaseOutcome.NOT_LOADED)) == []


def task(**changes):
    values = {"question": QUESTION, "step": 7, "seed": 100, "num_candidates": 2, "num_suites": 4}
    return EpisodeTask(**(values | changes))


def hindsight(*lessons, **settings):
    made = Hindsight(HindsightSettings(weight=0.5, max_break_rate=1.0, **settings), num_cases=1)
    made.after_step([lessons])
    return made


def drawn(made, **changes):
    return made.before_episode(task(**changes), MistakeBook()).extras["hindsight"]


def numbered(numbers):
    return [replace(LESSON, prompt=str(number)) for number in numbers]


@given(numbers=st.lists(st.integers(0, 999), max_size=40), num=st.integers(0, 50))
def test_a_draw_is_of_distinct_lessons_and_depends_on_the_task_and_the_lessons_alone(numbers, num):
    lessons = numbered(numbers)
    some = drawn(hindsight(*lessons), num_suites=num)
    assert len(some) == min(num, len(numbers))
    everything = drawn(hindsight(*lessons), num_suites=len(numbers))
    assert sorted(lesson.prompt for lesson in everything) == sorted(map(str, numbers))
    assert drawn(hindsight(*lessons), num_suites=num) == some


def test_the_draw_of_a_seed_step_and_place_is_pinned():
    lessons = drawn(hindsight(*numbered(range(50))), index=1)
    assert [lesson.prompt for lesson in lessons] == ["14", "30", "17", "34"]


def test_each_question_of_a_step_draws_as_many_lessons_as_a_group_has_suites_and_validation_none():
    made = hindsight(*numbered(range(50)))
    assert len(drawn(made, index=0)) == 4
    assert drawn(made, index=0) != drawn(made, index=1)
    held_out = task(is_validation=True)
    assert made.before_episode(held_out, MistakeBook()) is held_out
    assert not made.needs_all_cases(held_out)
    assert made.needs_all_cases(task())


def test_a_lesson_is_imitated_with_the_fields_of_its_prompt():
    made = hindsight(LESSON)
    (imitated,) = made.imitated(made.before_episode(task(), MistakeBook()))
    fields = {"prompt": "Add one.", "entry_points": "`f(x)`", "reads_input": False, "candidate": "def f(x): ..."}
    assert imitated == Imitated(fields=fields, asserts=("assert f(1) == 2",), weight=0.5)
    assert list(made.imitated(task())) == []


def test_lessons_of_a_judged_question_are_kept_for_later_steps(candidate):
    made = hindsight()
    work = judged(candidate(2, 20))
    lessons = made.after_verdicts(work)
    assert made.after_step([lessons, (), lessons]) == {"hindsight/lessons": 4}
    held_out = replace(work, task=task(is_validation=True))
    assert made.after_verdicts(held_out) is None


def test_the_newest_lessons_are_kept_and_come_back_from_their_state():
    made = hindsight(*numbered(range(11)), max_lessons=8)
    assert [lesson["prompt"] for lesson in made.state()] == [str(number) for number in range(3, 11)]
    smaller, same = hindsight(LESSON, max_lessons=2), hindsight(LESSON, max_lessons=8)
    for other in (smaller, same):
        other.load_state(saved_states([made])["hindsight"])
    assert [lesson["prompt"] for lesson in smaller.state()] == ["9", "10"]
    assert drawn(same) == drawn(made)
