"""A step's tasks: how many responses, which cases are replayed, what validation adds."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from code_a1_recipe.algorithm.hooks import Extension
from code_a1_recipe.algorithm.mistake_book import BookUpdate, FailedCase, MistakeBook
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.algorithm.settings import MistakeBookSettings, ValidationSettings
from code_a1_recipe.algorithm.tasks import tasks_of

QUESTIONS = [Question(id=name, prompt="Add one.", reference="def f(x): return x + 1") for name in ("q1", "q2")]


def settings(*, enabled=True, replay_limit=2, **validation):
    """The blocks that tasks are made from."""
    return SimpleNamespace(
        validation=ValidationSettings(**{"num_candidates": 3, "num_suites": 1} | validation),
        mistake_book=MistakeBookSettings(enabled=enabled, replay_limit=replay_limit),
        episode=SimpleNamespace(num_candidates=8, num_suites=4),
        seed=100,
    )


@pytest.fixture
def book():
    """Three cases of the first question, f(3) seen three times, f(2) twice, f(1) once."""
    book = MistakeBook()
    failed = [FailedCase(id=call, call=call, answer="") for call in ("f(1)", *["f(2)"] * 2, *["f(3)"] * 3)]
    book.update("q1", BookUpdate(failed=failed))
    return book


def make_tasks(book, *, validate=False, extensions=(), **changes):
    return tasks_of(
        QUESTIONS,
        settings=settings(**changes),
        book=book,
        step=7,
        started_at=12.5,
        validate=validate,
        extensions=extensions,
    )


@pytest.mark.parametrize(
    ("changes", "histories"),
    [
        ({}, [("f(3)", "f(2)"), ()]),
        ({"replay_limit": 1}, [("f(3)",), ()]),
        ({"enabled": False}, [(), ()]),
        ({"validate": True}, [(), ()]),
    ],
)
def test_training_replays_the_most_frequent_cases_of_each_question(book, changes, histories):
    assert [task.history for task in make_tasks(book, **changes)] == histories


EXTRA = {"greedy": True, "num_buggy_program_suites": 5}


@pytest.mark.parametrize(
    ("changes", "counts", "is_greedy", "has_hidden_tests"),
    [
        (EXTRA, (8, 4, 0), False, False),
        (EXTRA | {"hidden_in_training": True}, (8, 4, 0), False, True),
        (EXTRA | {"validate": True}, (3, 1, 5), True, True),
        ({"validate": True}, (3, 1, 0), False, True),
    ],
)
def test_training_and_validation_take_their_own_counts(book, changes, counts, is_greedy, has_hidden_tests):
    task = make_tasks(book, **changes)[0]
    assert (task.num_candidates, task.num_suites, task.num_buggy_program_suites) == counts
    assert (task.with_greedy, task.with_hidden_tests) == (is_greedy, has_hidden_tests)


def test_tasks_know_their_place_in_the_step(book):
    tasks = make_tasks(book)
    assert [(task.question, task.index) for task in tasks] == list(zip(QUESTIONS, (0, 1), strict=True))
    assert {(task.step, task.seed, task.started_at) for task in tasks} == {(7, 100, 12.5)}


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
