"""HumanEval, LeetCodeDataset and MBPP graded by the whole test source of a row, in the program's own process.

**A program can read the expected values there, and could forge the outcome**: for evaluating a model that was not
trained on this verdict, never a training reward. evaluation/README.md says what is run and why.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sandbox import CallResult, CallStatus, Role, Runner, SandboxUnavailableError

from ...data.native_row import Row, list_of, text_of
from ...data.reader import iter_rows, read_each, read_questions
from ...errors import RowError
from ...files import fingerprint
from ...jobs.jsonl_store import JsonlStore, Row as StoredRow
from ...jobs.judge_loop import judge_into
from ..benchmarks.tasks import MIB, USUAL_LIMITS, CodeTask, CodeVerdict, grade_each, plain_program

CHECK_LIMITS = replace(
    USUAL_LIMITS, cpu_seconds_per_case=20.0, wall_seconds_per_case=20.0, total_seconds=60.0, source_bytes=16 * MIB
)
"""Of one program. A call is a whole ``check`` with all of its asserts, or one assert of MBPP."""
REFERENCES = "references.jsonl"
"""In the output folder: whether each reference passes its own tests here. Failures are tried again each time."""
_COMPLETED = (CallStatus.VALUE, CallStatus.UNENCODABLE, CallStatus.OUTPUT_LIMIT)


def _failure(call: str, answer: CallResult) -> str:
    """Why a call of a test failed: it raised, hung or died; empty where it returned, whatever it returned."""
    return "" if answer.status in _COMPLETED else f"{answer.status.value}: {call[:100]} {answer.detail[:200]}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessGrading:
    """The tests of one problem, as source around a program's; see the module for what its verdicts are good for."""

    before: str = ""
    """Executed before the program, in its namespace."""
    after: str = ""
    """Put after the program, into the same source."""
    calls: tuple[str, ...]
    """Expressions to evaluate then, one after another."""
    reference: str
    """A program that should pass."""
    runner: Runner

    def grade(self, programs: Sequence[str]) -> list[CodeVerdict | SandboxUnavailableError]:
        """As ``tasks.Grading``."""
        return grade_each(programs, functools.partial(self._run, role=Role.CANDIDATE))

    def check_reference(self) -> CodeVerdict:
        """Whether the reference passes on this machine.

        Raises:
            SandboxUnavailableError: it could not be run.
        """
        return self._run(self.reference, Role.REFERENCE)

    @property
    def key(self) -> str:
        """Changes with the tests and with the reference."""
        return fingerprint(self.before, self.after, *self.calls, self.reference)

    def _run(self, program: str, role: Role) -> CodeVerdict:
        source = f"{program}\n{self.after}\n"
        request = plain_program(source, self.calls, limits=CHECK_LIMITS, prelude=self.before)
        result = self.runner.run(request, role=role)
        if not result.loaded:
            return CodeVerdict(passed=False, reason=f"not loaded: {result.load_error[:200]}")
        reason = next(filter(None, map(_failure, self.calls, result.results)), "")
        return CodeVerdict(passed=not reason, reason=reason)


def _of_check(row: Row) -> dict[str, Any]:
    """HumanEval and LeetCodeDataset: ``check`` is called with the program's function."""
    calls = (f"check({text_of(row, 'entry_point')})",)
    return {"before": text_of(row, "prompt"), "after": text_of(row, "test"), "calls": calls}


def _of_mbpp(row: Row) -> dict[str, Any]:
    setup = row.get("test_setup_code") or "\n".join(row.get("test_imports") or [])
    if not isinstance(setup, str):
        raise RowError("test_setup_code", f"must be a text, got {type(setup).__name__}")
    return {"after": setup, "calls": tuple(f"exec({text.strip()!r})" for text in list_of(row, "test_list"))}


SOURCES: dict[str, Callable[[Row], dict[str, Any]]] = {
    "humaneval": _of_check,
    "leetcode": _of_check,
    "mbpp": _of_mbpp,
    "mbpp_sanitized": _of_mbpp,
}
"""Names of ``data.formats.ADAPTERS`` whose rows have a test source, and the fields of the grading that it gives."""


def check_tasks(path: Path, runner: Runner, *, adapter: str = "auto") -> list[CodeTask]:
    """All problems of a file that one of ``SOURCES`` reads.

    Raises:
        InputError: the file cannot be read, or a row breaks a rule.
    """
    loaded = read_questions(path, adapter=adapter)
    tests_of_rows = read_each(iter_rows(path), SOURCES[loaded.adapter], where=path)
    return [
        CodeTask.of(question, InProcessGrading(**tests, reference=question.reference, runner=runner))
        for tests, question in zip(tests_of_rows, loaded.questions, strict=True)
    ]


def failing_references(tasks: Sequence[CodeTask], folder: Path, *, num_workers: int) -> dict[str, str]:
    """The tasks whose reference fails its own tests on this machine, and why; kept in ``folder`` for the next time.

    Tasks that are graded otherwise are passed over.

    Raises:
        SandboxUnavailableError: a reference could not be run.
        OutputError: the folder cannot be written.
    """
    gradings = {task.id: task.grading for task in tasks if isinstance(task.grading, InProcessGrading)}
    if not gradings:
        return {}
    with JsonlStore(folder / REFERENCES, settings={}, key="key") as output:
        left = {
            name: grading
            for name, grading in gradings.items()
            if grading.key not in output or not output.row(grading.key)["passed"]
        }
        judge_into(
            output,
            list(left.items()),
            lambda one: [_reference_row(*one)],
            num_threads=num_workers,
            total=len(gradings),
            what="references",
            unit="reference",
        )
        output.sort()
        rows = {name: output.row(grading.key) for name, grading in gradings.items()}
    return {name: str(row["reason"]) for name, row in rows.items() if not row["passed"]}


def _reference_row(name: str, grading: InProcessGrading) -> StoredRow:
    verdict = grading.check_reference()
    return {"key": grading.key, "question": name, "passed": verdict.passed, "reason": verdict.reason}
