"""Grading by tests that run in the program's own process.

Some tests cannot be taken out of it: mocks, files, plots, list nodes, helper functions. Here program and tests are one
source in one confined process, which tells us itself how the tests went.

**A program can read the expected values there, and could forge the outcome.** That is fine for evaluating a model that
was not trained on this verdict; the published figures of such benchmarks are made that way. It must never be a
training reward: use the judge of ``sandbox``, whose expected values stay outside.

Whether a test can pass here also depends on this machine: no network, no further processes, which libraries and data
are installed. So every reference is run first, and a problem whose own reference fails is left out.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox import CallResult, CallStatus, Limits, Role, Runner, SandboxUnavailableError

from ...files import fingerprint
from ...jobs.jsonl_store import JsonlStore, Row
from ...jobs.judge_loop import judge_into
from ..benchmarks.tasks import CodeTask, CodeVerdict, grade_each, plain_program

REFERENCES = "references.jsonl"
"""In the output folder: whether each reference passes its own tests here. Failures are tried again each time."""
_COMPLETED = (CallStatus.VALUE, CallStatus.UNENCODABLE, CallStatus.OUTPUT_LIMIT)


def _failure(call: str, answer: CallResult) -> str:
    """Why a call of a test failed: it raised, hung or died; empty where it returned, whatever it returned."""
    return "" if answer.status in _COMPLETED else f"{answer.status.value}: {call[:100]} {answer.detail[:200]}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessTests:
    """The tests of one problem, as source around a program's."""

    before: str = ""
    """Executed before the program, in its namespace."""
    after: str = ""
    """Put after the program, into the same source."""
    calls: tuple[str, ...]
    """Expressions to evaluate then, one after another."""
    limits: Limits
    """``cpu_seconds_per_case`` is for one of the calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessGrading:
    """See the module for what its verdicts are good for."""

    tests: InProcessTests
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
        return fingerprint(self.tests.before, self.tests.after, *self.tests.calls, self.reference)

    def _run(self, program: str, role: Role) -> CodeVerdict:
        tests = self.tests
        source = f"{program}\n{tests.after}\n"
        request = plain_program(source, tests.calls, limits=tests.limits, prelude=tests.before)
        result = self.runner.run(request, role=role)
        if not result.loaded:
            return CodeVerdict(passed=False, reason=f"not loaded: {result.load_error[:200]}")
        failures = map(_failure, tests.calls, result.results)
        reason = next(filter(None, failures), "")
        return CodeVerdict(passed=not reason, reason=reason)


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


def _reference_row(name: str, grading: InProcessGrading) -> Row:
    verdict = grading.check_reference()
    return {"key": grading.key, "question": name, "passed": verdict.passed, "reason": verdict.reason}
