"""Problems for a Code LLM, and how asserts grade programs on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from sandbox import CandidateVerdict, JudgeProcesses, RejectionReason, SandboxUnavailableError

from ....algorithm.question import UNNAMED, Question, request_for
from .own_evaluators import OwnEvaluator

FIRST_TESTS = 16
"""Number of asserts that every program meets. Only programs that pass them meet the others."""
LATER_TESTS = 256
"""Number of asserts in every later request."""


@dataclass(frozen=True, kw_only=True)
class CodeVerdict:
    """The verdict on one program for one problem."""

    passed: bool | None
    """None where the reference answers no test of the problem, so nothing is known about the program."""
    reason: str = ""
    """The first failure: an outcome with its call, or why the program does not load. Empty for a passed program."""


Grades = list[CodeVerdict | SandboxUnavailableError]
"""Verdicts in the order of the programs; after an outage the error takes the place of a verdict."""


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """The program in a response."""

    program: str | None = None
    failure: str = ""
    """Why the response holds no program that defines the asked names."""


class Grading(Protocol):
    """The tests of one problem."""

    def grade(self, programs: Sequence[str]) -> Grades:
        """Grade programs, in their order. It blocks, and many threads call it."""
        ...


@dataclass(frozen=True, kw_only=True)
class CodeTask:
    """A problem for a Code LLM."""

    id: str
    data_source: str
    prompt: str
    entry_points: str = UNNAMED
    """The names that a program must define, as prompts list them."""
    asked_names: tuple[str, ...] = ()
    """The same names as identifiers, where they are known."""
    reads_input: bool = False
    """True if programs read standard input and print."""
    reference: str = ""
    """A correct program, where the file has one."""
    entry_point: str = ""
    """The single function that is asked for; empty where the problem asks for something else."""
    extraction: Callable[[str], Extracted] | None = None
    """EvalPlus's sanitizer, or None for extraction as in training.

    Many threads call it, and it may raise SandboxUnavailableError.
    """
    grading: Grading | None = None
    """What grades programs; None where only the benchmark's own evaluator does."""
    evaluator: OwnEvaluator | None = None
    """The benchmark's own evaluator, which gets the samples in a file."""
    official_id: str = ""
    """The problem's id in that file."""

    @classmethod
    def of(cls, question: Question, grading: Grading) -> "CodeTask":
        """Make a task of a question as training reads it."""
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
    """Grades by literal asserts, with the reference's answers as the oracle.

    A program passes if it loads and answers like the reference in every test that is a valid case. As in training, the
    reference decides, also where an assert expects another output.
    """

    question: Question
    judges: JudgeProcesses
    holds_expected_outputs: bool = False
    """True for references: a test that contradicts them, or that is no valid case, fails them."""

    def grade(self, programs: Sequence[str]) -> Grades:
        """Grade as ``Grading`` says. All programs meet the first tests, and only programs that pass meet the others."""
        decided: dict[int, CodeVerdict | SandboxUnavailableError] = {}
        num_valid = [0] * len(programs)
        tests = self.question.tests
        borders = [0, *range(FIRST_TESTS, len(tests), LATER_TESTS), len(tests)]
        for start, end in pairwise(borders):
            left = [index for index in range(len(programs)) if index not in decided]
            requests = [
                request_for(self.question, programs[index], tests[start:end], until_timeout=True) for index in left
            ]
            for index, result in zip(left, self.judges.judge_all(requests), strict=True):
                if isinstance(result, SandboxUnavailableError):
                    decided[index] = result
                    continue
                num_valid[index] += result.suites[0].num_valid
                reason = self._failure(result)
                # Without a valid test nothing is known, also of a program that does not load.
                if reason and (num_valid[index] or self.holds_expected_outputs):
                    decided[index] = CodeVerdict(passed=False, reason=reason)
        untested = CodeVerdict(passed=None, reason="no test of it can be judged")
        passed = CodeVerdict(passed=True)
        return [decided.get(index, passed if valid else untested) for index, valid in enumerate(num_valid)]

    def _failure(self, verdict: CandidateVerdict) -> str:
        """Say why the program does not pass these tests; empty if it passes."""
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
