"""Grading by tests that run in the program's own process.

Some tests cannot be taken out of it: mocks, files, plots, list nodes, helper functions. Here program and tests are one
source in one confined process, which tells us itself how the tests went.

**A program can read the expected values there, and could forge the outcome.** That is fine for evaluating a model that
was not trained on this verdict; the published figures of such benchmarks are made that way. It must never be a
training reward: use the judge of ``sandbox``, whose expected values stay outside.

Whether a test can pass here also depends on this machine: no network, no further processes, which libraries and data
are installed. So every reference is run first, and a problem whose own reference fails is left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from sandbox import Answer, AnswerKind, Call, Lane, Limits, Program, Runner, SandboxUnavailableError

from ..score_file import ScoreFile
from .code_tasks import CodeTask, CodeVerdict

REFERENCES = "references.jsonl"
"""In the output folder: whether each reference passes its own tests here. Failures are tried again each time."""
_COMPLETED = (AnswerKind.VALUE, AnswerKind.UNENCODABLE, AnswerKind.OUTPUT_LIMIT)


def failure_of_call(call: str, answer: Answer) -> str:
    """Why a call of a test failed: it raised, hung or died; empty where it returned, whatever it returned."""
    return "" if answer.kind in _COMPLETED else f"{answer.kind.value}: {call[:100]} {answer.detail[:200]}".strip()


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
    failure_of: Callable[[str, Answer], str] = failure_of_call
    """Of a call and its answer: why it failed, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessGrading:
    """See the module for what its verdicts are good for."""

    tests: InProcessTests
    reference: str
    """A program that should pass."""
    runner: Runner

    def grade(self, programs: Sequence[str]) -> list[CodeVerdict | SandboxUnavailableError]:
        """As ``code_tasks.Grading``."""
        return [self._graded(program) for program in programs]

    def check_reference(self) -> CodeVerdict:
        """Whether the reference passes on this machine.

        Raises:
            SandboxUnavailableError: it could not be run.
        """
        return self._run(self.reference, Lane.REFERENCE)

    @property
    def key(self) -> str:
        """Changes with the tests and with the reference."""
        texts = (self.tests.before, self.tests.after, *self.tests.calls, self.reference)
        return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def _graded(self, program: str) -> CodeVerdict | SandboxUnavailableError:
        try:
            return self._run(program, Lane.CANDIDATE)
        except SandboxUnavailableError as error:
            return error

    def _run(self, program: str, lane: Lane) -> CodeVerdict:
        tests = self.tests
        request = Program(
            prelude=tests.before,
            source=f"{program}\n{tests.after}\n",
            calls=tuple(Call(expression=call) for call in tests.calls),
            reference_cpu_seconds=(0.0,) * len(tests.calls),
            limits=tests.limits,
            barren_timeouts=1,
        )
        result = self.runner.run(request, lane=lane)
        if not result.loaded:
            return CodeVerdict(passed=False, reason=f"not loaded: {result.load_error[:200]}")
        failures = map(tests.failure_of, tests.calls, result.answers)
        reason = next(filter(None, failures), "")
        return CodeVerdict(passed=not reason, reason=reason)


def failing_references(tasks: Sequence[CodeTask], folder: Path, *, num_workers: int) -> dict[str, str]:
    """The tasks whose reference fails its own tests on this machine, and why; kept in ``folder`` and taken up again.

    Tasks that are graded otherwise are passed over.

    Raises:
        SandboxUnavailableError: a reference could not be run.
        ScoreFileError: the folder cannot be written.
    """
    gradings = {task.id: task.grading for task in tasks if isinstance(task.grading, InProcessGrading)}
    if not gradings:
        return {}
    with ScoreFile(folder / REFERENCES, settings={}, key="key") as output:
        left = {
            name: grading
            for name, grading in gradings.items()
            if grading.key not in output or not output.row(grading.key)["passed"]
        }
        _check(left, output, num_workers=num_workers, num_all=len(gradings))
        output.sort()
        rows = {name: output.row(grading.key) for name, grading in gradings.items()}
    return {name: str(row["reason"]) for name, row in rows.items() if not row["passed"]}


def _check(gradings: Mapping[str, InProcessGrading], output: ScoreFile, *, num_workers: int, num_all: int) -> None:
    threads = ThreadPoolExecutor(num_workers, thread_name_prefix="reference")
    try:
        futures = {threads.submit(grading.check_reference): name for name, grading in gradings.items()}
        done = num_all - len(gradings)
        with tqdm(total=num_all, initial=done, unit="reference", desc="references", disable=None) as bar:
            for future in as_completed(futures):
                name, verdict = futures[future], future.result()
                row = {"key": gradings[name].key, "question": name, "passed": verdict.passed, "reason": verdict.reason}
                output.append(row)
                bar.update()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
