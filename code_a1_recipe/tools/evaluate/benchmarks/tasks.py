"""Problems for a Code LLM, and grading by asserts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from sandbox import CandidateVerdict, JudgeProcesses, RejectionReason, SandboxUnavailableError

from ....algorithm.question import UNNAMED, Question, request_for
from .own_evaluators import OwnEvaluator

FIRST_TESTS = 16
"""Number of asserts in the first request. Only a program that passes the first request gets later requests."""
LATER_TESTS = 256
"""Number of asserts in each later request."""


@dataclass(frozen=True, kw_only=True)
class CodeVerdict:
    """The verdict on one program for one problem."""

    passed: bool | None
    """None if the reference answers no test of the problem, so that nothing is known about the program."""
    reason: str = ""
    """The first failure: an outcome with its call, or the error of loading. Empty if the program passed."""


Grades = list[CodeVerdict | SandboxUnavailableError]
"""Verdicts in the order of the programs. After an outage, the error stands in place of the verdict."""


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """The program of a response."""

    program: str | None = None
    failure: str = ""
    """The reason why the response has no program with the asked names. Empty if it has such a program."""


class Grading(Protocol):
    """The tests of one problem."""

    def grade(self, programs: Sequence[str]) -> Grades:
        """Grade programs and return verdicts in the same order. Many threads call this method, and it blocks."""
        ...


@dataclass(frozen=True, kw_only=True)
class CodeTask:
    """A problem for a Code LLM."""

    id: str
    data_source: str
    prompt: str
    entry_points: str = UNNAMED
    """Part of the prompt that lists the names that a program must define."""
    asked_names: tuple[str, ...] = ()
    """Identifiers that a program must define; empty if they are unknown."""
    reads_input: bool = False
    """True if programs read standard input and print their answer."""
    reference: str = ""
    """A correct program; empty if the file has none."""
    entry_point: str = ""
    """Name of the single function that the problem asks for; empty for another kind of problem."""
    extraction: Callable[[str], Extracted] | None = None
    """EvalPlus's sanitizer, or None for extraction as in training.

    Many threads call this function, and it may raise SandboxUnavailableError.
    """
    grading: Grading | None = None
    """The tests that grade programs. None if only the benchmark's own evaluator judges programs."""
    evaluator: OwnEvaluator | None = None
    """The benchmark's own evaluator, for which a file of samples is written."""
    official_id: str = ""
    """The problem's id in the file of samples."""

    @classmethod
    def of(cls, question: Question, grading: Grading) -> "CodeTask":
        """Make a task from a question."""
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
    """Grades by asserts with literal values. The reference's answers are the oracle.

    A program passes if it loads and answers every valid test like the reference. As in training, the reference decides,
    even if an assert expects another output.
    """

    question: Question
    judges: JudgeProcesses
    holds_expected_outputs: bool = False
    """True if the graded programs are references. A reference fails if a test contradicts it or is no valid case."""

    def grade(self, programs: Sequence[str]) -> Grades:
        """Grade as ``Grading`` says. Only programs that pass the first tests run on the later tests."""
        decided: dict[int, CodeVerdict | SandboxUnavailableError] = {}
        num_valid = [0] * len(programs)
        tests = self.question.tests
        borders = [0, *range(FIRST_TESTS, len(tests), LATER_TESTS), len(tests)]
        for start, end in pairwise(borders):
            left = [index for index in range(len(programs)) if index not in decided]
            requests = [
                request_for(self.question, programs[index], tests[start:end], given=True, until_timeout=True)
                for index in left
            ]
            for index, result in zip(left, self.judges.judge_all(requests), strict=True):
                if isinstance(result, SandboxUnavailableError):
                    decided[index] = result
                    continue
                num_valid[index] += result.suites[0].num_valid
                reason = self._failure(result)
                # Without a valid test nothing is known, even about a program that does not load.
                if reason and (num_valid[index] or self.holds_expected_outputs):
                    decided[index] = CodeVerdict(passed=False, reason=reason)
        untested = CodeVerdict(passed=None, reason="no test of it can be judged")
        passed = CodeVerdict(passed=True)
        return [decided.get(index, passed if valid else untested) for index, valid in enumerate(num_valid)]

    def _failure(self, verdict: CandidateVerdict) -> str:
        """Return the reason why the program does not pass these tests, or "" if it passes."""
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
        for rejection in suite.rejections if self.holds_expected_outputs else ():
            if rejection.reason is not RejectionReason.DUPLICATE:
                return f"{rejection.reason.value}: {rejection.text[:200]}"
        return ""
