"""Do the calls of a suite tell a buggy program from its reference? The expected values as written do not matter."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from code_a1_recipe.algorithm.question import Question, request_for
from code_a1_recipe.applications.bug_finder.inputs import Suites, Target
from code_a1_recipe.applications.bug_finder.options import AttackOptions
from code_a1_recipe.applications.bug_finder.run import run_attack
from code_a1_recipe.data.reader import read_rows
from code_a1_recipe.errors import InputError
from code_a1_recipe.jobs.confinement import JudgeAll
from code_a1_recipe.test_quality.metrics import verdicts_of
from reward_fns import ExtractionFailure, extract_suite
from sandbox import Runner

FOUND = "fails, or tests contradict it"
"""Part of the report of an attack that found a bug."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """One buggy program and one suite."""

    question: str
    num_asserts: int
    num_valid: int
    """Distinct asserts whose call the reference answers with a value."""
    num_correct: int
    """Of them, those that expect the reference's value."""
    by_calls: bool
    """The program answers one of the valid calls otherwise than the reference, whatever was expected."""
    as_written: bool
    """It fails a correct assertion."""
    by_attack: bool | None = None
    """``code-a1 attack`` finds it, from these calls and small changes of them; None where it was not asked."""


def read_written(path: Path) -> dict[str, list[str]]:
    """Question -> responses, of a file of ``write``, or of the ``responses.jsonl`` of ``code-a1 eval test``.

    Raises:
        InputError: a row is neither.
    """
    found: dict[str, list[str]] = {}
    for index, row in enumerate(read_rows(path)):
        name, texts = row.get("question", row.get("session")), row.get("responses", [row.get("text")])
        if not isinstance(name, str) or not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
            raise InputError(
                f"{path}: row {index} must hold 'question' and 'responses', or 'session' and 'text' as stored "
                f"responses do, got the columns {sorted(row)}"
            )
        found.setdefault(name, []).extend(texts)
    return found


def first_suites(
    questions: Sequence[Question], written: Mapping[str, Sequence[str]], num_asserts: int
) -> list[list[str]]:
    """[questions] the asserts of each question's first response; none where that is missing, or has no assert."""
    found = []
    for question in questions:
        texts = written.get(question.id, ())
        suite = extract_suite(texts[0], max_asserts=num_asserts) if texts else ()
        found.append([] if isinstance(suite, ExtractionFailure) else list(suite))
    return found


def detect(question: Question, asserts: Sequence[str], judge_all: JudgeAll, runner: Runner | None) -> Detection:
    """Judge a suite on the question's first buggy program.

    Args:
        question: with its right reference.
        asserts: written for the buggy program.
        judge_all: of judge processes.
        runner: for an attack as well; None: none.

    Raises:
        SandboxUnavailableError: something could not be judged.
    """
    buggy = question.buggy_programs[0]
    cases: list[Any] = []
    if asserts:
        (verdict,) = verdicts_of(judge_all, [request_for(question, buggy, asserts)])
        cases = [case for suite in verdict.suites for case in suite.cases]
    return Detection(
        question=question.id,
        num_asserts=len(asserts),
        num_valid=len(cases),
        num_correct=sum(case.expected_correct for case in cases),
        by_calls=any(case.outcome.failed for case in cases),
        as_written=any(case.outcome.failed and case.expected_correct for case in cases),
        by_attack=None if runner is None else _attacked(question, asserts, runner),
    )


def _attacked(question: Question, asserts: Sequence[str], runner: Runner) -> bool:
    """Whether the bug finder finds the bug from these asserts; no assert that is a test finds nothing."""
    if not asserts:
        return False
    options = AttackOptions(solution=Path("program.py"), reference=Path("reference.py"), max_calls=300, max_bugs=1)
    with tempfile.TemporaryDirectory() as folder:
        target = Target(
            options=options,
            source=question.buggy_programs[0],
            entry=question.entry_points[0],
            reference=question.reference,
            candidates=(),
            output=Path(folder, "test_bugs.py"),
        )
        try:
            report = run_attack(target, Suites.of([tuple(asserts)]), runner)
        except InputError:
            return False
    return FOUND in report.failure
