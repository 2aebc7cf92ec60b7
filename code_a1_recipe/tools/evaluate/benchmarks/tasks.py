"""Problems for a Code LLM, and how a program is graded on each by asserts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from sandbox import CandidateVerdict, JudgeProcesses, Limits, RejectionReason, SandboxUnavailableError

from ....algorithm.question import UNNAMED, Question, request_for
from .own_evaluators import OwnEvaluator

MIB = 1 << 20
USUAL_LIMITS = Limits(min_cpu_seconds_per_case=0.05, load_cpu_seconds=10.0, memory_bytes=4096 * MIB)
"""The common part of the benchmarks' own limits; all of them give a program 4 GiB or so."""
FIRST_TESTS = 16
"""Asserts that every program meets; only programs that pass them meet the others."""
LATER_TESTS = 256


@dataclass(frozen=True, kw_only=True)
class CodeVerdict:
    """The verdict on one program for one problem."""

    passed: bool | None
    """None where no test of the problem can be judged: the reference answers none of them. Then nothing is known."""
    reason: str = ""
    """The first failure: an outcome and the call, or why it did not load; empty when it passed."""


Grades = list[CodeVerdict | SandboxUnavailableError]
"""One for each program; an outage takes the place of a verdict."""


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """The program in a response."""

    program: str | None = None
    failure: str = ""
    """Why it holds no program, or one that does not define what was asked for."""


class Grading(Protocol):
    """The tests of one problem."""

    def grade(self, programs: Sequence[str]) -> Grades:
        """In the order of ``programs``; an outage takes the place of a verdict. Blocks; called from many threads."""
        ...


@dataclass(frozen=True, kw_only=True)
class CodeTask:
    """One problem."""

    id: str
    data_source: str
    prompt: str
    entry_points: str = UNNAMED
    """The names that a program must define, in the words of prompts."""
    asked_names: tuple[str, ...] = ()
    """The same as names, where they are known."""
    reads_input: bool = False
    """It reads standard input and prints."""
    reference: str = ""
    """A right program, where the file has one."""
    entry_point: str = ""
    """The one function that is asked for; empty where it is another thing, or there are several."""
    extraction: Callable[[str], Extracted] | None = None
    """EvalPlus's sanitizer, called from many threads; may raise SandboxUnavailableError. None: as training extracts."""
    grading: Grading | None = None
    """The judge, or None where only the benchmark's own evaluator judges."""
    evaluator: OwnEvaluator | None = None
    """Gets the samples of this problem in a file."""
    official_id: str = ""
    """The problem's id in that file."""

    @classmethod
    def of(cls, question: Question, grading: Grading) -> "CodeTask":
        """Make a task of a question of training, with its one entry point where that is a plain function."""
        names = question.entry_points
        return cls(
            id=question.id,
            data_source=question.data_source or "questions",
            asked_names=question.asked_names,
            **question.prompt_fields,
            reference=question.reference,
            entry_point=names[0] if len(names) == 1 and names[0].isidentifier() else "",
            grading=grading,
        )


@dataclass(frozen=True, kw_only=True)
class AssertGrading:
    """Literal asserts, the reference's answers as the oracle.

    A program passes when it loads and answers like the reference in every test that is a valid case: what an assert
    expects wrongly is judged by the reference, as in training.
    """

    question: Question
    judges: JudgeProcesses
    holds_expected_outputs: bool = False
    """For references: a test that they contradict, or that is no valid case, fails them."""

    def grade(self, programs: Sequence[str]) -> Grades:
        """Grade as ``Grading`` says. All programs meet the first tests, and only the ones that pass meet the others."""
        found: dict[int, CodeVerdict | SandboxUnavailableError] = {}
        num_valid = [0] * len(programs)
        tests = self.question.tests
        borders = [0, *range(FIRST_TESTS, len(tests), LATER_TESTS), len(tests)]
        for start, end in pairwise(borders):
            left = [place for place in range(len(programs)) if place not in found]
            requests = [
                request_for(self.question, programs[place], tests[start:end], until_timeout=True) for place in left
            ]
            for place, result in zip(left, self.judges.judge_all(requests), strict=True):
                if isinstance(result, SandboxUnavailableError):
                    found[place] = result
                    continue
                num_valid[place] += result.suites[0].num_valid
                reason = self._failure(result)
                if reason and (num_valid[place] or self.holds_expected_outputs):
                    found[place] = CodeVerdict(passed=False, reason=reason)
        untested = CodeVerdict(passed=None, reason="no test of it can be judged")
        passed = CodeVerdict(passed=True)
        return [found.get(place, passed if num_valid[place] else untested) for place in range(len(programs))]

    def _failure(self, verdict: CandidateVerdict) -> str:
        """Why the program does not pass these tests; empty when it does."""
        if not verdict.loaded:
            return f"not loaded: {verdict.load_error[:200]}"
        suite = verdict.suites[0]
        for case in suite.cases:
            if case.outcome.failed:
                return f"{case.outcome.value}: {case.call[:200]}"
            if self.holds_expected_outputs and not case.expected_correct:
                return (
                    f"incorrect assertion: {case.call[:200]} is {case.reference_value[:80]}, not {case.expected[:80]}"
                )
        for one in suite.rejections if self.holds_expected_outputs else ():
            if one.reason is not RejectionReason.DUPLICATE:
                return f"{one.reason.value}: {one.text[:200]}"
        return ""
