"""A question of the micro world as text: its reference, hidden tests, and each typical mistake with what detects it."""

from __future__ import annotations

from .mistakes import Mistake
from .operations import answer_or_none
from .world import MicroQuestion, assert_text


def describe(question: MicroQuestion) -> str:
    """A question, its reference and hidden tests, and each typical mistake with what catches it."""
    lines = [f"[{question.id}] {question.prompt}", question.reference, "hidden tests:"]
    lines += [f"    {test}" for test in question.hidden_tests]
    lines.append("typical mistakes, and what catches them:")
    lines += [f"    {mistake.name}: {_catch(question, mistake)}" for mistake in question.mistakes]
    return "\n".join(lines)


def _catch(question: MicroQuestion, mistake: Mistake) -> str:
    """The first hidden test that ``mistake`` fails; there always is one."""
    for x in question.hidden_inputs:
        right, wrong = question.operation.answer(x), answer_or_none(mistake.operation, x)
        if right != wrong:
            says = "raises an error" if wrong is None else f"answers {wrong}"
            return f"{assert_text(x, right)}  (it {says})"
    raise AssertionError(f"no hidden test of {question.id} catches {mistake.name!r}")
