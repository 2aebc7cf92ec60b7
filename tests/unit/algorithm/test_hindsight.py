"""Lessons: which cases become one, what the Test LLM should have said, and the buffer."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.algorithm.book_rules import BookRules
from code_a1_recipe.algorithm.episode_types import CandidateResult, Response
from code_a1_recipe.algorithm.hindsight import HindsightSettings, Lesson, draw_lessons, find_lessons
from code_a1_recipe.algorithm.mistake_book import BookUpdate, MistakeBook
from code_a1_recipe.algorithm.prompts import render
from code_a1_recipe.algorithm.question import Question
from sandbox import CaseOutcome

QUESTION = Question(id="q", prompt="Add one.", reference="def f(x): return x + 1")
LESSON = Lesson(
    prompt="Add one.", entry_points="`f(x)`", candidate_source="def f(x): ...", asserts=("assert f(1) == 2",)
)
FIELDS = {**QUESTION.prompt_fields, "candidate": "def f(x): return 1", "num_cases": 2}


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


def asserts_of(*candidates, num_cases=1, rate=0.15):
    settings = HindsightSettings(weight=1.0, max_break_rate=rate)
    found = find_lessons(QUESTION, candidates, settings=settings, num_cases=num_cases)
    return [lesson.asserts for lesson in found]


def test_a_case_that_breaks_a_program_which_few_cases_break_is_a_lesson(candidate):
    assert asserts_of(candidate(2, 20)) == [("assert f(0) == 1",), ("assert f(1) == 1",)]


def test_what_many_or_no_cases_break_is_no_lesson(candidate):
    assert asserts_of(candidate(4, 20), candidate(0, 20)) == []


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


def test_two_programs_with_one_text_teach_once(candidate):
    assert asserts_of(candidate(1, 20), candidate(1, 20)) == [("assert f(0) == 1",)]


def test_the_answer_is_bare_where_the_prompt_shows_no_block():
    messages = render("micro_test", **FIELDS)
    assert LESSON.answer(messages) == "assert f(1) == 2"


def test_the_answer_goes_on_from_the_beginning_that_the_prompt_gives():
    messages = render("chat_v2_test", **FIELDS)
    assert messages[-1] == {"role": "assistant", "content": "```python\nassert"}
    assert LESSON.answer(messages) == " f(1) == 2\n```"


def test_there_is_no_answer_to_a_beginning_of_another_kind():
    messages = [{"role": "user", "content": "Test it."}, {"role": "assistant", "content": "1. "}]
    assert LESSON.answer(messages) == ""


@given(numbers=st.lists(st.integers(0, 999), max_size=40), num=st.integers(0, 50))
def test_a_draw_is_of_distinct_lessons_and_depends_on_seed_and_lessons_alone(numbers, num):
    lessons = [replace(LESSON, prompt=str(number)) for number in numbers]
    drawn = draw_lessons(lessons, num, seed="7")
    assert len(drawn) == min(num, len(numbers))
    everything = draw_lessons(lessons, len(numbers), seed="7")
    assert sorted(lesson.prompt for lesson in everything) == sorted(map(str, numbers))
    assert draw_lessons(tuple(lessons), num, seed="7") == drawn


def test_the_newest_lessons_are_kept(tmp_path):
    book = MistakeBook(BookRules(max_lessons=8))
    book.update("q", BookUpdate(lessons=[replace(LESSON, prompt=str(number)) for number in range(11)]))
    assert [lesson.prompt for lesson in book.lessons] == [str(number) for number in range(3, 11)]
    book.save(tmp_path / "book.json")
    small = MistakeBook.load(tmp_path / "book.json", BookRules(max_lessons=2))
    assert [lesson.prompt for lesson in small.lessons] == ["9", "10"]


def test_lessons_are_saved_with_the_mistake_book(tmp_path):
    book = MistakeBook()
    book.update("q", BookUpdate(lessons=[LESSON]))
    book.save(tmp_path / "book.json")
    loaded = MistakeBook.load(tmp_path / "book.json")
    assert loaded == book
    assert loaded != MistakeBook()
    assert list(loaded.lessons) == [LESSON]
