"""A step's tasks: how many responses, which cases are replayed, what validation adds."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from code_a1_recipe.algorithm.hooks import Extension
from code_a1_recipe.algorithm.mistake_book import BookUpdate, FailedCase, MistakeBook
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.algorithm.settings import MistakeBookSettings, ValidationSettings
from code_a1_recipe.algorithm.tasks import tasks_of

QUESTIONS = [Question(id=name, prompt="Add one.", reference="def f(x): return x + 1") for name in ("q1", "q2")]


@dataclass
class Settings:
    """The blocks that tasks are made by."""

    validation: ValidationSettings = field(
        default_factory=lambda: ValidationSettings(
            num_candidates=3, num_suites=1, greedy=True, num_buggy_program_suites=5
        )
    )
    mistake_book: MistakeBookSettings = field(default_factory=lambda: MistakeBookSettings(enabled=True, replay_limit=2))
    episode: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(num_candidates=8, num_suites=4))
    seed: int = 100


@pytest.fixture
def book():
    """Three cases of the first question, f(3) seen three times, f(2) twice, f(1) once."""
    book = MistakeBook()
    failed = [
        FailedCase(id=f"f({number})", call=f"f({number})", answer=str(number + 1)) for number in (1, 2, 2, 3, 3, 3)
    ]
    book.update("q1", BookUpdate(failed=failed))
    return book


def make_tasks(book, settings=None, *, validate=False, step=7, extensions=()):
    return tasks_of(
        QUESTIONS,
        settings=settings or Settings(),
        book=book,
        step=step,
        started_at=12.5,
        validate=validate,
        extensions=extensions,
    )


def test_training_replays_the_most_frequent_cases_of_each_question(book):
    tasks = make_tasks(book)
    assert [task.history for task in tasks] == [("f(3)", "f(2)"), ()]


def test_training_takes_the_counts_of_the_episode(book):
    task = make_tasks(book)[0]
    assert (task.num_candidates, task.num_suites, task.num_buggy_program_suites) == (8, 4, 0)
    assert (task.with_greedy, task.with_hidden_tests) == (False, False)


def test_validation_takes_its_own_counts_and_replays_nothing(book):
    task = make_tasks(book, validate=True)[0]
    assert (task.num_candidates, task.num_suites, task.num_buggy_program_suites) == (3, 1, 5)
    assert (task.with_greedy, task.with_hidden_tests, task.history) == (True, True, ())


def test_greedy_programs_are_as_configured(book):
    settings = Settings(validation=ValidationSettings(num_candidates=3, num_suites=1))
    assert make_tasks(book, settings, validate=True)[0].with_greedy is False


def test_hidden_tests_in_training_when_asked_for(book):
    validation = ValidationSettings(num_candidates=3, num_suites=1, hidden_in_training=True)
    assert make_tasks(book, Settings(validation=validation))[0].with_hidden_tests is True


def test_tasks_know_their_place_in_the_step(book):
    tasks = make_tasks(book)
    assert [(task.question, task.index) for task in tasks] == list(zip(QUESTIONS, (0, 1), strict=True))
    assert {(task.step, task.seed, task.started_at) for task in tasks} == {(7, 100, 12.5)}


def test_nothing_is_replayed_without_the_mistake_book(book):
    off = MistakeBookSettings(enabled=False, replay_limit=2)
    assert make_tasks(book, Settings(mistake_book=off))[0].history == ()


def test_the_replay_limit_holds(book):
    one = MistakeBookSettings(enabled=True, replay_limit=1)
    assert make_tasks(book, Settings(mistake_book=one))[0].history == ("f(3)",)


class Newest(Extension):
    """Replays the newest case alone, and notes which tasks it saw."""

    def before_episode(self, task, book):
        newest = book.entries(task.question.id)[-1:]
        history = tuple(entry.call for entry in newest)
        return replace(task, history=history, extras={**task.extras, "seen": task.history})


class Doubled(Extension):
    def before_episode(self, task, book):
        return replace(task, history=task.history * 2)


@pytest.mark.parametrize("validate", [False, True])
def test_extensions_see_the_book_and_may_change_a_task_one_after_the_other(book, validate):
    first, second = make_tasks(book, validate=validate, extensions=(Newest(), Extension(), Doubled()))
    assert first.extras == {"seen": () if validate else ("f(3)", "f(2)")}
    assert (first.history, second.history) == (("f(3)", "f(3)"), ())
