"""What a reward function gets and what it returns: the same for the paper's rewards and for a user's.

Axes: C candidates of a question, S suites of a candidate, K cases that a suite is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from .breakdown import Breakdown
from .sandbox_seam import CandidateVerdict, JudgeRequest, SuiteVerdict


@dataclass(frozen=True, kw_only=True)
class JudgedCandidate:
    """One candidate of a question with everything that the judge found about it."""

    source: str | None
    """The program; None after an extraction failure, whose verdict says that nothing loaded."""
    verdict: CandidateVerdict | None
    """The suites written for this program in ``suites``, the Mistake Book's replays in ``history``. None where nothing
    may be rewarded: after an outage, or where the program was too long to be shown to the Test LLM."""
    suite_texts: tuple[str, ...] = ()
    """Response text of each suite that the Test LLM wrote for this program, in the order of ``verdict.suites``. Empty
    where it wrote none: after an extraction failure, and with the dataset's own tests."""
    response_tokens: int = 0
    """Length of the response that the program came from; 0 where it is not known."""
    is_truncated: bool = False
    """The response ended at its limit and not by itself."""
    suite_tokens: tuple[int, ...] = ()
    """Length of each suite's response, in the order of ``suite_texts``."""
    suite_is_truncated: tuple[bool, ...] = ()
    """Whether each of these responses ended at its limit."""
    pooled: SuiteVerdict | None = None
    """The program on all cases written for any program of the question, with ``rewards.code_tests=pooled``."""

    @property
    def code_verdict(self) -> CandidateVerdict | None:
        """What the Code LLM is rewarded on: the verdict, or with pooled cases those as its only suite."""
        if self.verdict is None or self.pooled is None:
            return self.verdict
        return replace(self.verdict, suites=(self.pooled,))


@dataclass(frozen=True, kw_only=True)
class QuestionVerdicts:
    """All programs and suites of one question, judged: the argument of every reward function."""

    question_id: str
    num_cases: int
    """K."""
    candidates: tuple[JudgedCandidate, ...]
    """C of them, in the order in which they were sampled."""
    reference: JudgeRequest | None = None
    """The reference with its prelude, entry points and kind, as a request without a program: ``replace`` makes of it
    one that asks the judge more. None in a question made by hand."""


class CodeReward(Protocol):
    """Rewards the Code LLM. Keyword arguments beside the question come from ``rewards.code.kwargs``."""

    def __call__(self, question: QuestionVerdicts, /) -> Sequence[Breakdown | None]:
        """One reward for each candidate; None where there is nothing to reward, always so without a verdict."""


class TestReward(Protocol):
    """Rewards the Test LLM. Keyword arguments beside the question come from ``rewards.test.kwargs``."""

    def __call__(self, question: QuestionVerdicts, /) -> Sequence[Sequence[Breakdown | None]]:
        """For each candidate one reward for each of its ``suite_texts``; None as for the Code LLM."""
