"""Hindsight: cases that would have broken a program become lessons, a supervised term of the Test LLM's update.

Not in the paper. A program that few of the cases written for its question break, and the cases that do, are a pair to
imitate: (question, program) -> these calls with the oracle's answers. No further sampling and no hidden test is needed,
and the lesson is there also where no suite of the program's own group broke it, so that GRPO has no gradient. The idea
of relabelling in hindsight is Andrychowicz et al., arXiv 1707.01495; imitation of what succeeded is expert iteration.

Axes: K cases of a suite.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Annotated, Any

from pydantic import Field

from sandbox import CaseOutcome

from ..algorithm.episode_types import CandidateResult, EpisodeTask
from ..algorithm.hooks import Extension, Found, Imitated, JudgedQuestion
from ..algorithm.mistake_book import MistakeBook
from ..algorithm.question import Question
from ..algorithm.settings_block import Block, Count, Rate

_NO_LESSON = (CaseOutcome.NOT_LOADED, CaseOutcome.TIMED_OUT)


class HindsightSettings(Block):
    weight: Annotated[float, Field(ge=0)] = 0.0
    """Advantage of a lesson's tokens, where those of a group's suites spread by 1; 0: no lessons."""
    max_break_rate: Rate = 0.15
    """Share of a question's cases that may break a program for it to be a lesson: what most cases break is easy."""
    max_lessons: Count = 256
    """Newest lessons kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One suite to imitate."""

    prompt: str
    entry_points: str
    reads_input: bool = False
    """These three of the question, as in its ``prompt_fields``."""
    candidate: str
    """Source of the program."""
    asserts: tuple[str, ...]
    """At most K, those that break the program first, all right as written."""


class Hindsight(Extension):
    """Finds lessons in each step, keeps the newest, and gives some of them to each question of later steps."""

    name = "hindsight"

    def __init__(self, settings: HindsightSettings, *, num_cases: int) -> None:
        """``num_cases`` is K."""
        self._settings = settings
        self._num_cases = num_cases
        self._lessons: deque[Lesson] = deque(maxlen=settings.max_lessons)
        """The newest last."""

    def before_episode(self, task: EpisodeTask, book: MistakeBook) -> EpisodeTask:
        """Draw as many lessons as a group has suites, anew for each question of the step."""
        if task.is_validation:
            return task
        seed = f"{task.seed}/lessons/{task.step}/{task.index}"
        number = min(task.num_suites, len(self._lessons))
        drawn = Random(seed).sample(list(self._lessons), number)
        return replace(task, extras={**task.extras, self.name: drawn})

    def needs_all_cases(self, task: EpisodeTask) -> bool:
        return not task.is_validation

    async def after_verdicts(self, work: JudgedQuestion) -> Found:
        if work.task.is_validation:
            return Found()
        lessons = find_lessons(
            work.task.question,
            work.candidates,
            settings=self._settings,
            num_cases=self._num_cases,
        )
        return Found(kept=lessons)

    def imitated(self, task: EpisodeTask) -> Iterator[Imitated]:
        for lesson in task.extras.get(self.name, ()):
            fields = asdict(lesson)
            asserts = fields.pop("asserts")
            yield Imitated(fields=fields, asserts=asserts, weight=self._settings.weight)

    def after_step(self, found: Sequence[tuple[Lesson, ...]]) -> dict[str, float]:
        for lessons in found:
            self._lessons.extend(lessons)
        return {"hindsight/lessons": len(self._lessons)}

    def state(self) -> list[dict[str, Any]]:
        return [{**asdict(lesson), "asserts": list(lesson.asserts)} for lesson in self._lessons]

    def load_state(self, state: list[dict[str, Any]]) -> None:
        self._lessons.clear()
        for item in state:
            asserts = tuple(item["asserts"])
            self._lessons.append(Lesson(**{**item, "asserts": asserts}))


def find_lessons(
    question: Question, candidates: Sequence[CandidateResult], *, settings: HindsightSettings, num_cases: int
) -> tuple[Lesson, ...]:
    """Lessons of one judged question, each once.

    Args:
        question: they are for its prompt.
        candidates: with the verdict on all cases of the question in ``pooled``; others give none.
        settings: ``max_break_rate``.
        num_cases: K. A lesson is filled up to it with cases that the program passes.
    """
    # A dict keeps the order in which lessons came, which a set would not, and later draws depend on that order.
    found: dict[Lesson, None] = {}
    for candidate in candidates:
        if candidate.source is None or candidate.pooled is None or candidate.verdict is None:
            continue
        met = [*candidate.verdict.history, *candidate.pooled.cases]
        # By id, so that a case that was replayed and written anew counts once.
        cases = list({case.id: case for case in met}.values())
        # Time-outs teach nothing: a case that the program had no time left for has the same outcome.
        failed = [case for case in cases if case.outcome.failed and case.outcome not in _NO_LESSON]
        passed = [case for case in cases if not case.outcome.failed]
        # Many failing cases mean an easy catch, which the reward teaches by itself.
        if len(failed) > settings.max_break_rate * len(cases):
            continue
        for start in range(0, len(failed), num_cases):
            # The prompt asks for K asserts; a shorter answer would teach the Test LLM to write fewer.
            shown = [*failed[start : start + num_cases], *passed][:num_cases]
            asserts = tuple(f"assert {case.call} == {case.reference_value}" for case in shown)
            lesson = Lesson(**question.prompt_fields, candidate=candidate.source, asserts=asserts)
            found[lesson] = None
    return tuple(found)
