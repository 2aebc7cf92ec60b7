"""Hindsight: cases that would have broken a program become lessons, a supervised term of the Test LLM's update.

Not in the paper. A program that few of the cases written for its question break, and the cases that do, are a pair to
imitate: (question, program) -> these calls with the oracle's answers. No further sampling and no hidden test is needed,
and the lesson is there also where no suite of the program's own group broke it, so that GRPO has no gradient. The idea
of relabelling in hindsight is Andrychowicz et al., arXiv 1707.01495; imitation of what succeeded is expert iteration.

Axes: K cases of a suite.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated

from pydantic import Field

from sandbox import CaseOutcome

from .episode_types import CandidateResult, Message
from .question import Question
from .sampling import beginning_of_answer
from .settings_block import Block, Rate

_FENCE = "```"
_NO_LESSON = (CaseOutcome.NOT_LOADED, CaseOutcome.TIMED_OUT)


class HindsightSettings(Block):
    weight: Annotated[float, Field(ge=0)] = 0.0
    """Advantage of a lesson's tokens, where those of a group's suites spread by 1; 0: no lessons."""
    max_break_rate: Rate = 0.15
    """Share of a question's cases that may break a program for it to be a lesson: what most cases break is easy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One suite to imitate."""

    prompt: str
    entry_points: str
    reads_input: bool = False
    """These three of the question, as in its ``prompt_fields``."""
    candidate_source: str
    asserts: tuple[str, ...]
    """At most K, those that break the program first, all right as written."""

    def answer(self, messages: Sequence[Message]) -> str:
        """What the Test LLM should have said to its prompt, from where the prompt ends.

        In a block of code where the prompt shows one; empty where the prompt begins an answer in another way.
        """
        text = "\n".join(self.asserts)
        if any(_FENCE in message["content"] for message in messages):
            text = f"{_FENCE}python\n{text}\n{_FENCE}"
        # The prompt's own tokens are not trained, so the lesson must go on exactly where they end.
        beginning = beginning_of_answer(messages)
        return text.removeprefix(beginning) if text.startswith(beginning) else ""


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
        # By key, so that a case that was replayed and written anew counts once.
        cases = list({case.key or case.call: case for case in met}.values())
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
            lesson = Lesson(**question.prompt_fields, candidate_source=candidate.source, asserts=asserts)
            found[lesson] = None
    return tuple(found)


def draw_lessons(lessons: Collection[Lesson], num: int, *, seed: str) -> tuple[Lesson, ...]:
    """At most ``num`` of the lessons, uniformly, without repetition; they depend on the arguments alone."""
    return tuple(Random(seed).sample(list(lessons), min(num, len(lessons))))
