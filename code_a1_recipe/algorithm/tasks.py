"""Tasks of a step: each question with its counts and the cases replayed from the Mistake Book."""

from collections.abc import Sequence

from .episode_types import EpisodeTask
from .hindsight import Lesson
from .mistake_book import MistakeBook
from .opponents import Opponents
from .question import Question
from .replay import find_replay_sampler
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
    opponents = [Opponents() if validate else _draw(one, settings=settings, book=book, step=step) for one in questions]
    return [
        EpisodeTask(
            question=question,
            history=_history(question, opponents[index], settings=settings, book=book, step=step, validate=validate),
            step=step,
            seed=settings.seed,
            num_candidates=counts.num_candidates,
            num_suites=counts.num_suites,
            with_hidden_tests=validate or validation.hidden_in_training,
            with_greedy=validate and validation.greedy,
            num_buggy_program_suites=validation.num_buggy_program_suites if validate else 0,
            index=index,
            num_questions=len(questions),
            started_at=started_at,
            asked={} if validate else _asked(question, settings=settings, book=book),
            opponents=opponents[index],
            lessons=() if validate else _lessons(index, settings=settings, book=book, step=step),
        )
        for index, question in enumerate(questions)
    ]


def _lessons(index: int, *, settings: RecipeSettings, book: MistakeBook, step: int) -> tuple[Lesson, ...]:
    """As many as a group has suites, drawn anew for each question of the step."""
    if not settings.learns_in_hindsight:
        return ()
    return book.lessons.draw(settings.episode.num_suites, seed=f"{settings.seed}/lessons/{step}/{index}")


def _asked(question: Question, *, settings: RecipeSettings, book: MistakeBook) -> dict[str, int]:
    entries = book.entries(question.id) if settings.rewards.looks_at_asked else ()
    return {entry.key or entry.call: entry.num_met for entry in entries}


def _draw(question: Question, *, settings: RecipeSettings, book: MistakeBook, step: int) -> Opponents:
    sizes = {"num_candidates": settings.episode.num_candidates, "num_suites": settings.episode.num_suites}
    return book.opponents.draw(question.id, step=step, seed=settings.seed, **sizes)


def _history(
    question: Question,
    opponents: Opponents,
    *,
    settings: RecipeSettings,
    book: MistakeBook,
    step: int,
    validate: bool,
) -> tuple[str, ...]:
    """Calls of the Mistake Book, then those of earlier suites, each once; validation replays nothing."""
    replay = settings.mistake_book
    if validate or not replay.enabled:
        return ()
    sampler = find_replay_sampler(replay.sampler)
    entries = sampler(book, question.id, limit=replay.replay_limit, seed=settings.seed + step)
    return tuple(dict.fromkeys((*(entry.call for entry in entries), *opponents.calls)))
