"""Calls -> asserts that expect what the program under test returns; the calls run in the sandbox."""

from collections.abc import Sequence

from code_a1_recipe.algorithm.question import Question
from sandbox import CallStatus, Case, Gate, Limits, Program, ProgramResult, Role, Runner, to_literal

LIMITS = Limits()
MAX_ASKED = 64
"""Calls that are asked of the program, best first."""
NO_VALUE = "None"
"""Expected of a call that raises or hangs in the program under test, where such calls are kept."""


def observed_asserts(
    question: Question, program: str, calls: Sequence[str], *, num_asserts: int, keep_failing: bool, runner: Runner
) -> list[str]:
    """The first calls as asserts.

    Args:
        question: whose gate the calls must pass.
        program: the program under test.
        calls: best first; what is no call of plain literals, or repeats another, is passed over.
        num_asserts: at most so many.
        keep_failing: whether calls that give no value count. They are no valid tests of a reference, and the most
            telling ones of a buggy program; the judge takes the reference's value whatever is expected here.
        runner: runs the program.

    Returns:
        Texts of asserts; none where the program does not load.

    Raises:
        SandboxUnavailableError: the program could not be run.
    """
    gate = Gate(question.reference, question.entry_points, assert_chars=LIMITS.assert_chars)
    gated = [gate.call(text) for text in calls]
    cases = list({one.key: one for one in gated if isinstance(one, Case)}.values())[:MAX_ASKED]
    result = _answers(question, program, cases, runner)
    found = []
    for case, answer in zip(cases, result.results, strict=False):
        if answer.status is CallStatus.VALUE:
            found.append(f"assert {case.call.text} == {to_literal(answer.value)}")
        elif keep_failing:
            found.append(f"assert {case.call.text} == {NO_VALUE}")
    return [text for text in found if len(text) <= LIMITS.assert_chars][:num_asserts]


def calls_of(question: Question, asserts: Sequence[str]) -> list[str]:
    """The calls of a suite, in order, without what it expects; of asserts that are valid by their text."""
    gate = Gate(question.reference, question.entry_points, assert_chars=LIMITS.assert_chars)
    return [case.call.text for case in gate.suite(tuple(asserts)).cases]


def _answers(question: Question, program: str, cases: Sequence[Case], runner: Runner) -> ProgramResult:
    asked = Program(
        prelude=question.prelude,
        source=program,
        calls=tuple(case.call for case in cases),
        limits=LIMITS,
        max_timeouts_without_result=len(cases) + 1,
    )
    return runner.run(asked, role=Role.CANDIDATE)
