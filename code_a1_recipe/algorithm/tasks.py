"""Tasks of a step. Each task has a question, the numbers of programs and suites, and the replayed cases."""

from collections.abc import Sequence

from .episode_types import EpisodeTask
from .hooks import Extension
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
    extensions: Sequence[Extension] = (),
) -> list[EpisodeTask]:
    """Make one task for each question, in the order of the questions.

    Args:
        questions: questions of a step, or of a validation.
        settings: the run's settings.
        book: the Mistake Book at the start of the step. In training, each question replays its cases; validation has no
            replays.
        step: training step, counted from 1; for validation, the newest finished step.
        started_at: start of the step in Unix seconds; the spans of the step count from this time.
        validate: make tasks of a validation, with the numbers of the block ``validation`` instead of ``episode``.
        first_index: place of the first question among all questions of the step.
        extensions: each extension may change each task, in this order.
    """
    validation = settings.validation
    counts = validation if validate else settings.episode
    tasks = []
    for index, question in enumerate(questions, first_index):
        history: tuple[str, ...] = ()
        if settings.mistake_book.enabled and not validate:
            replayed = book.retrieve(question.id, settings.mistake_book.replay_limit)
            history = tuple(entry.call for entry in replayed)
        task = EpisodeTask(
            question=question,
            history=history,
            step=step,
            seed=settings.seed,
            num_candidates=counts.num_candidates,
            num_suites=counts.num_suites,
            index=index,
            with_hidden_tests=validate or validation.hidden_in_training,
            until_timeout=validation.until_timeout,
            is_validation=validate,
            with_greedy=validate and validation.greedy,
            num_buggy_program_suites=validation.num_buggy_program_suites if validate else 0,
            started_at=started_at,
        )
        for extension in extensions:
            task = extension.before_episode(task, book)
        tasks.append(task)
    return tasks
