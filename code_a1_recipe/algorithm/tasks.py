"""Tasks of a step: each question with its counts and the cases replayed from the Mistake Book."""

from collections.abc import Sequence
from typing import Any

from .episode_types import EpisodeTask
from .hindsight import draw_lessons
from .mistake_book import MistakeBook
from .question import Question
from .settings import RecipeSettings


def tasks_of(
    questions: Sequence[Question],
    *,
    settings: RecipeSettings,
    book: MistakeBook,
    step: int,
    started_at: float,
    validate: bool,
    first_index: int = 0,
) -> list[EpisodeTask]:
    """One task for each question, in their order.

    Args:
        book: as it is at the start of the step; validation replays nothing.
        step: of training, from 1; for validation the newest finished one.
        started_at: Unix seconds, the zero of the step's spans.
        validate: the counts of ``validation`` instead of those of ``episode``.
        first_index: of the first question among all of the step.
    """
    validation = settings.validation
    counts = validation if validate else settings.episode
    return [
        EpisodeTask(
            question=question,
            step=step,
            seed=settings.seed,
            num_candidates=counts.num_candidates,
            num_suites=counts.num_suites,
            with_hidden_tests=validate or validation.hidden_in_training,
            until_timeout=validation.until_timeout,
            is_validation=validate,
            with_greedy=validate and validation.greedy,
            num_buggy_program_suites=validation.num_buggy_program_suites if validate else 0,
            index=index,
            started_at=started_at,
            **({} if validate else _from_the_book(question, index, settings=settings, book=book, step=step)),
        )
        for index, question in enumerate(questions, first_index)
    ]


def _from_the_book(
    question: Question, index: int, *, settings: RecipeSettings, book: MistakeBook, step: int
) -> dict[str, Any]:
    """The fields of a training task that come from the Mistake Book.

    A question replays its cases in the book. Lessons are as many as a group has suites, drawn anew for each question of
    the step.
    """
    episode, seed = settings.episode, settings.seed
    fields: dict[str, Any] = {}
    if settings.mistake_book.enabled:
        replayed = book.retrieve(question.id, settings.mistake_book.replay_limit)
        fields["history"] = tuple(entry.call for entry in replayed)
    # By index and not by question: one that stands twice in a step gets other lessons the second time.
    if settings.learns_in_hindsight:
        fields["lessons"] = draw_lessons(book.lessons, episode.num_suites, seed=f"{seed}/lessons/{step}/{index}")
    return fields
