"""Tasks of a step: each question with its counts and the cases replayed from the Mistake Book."""

from collections.abc import Sequence
from typing import Any

from .episode_types import EpisodeTask
from .hindsight import Lesson, draw_lessons
from .mistake_book import MistakeBook
from .question import Question
from .replay import REPLAY_SAMPLERS
from .settings import RecipeSettings


def tasks_of(
    questions: Sequence[Question],
    *,
    settings: RecipeSettings,
    book: MistakeBook,
    step: int,
    started_at: float,
    validate: bool,
) -> list[EpisodeTask]:
    """One task for each question, in their order.

    Args:
        book: as it is at the start of the step; validation replays nothing.
        step: of training, from 1; for validation the newest finished one.
        started_at: Unix seconds, the zero of the step's spans.
        validate: the counts of ``validation`` instead of those of ``episode``.
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
            is_validation=validate,
            with_greedy=validate and validation.greedy,
            num_buggy_program_suites=validation.num_buggy_program_suites if validate else 0,
            index=index,
            num_questions=len(questions),
            started_at=started_at,
            **({} if validate else _from_the_book(question, index, settings=settings, book=book, step=step)),
        )
        for index, question in enumerate(questions)
    ]


def _from_the_book(
    question: Question, index: int, *, settings: RecipeSettings, book: MistakeBook, step: int
) -> dict[str, Any]:
    """What a question of training gets of the Mistake Book, by field of ``EpisodeTask``.

    Replayed are calls of the book, then those of earlier suites, each once. Lessons are as many as a group has suites,
    drawn anew for each question of the step.
    """
    episode, replay, seed = settings.episode, settings.mistake_book, settings.seed
    sizes = {"num_candidates": episode.num_candidates, "num_suites": episode.num_suites}
    opponents = book.opponents.draw(question.id, step=step, seed=seed, **sizes)
    history: tuple[str, ...] = ()
    if replay.enabled:
        sampler = REPLAY_SAMPLERS[replay.sampler]
        entries = sampler(book, question.id, limit=replay.replay_limit, seed=seed + step)
        history = tuple(dict.fromkeys((*(entry.call for entry in entries), *opponents.calls)))
    lessons: tuple[Lesson, ...] = ()
    if settings.learns_in_hindsight:
        lessons = draw_lessons(book.lessons, episode.num_suites, seed=f"{seed}/lessons/{step}/{index}")
    known = book.entries(question.id) if settings.rewards.looks_at_asked else ()
    asked = {entry.key or entry.call: entry.num_met for entry in known}
    return {"history": history, "opponents": opponents, "lessons": lessons, "asked": asked}
