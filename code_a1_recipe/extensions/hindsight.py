"""Hindsight: cases that broke a program become lessons, which the Test LLM imitates in its update.

The paper has no such rule. Each program meets all cases written for its question. If only few cases break a program,
these cases with the oracle's answers are a good suite for the program. Such a suite is a lesson, which the Test LLM
imitates. Lessons need no further sampling and no hidden tests. A program can give a lesson even if none of its own
suites broke it. In this case, GRPO teaches nothing about breaking the program.

Relabelling in hindsight is from Andrychowicz et al., arXiv 1707.01495. Learning from one's own successes is known as
expert iteration.

Axes: K cases of a suite.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Annotated, Any

from pydantic import Field

from sandbox import CaseOutcome

from ..algorithm.episode_types import EpisodeTask
from ..algorithm.hooks import Extension, Imitated, JudgedQuestion
from ..algorithm.mistake_book import MistakeBook
from ..algorithm.settings_block import Block, Count, Rate

# A time-out does not show that the call breaks the program: a call for which no time was left has the same outcome.
_NO_LESSON = (CaseOutcome.NOT_LOADED, CaseOutcome.TIMED_OUT)


class HindsightSettings(Block):
    weight: Annotated[float, Field(ge=0)] = 0.0
    """Advantage of each token of a lesson (in a GRPO group, advantages have standard deviation 1); 0: no lessons."""
    max_break_rate: Rate = 0.15
    """Largest share of a question's cases that may break a program. If more cases break it, it gives no lesson."""
    max_lessons: Count = 256
    """Number of lessons that the run keeps; the newest replace the oldest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One suite to imitate."""

    prompt: str
    entry_points: str
    reads_input: bool = False
    """``prompt``, ``entry_points`` and ``reads_input`` are the question's ``prompt_fields``."""
    candidate: str
    """Source of the program."""
    asserts: tuple[str, ...]
    """At most K correct assertions; the assertions that break the program come first."""


class Hindsight(Extension):
    """Finds lessons in each step, keeps the newest, and gives some of them to each question of later steps."""

    name = "hindsight"

    def __init__(self, settings: HindsightSettings, *, num_cases: int) -> None:
        """``num_cases`` is K."""
        self._settings = settings
        self._num_cases = num_cases
        self._lessons: deque[Lesson] = deque(maxlen=settings.max_lessons)
        """Lessons, the newest last."""

    def before_episode(self, task: EpisodeTask, book: MistakeBook) -> EpisodeTask:
        """Draw as many lessons as a group has suites, independently for each question of the step."""
        if task.is_validation:
            return task
        seed = f"{task.seed}/lessons/{task.step}/{task.index}"
        number = min(task.num_suites, len(self._lessons))
        drawn = Random(seed).sample(list(self._lessons), number)
        return replace(task, extras={**task.extras, self.name: drawn})

    def needs_all_cases(self, task: EpisodeTask) -> bool:
        return not task.is_validation

    def after_verdicts(self, judged: JudgedQuestion) -> tuple[Lesson, ...] | None:
        if judged.task.is_validation:
            return None
        return find_lessons(judged, settings=self._settings, num_cases=self._num_cases)

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
        for fields in state:
            # JSON turned the tuple into a list.
            asserts = tuple(fields["asserts"])
            lesson = {**fields, "asserts": asserts}
            self._lessons.append(Lesson(**lesson))


def find_lessons(judged: JudgedQuestion, *, settings: HindsightSettings, num_cases: int) -> tuple[Lesson, ...]:
    """Find the lessons of one judged question, without duplicates.

    Args:
        judged: the question. Only a program with a verdict on all cases gives lessons.
        settings: the settings; only ``max_break_rate`` is used.
        num_cases: K. Cases that the program passes fill a lesson up to K asserts.
    """
    # Later draws depend on the order of lessons, which a dict keeps and a set does not.
    lessons: dict[Lesson, None] = {}
    for candidate, on_all in zip(judged.candidates, judged.all_cases, strict=True):
        if candidate.source is None or on_all is None or candidate.verdict is None:
            continue
        met = [*candidate.verdict.history, *on_all.cases]
        # The dict counts a case only once if it was replayed and was also written in this step.
        cases = {case.id: case for case in met}.values()
        failed = [case for case in cases if case.outcome.failed and case.outcome not in _NO_LESSON]
        passed = [case for case in cases if not case.outcome.failed]
        # If many cases break a program, its own suites break it too, and the reward teaches that without lessons.
        if len(failed) > settings.max_break_rate * len(cases):
            continue
        for start in range(0, len(failed), num_cases):
            # The prompt asks for K asserts; a shorter suite would teach the Test LLM to write fewer.
            suite = [*failed[start : start + num_cases], *passed][:num_cases]
            lesson = Lesson(
                **judged.task.question.prompt_fields,
                candidate=candidate.source,
                asserts=tuple(f"assert {case.call} == {case.reference_value}" for case in suite),
            )
            lessons[lesson] = None
    return tuple(lessons)
