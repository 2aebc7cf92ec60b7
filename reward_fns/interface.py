"""Arguments and results of reward functions. The paper's functions and a user's own functions have the same types.

Axes: C candidates of a question, S suites of a candidate, K cases that a suite is asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from sandbox import CandidateVerdict, SuiteVerdict

from .breakdown import Breakdown

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class JudgedCandidate:
    """One candidate of a question with all results of the judge."""

    source: str | None
    """The program; None after an extraction failure."""
    verdict: CandidateVerdict | None
    """The judge's verdict. ``suites`` has the suites that were written for this program, and ``history`` has the
    replays from the Mistake Book. The verdict is None if no reward may be given: after an outage, or if the Test LLM's
    prompt had no room for the program."""
    suite_texts: tuple[str, ...] = ()
    """Response text of each suite that the Test LLM wrote for this program, in the order of ``verdict.suites``. Empty
    after an extraction failure, and if the Code LLM is rewarded on the dataset's own tests."""
    response_tokens: int = 0
    """Length of the program's response; 0 if it is unknown."""
    pooled: SuiteVerdict | None = None
    """With ``rewards.code_tests=pooled``, the verdict on all cases that were written for any program of the
    question."""

    @property
    def code_verdict(self) -> CandidateVerdict | None:
        """The verdict that rewards the Code LLM. If ``pooled`` is set, then ``pooled`` is the only suite of this
        verdict."""
        if self.verdict is None or self.pooled is None:
            return self.verdict
        return replace(self.verdict, suites=(self.pooled,))


@dataclass(frozen=True, kw_only=True)
class QuestionVerdicts:
    """The judged programs and suites of one question: the argument of every reward function."""

    question_id: str
    num_cases: int
    """K."""
    candidates: tuple[JudgedCandidate, ...]
    """The C candidates, in the order of sampling."""


class CodeReward(Protocol):
    """Rewards the Code LLM. Keyword arguments of the function come from ``rewards.code.kwargs``."""

    def __call__(self, question: QuestionVerdicts, /) -> Sequence[Breakdown | None]:
        """Return one reward for each candidate, or None for no reward. A candidate without a verdict must get None."""


class TestReward(Protocol):
    """Rewards the Test LLM. Keyword arguments of the function come from ``rewards.test.kwargs``."""

    def __call__(self, question: QuestionVerdicts, /) -> Sequence[Sequence[Breakdown | None]]:
        """Return a list for each candidate, with one reward, or None, for each of the candidate's ``suite_texts``."""


def lookup(name: str, table: Mapping[str, T], *, what: str) -> T:
    """Return ``table[name]``.

    Args:
        name: the name that the user gave.
        table: values by the known names.
        what: noun for the message, such as "code reward".

    Raises:
        ValueError: the name is unknown. The message lists the known names.
    """
    if name not in table:
        raise ValueError(f"unknown {what} {name!r}; known: {', '.join(sorted(table))}")
    return table[name]
