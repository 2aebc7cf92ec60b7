"""What our judge and EvalPlus's own say about one program, and why they differ where they do."""

from __future__ import annotations

import pickle
from dataclasses import asdict, dataclass, field

from code_a1_recipe.evaluation.benchmarks.evalplus import Comparison, EvalPlusProblem, prepare
from code_a1_recipe.evaluation.scoring.evalplus_judge import EvalPlusVerdict, judge_program, tolerances
from code_a1_recipe.jobs.jsonl_store import Row
from sandbox import (
    Call,
    CallStatus,
    CaseOutcome,
    Limits,
    LocalRunner,
    Program,
    Role,
    Runner,
    SandboxUnavailableError,
    decode,
)

from .samples import Sample

PASS, FAIL, TIMEOUT = "pass", "fail", "timeout"
"""EvalPlus's words."""
_PATIENT_SECONDS = 20.0
"""Least time limit of an input when EvalPlus is asked again, to see whether its limit was the reason."""
_CALL_CHARS = 1_000
PRELOAD = ("evalplus.eval", "numpy")
_THEIR_JUDGE = """
import pickle, types
import evalplus.eval as theirs

class Here:
    def __init__(self, target, args):
        self.start = lambda: target(*args)
    def join(self, timeout):
        pass
    def is_alive(self):
        return False

theirs.multiprocessing = types.SimpleNamespace(Process=Here)
theirs.Value = lambda kind, value: types.SimpleNamespace(value=value)
theirs.Array = lambda kind, items: list(items)
theirs.query_maximum_memory_bytes = lambda: None

def ask(data):
    status, details = theirs.untrusted_check(**pickle.loads(data))
    return status, len(details)
"""
"""``untrusted_check`` as it stands, in the process that the sandbox made for it in place of a fork of its own. The
sandbox holds the memory to EvalPlus's 4 GiB."""
_THEIR_SECONDS = 62.0
"""EvalPlus gives all inputs of a problem 60 seconds, and two until it ends the process."""
_THEIR_LIMITS = Limits(
    cpu_seconds_per_case=_THEIR_SECONDS,
    wall_seconds_per_case=_THEIR_SECONDS,
    load_cpu_seconds=30.0,
    total_seconds=3 * _THEIR_SECONDS,
    memory_bytes=4 << 30,
)

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


@dataclass(kw_only=True)
class Opinions:
    """Asks both judges; one problem at a time, from any thread."""

    ours: Runner
    theirs: Runner
    """Of tier 1, with ``PRELOAD``: EvalPlus wants a temporary folder."""
    _prepared: dict[str, EvalPlusProblem] = field(default_factory=dict)

    @classmethod
    def start_theirs(cls, num_workers: int) -> LocalRunner:
        """A runner for EvalPlus's judge.

        Raises:
            SandboxConfigError: this machine has no tier 1.
        """
        return LocalRunner(num_workers=num_workers, tier=1, preload=PRELOAD)

    def row(self, problem: EvalPlusProblem, sample: Sample) -> Row:
        """One line of the output; only ``outage`` is set where the sandbox was down."""
        head = {"item": sample.item, "id": problem.id, "kind": sample.kind, "detail": sample.detail, "outage": ""}
        try:
            if problem.id not in self._prepared:
                self._prepared[problem.id] = prepare(problem, self.ours)
            problem = self._prepared[problem.id]
            ours = judge_program(problem, sample.program, runner=self.ours)
            theirs = ask_evalplus(problem, sample.program, runner=self.theirs)
            row: Row = {**head, "ours": {**asdict(ours), "passed": ours.passed}, "theirs": asdict(theirs), "class": ""}
            if ours.passed != (theirs.status == PASS):
                row |= {"class": self._classify(problem, sample.program, ours, theirs), "program": sample.program}
                places = {at for at in (ours.failed_call, theirs.failed_call) if at is not None}
                row["calls"] = [problem.calls[at][:_CALL_CHARS] for at in sorted(places)]
        except SandboxUnavailableError as error:
            return {**head, "outage": str(error)}
        return row

    def _classify(self, problem: EvalPlusProblem, program: str, ours: EvalPlusVerdict, theirs: TheirVerdict) -> str:
        """A key of ``CLASSES``."""
        if not ours.passed:
            return why_they_differ(ours.outcome, ours.detail)
        if problem.comparison is Comparison.ROOT:
            return "root check"
        patient = ask_evalplus(problem, program, runner=self.theirs, least_seconds=_PATIENT_SECONDS)
        if patient.status == PASS:
            return "time limit"
        failed = theirs.failed_call
        has_tolerance = failed is not None and list(tolerances(problem))[failed][1] > 0
        return "type" if has_tolerance else "unexplained"


def why_they_differ(outcome: CaseOutcome, detail: str) -> str:
    """A key of ``CLASSES`` for a program that fails here and passes there, by what our judge saw."""
    if outcome is CaseOutcome.RAISED:
        return _RAISED.get(detail.partition(":")[0], "unexplained")
    return _OUTCOMES.get(outcome, "unexplained")


def ask_evalplus(problem: EvalPlusProblem, program: str, *, runner: Runner, least_seconds: float = 1.0) -> TheirVerdict:
    """EvalPlus's own verdict, with the defaults of its command line. Its judge runs in the sandbox, program and all.

    Args:
        problem: with expected answers and the reference's seconds.
        program: source text, untrusted.
        runner: as of ``Opinions.theirs``.
        least_seconds: time limit of an input; EvalPlus's default is 1.

    Raises:
        SandboxUnavailableError: it could not be run.
    """
    question = {
        "dataset": problem.dataset,
        "code": program,
        "inputs": [problem.arguments(index) for index in range(len(problem.calls))],
        "entry_point": problem.entry_point,
        "expected": [decode(value) for value in problem.expected],
        "atol": problem.atol,
        "ref_time": list(problem.reference_cpu_seconds),
        "fast_check": True,
        "min_time_limit": least_seconds,
    }
    request = Program(
        prelude="",
        source=_THEIR_JUDGE,
        calls=(Call(expression=f"ask({pickle.dumps(question)!r})"),),
        reference_cpu_seconds=(0.0,),
        limits=_THEIR_LIMITS,
        max_timeouts_without_result=1,
    )
    result = runner.run(request, role=Role.CANDIDATE)
    if not result.loaded:
        raise SandboxUnavailableError(f"EvalPlus's judge does not load in the sandbox: {result.load_error}")
    answer = result.results[0]
    if answer.status is not CallStatus.VALUE:  # as EvalPlus calls a process that left no status
        return TheirVerdict(status=TIMEOUT, failed_call=None)
    status, num_asked = decode(answer.value)
    failed = None if status == PASS or not num_asked else num_asked - 1
    return TheirVerdict(status=status, failed_call=failed)
