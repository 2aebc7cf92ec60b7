"""Arguments and results of reward functions; the same types serve the paper's functions and a user's.

Axes: C candidates of a question, S suites of a candidate, K cases that a suite is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from .breakdown import Breakdown
from .sandbox_seam import CandidateVerdict, JudgeRequest, SuiteVerdict


@dataclass(frozen=True, kw_only=True)
class JudgedCandidate:
    """One candidate of a question with all results of the judge."""

    source: str | None
    """The program; None after an extraction failure, whose verdict says that nothing loaded."""
    verdict: CandidateVerdict | None
    """The judge's verdict: ``suites`` has the suites written for this program, ``history`` the Mistake Book's replays.
    None where nothing may be rewarded: after an outage, or where the Test LLM's prompt had no room for the program."""
    suite_texts: tuple[str, ...] = ()
    """Response text of each suite that the Test LLM wrote for this program, in the order of ``verdict.suites``. Empty
    after an extraction failure, and with the dataset's own tests, for which the Test LLM writes nothing."""
    response_tokens: int = 0
    """Length of the program's response; 0 where it is not known."""
    is_truncated: bool = False
    """A limit cut the response off."""
    suite_tokens: tuple[int, ...] = ()
    """Length of each suite's response, in the order of ``suite_texts``."""
    suite_is_truncated: tuple[bool, ...] = ()
    """For each of these responses, whether a limit cut it off."""
    pooled: SuiteVerdict | None = None
    """The verdict on all cases written for any program of the question, with ``rewards.code_tests=pooled``."""

    @property
    def code_verdict(self) -> CandidateVerdict | None:
        """The verdict that rewards the Code LLM; pooled cases, where there are some, are its only suite."""
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
    """C candidates in the order in which they were sampled."""
    reference: JudgeRequest | None = None
    """A request without a program, with the reference, its prelude, entry points and kind. By ``replace``, a reward
    function can make further requests from it. None in a question made by hand."""


class CodeReward(Protocol):
    """Rewards the Code LLM. Keyword arguments beside the question come from ``rewards.code.kwargs``."""

    def __call__(self, question: QuestionVerdicts, /) -> Sequence[Breakdown | None]:
        """One reward for each candidate; None where there is nothing to reward, and always without a verdict."""


class TestReward(Protocol):
    """Rewards the Test LLM. Keyword arguments beside the question come from ``rewards.test.kwargs``."""

    def __call__(self, question: QuestionVerdicts, /) -> Sequence[Sequence[Breakdown | None]]:
        """For each candidate one reward for each of its ``suite_texts``; None as for the Code LLM."""
