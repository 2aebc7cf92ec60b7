"""What our judge and EvalPlus's own say about one program, and why they differ where they do."""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass
from typing import Any

from code_a1_recipe.evaluation.benchmarks.evalplus import Comparison, EvalPlusProblem, prepare
from code_a1_recipe.evaluation.scoring.evalplus_judge import EvalPlusVerdict, judge_program, tolerances
from code_a1_recipe.jobs.jsonl_store import Row
from sandbox import CaseOutcome, LocalRunner, SandboxUnavailableError, decode

from .samples import Sample

PASS, FAIL, TIMEOUT = "pass", "fail", "timeout"
"""EvalPlus's words."""
_PATIENT_SECONDS = 20.0
"""Least time limit of an input when EvalPlus is asked again, to see whether its limit was the reason."""
_CALL_CHARS = 1_000

CLASSES = {
    "root check": "EvalPlus 0.3.1 counts no input of HumanEval/32 as passed, so every program for it fails there",
    "time limit": "one judge gave the program more time: ours counts CPU time and has twice the seconds",
    "type": "a tolerance makes EvalPlus ask for the very same type; here a subclass or NumPy number counts as its base",
    "unencodable": "the program returned something that is no builtin value: refused here, compared by EvalPlus",
    "answer too long": "the program returned far more than the right answer",
    "memory": "the program ran out of memory in one judge",
    "recursion": "the recursion limit was met in one judge",
    "confinement": "the program asked for something that one judge forbids",
    "unexplained": "look at it",
}
"""Why the two differ."""
_OUTCOMES = {
    CaseOutcome.TIMED_OUT: "time limit",
    CaseOutcome.UNENCODABLE: "unencodable",
    CaseOutcome.OUTPUT_LIMIT: "answer too long",
}
_RAISED = {"MemoryError": "memory", "RecursionError": "recursion", "PermissionError": "confinement"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirVerdict:
    """What EvalPlus's ``untrusted_check`` says."""

    status: str
    """``pass``, ``fail`` or ``timeout``."""
    failed_call: int | None


class Opinions:
    """Asks both judges. Belongs to one process without threads of its own: EvalPlus forks."""

    def __init__(self) -> None:
        self._runner = LocalRunner()
        self._prepared: EvalPlusProblem | None = None

    def row(self, problem: EvalPlusProblem, sample: Sample) -> Row:
        """One line of the output; only ``outage`` is set where the sandbox was down."""
        head = {"item": sample.item, "id": problem.id, "kind": sample.kind, "detail": sample.detail, "outage": ""}
        try:
            problem = self._prepare(problem)
            ours = judge_program(problem, sample.program, runner=self._runner)
        except SandboxUnavailableError as error:
            return {**head, "outage": str(error)}
        theirs = ask_evalplus(problem, sample.program)
        row: Row = {**head, "ours": {**asdict(ours), "passed": ours.passed}, "theirs": asdict(theirs), "class": ""}
        if ours.passed != (theirs.status == PASS):
            row |= {"class": self._classify(problem, sample.program, ours, theirs), "program": sample.program}
            places = {at for at in (ours.failed_call, theirs.failed_call) if at is not None}
            row["calls"] = [problem.calls[at][:_CALL_CHARS] for at in sorted(places)]
        return row

    def _prepare(self, problem: EvalPlusProblem) -> EvalPlusProblem:
        if self._prepared is None or self._prepared.id != problem.id:
            self._prepared = prepare(problem, self._runner)
        return self._prepared

    def _classify(self, problem: EvalPlusProblem, program: str, ours: EvalPlusVerdict, theirs: TheirVerdict) -> str:
        """A key of ``CLASSES``."""
        if not ours.passed:
            return why_they_differ(ours.outcome, ours.detail)
        if problem.comparison is Comparison.ROOT:
            return "root check"
        if ask_evalplus(problem, program, least_seconds=_PATIENT_SECONDS).status == PASS:
            return "time limit"
        failed = theirs.failed_call
        has_tolerance = failed is not None and list(tolerances(problem))[failed][1] > 0
        return "type" if has_tolerance else "unexplained"


def why_they_differ(outcome: CaseOutcome, detail: str) -> str:
    """A key of ``CLASSES`` for a program that fails here and passes there, by what our judge saw."""
    if outcome is CaseOutcome.RAISED:
        return _RAISED.get(detail.partition(":")[0], "unexplained")
    return _OUTCOMES.get(outcome, "unexplained")


def ask_evalplus(problem: EvalPlusProblem, program: str, *, least_seconds: float = 1.0) -> TheirVerdict:
    """EvalPlus's own verdict. The program runs in a forked process, unconfined: never ask about a model's program.

    Args:
        problem: with expected answers and the reference's seconds.
        program: harmless source text.
        least_seconds: time limit of an input; EvalPlus's default is 1.
    """
    evalplus = importlib.import_module("evalplus.eval")  # wanted here alone
    inputs = [problem.arguments(index) for index in range(len(problem.calls))]
    expected: list[Any] = [decode(value) for value in problem.expected]
    status, details = evalplus.untrusted_check(
        problem.dataset,
        program,
        inputs,
        problem.entry_point,
        expected=expected,
        atol=problem.atol,
        ref_time=list(problem.reference_cpu_seconds),
        fast_check=True,
        min_time_limit=least_seconds,
    )
    failed = None if status == PASS or not len(details) else len(details) - 1
    return TheirVerdict(status=status, failed_call=failed)
