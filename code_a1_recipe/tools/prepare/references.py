"""Judges every reference on its own tests, in the same confinement as in training.

The judge runs a reference three times: twice as the reference, with different hash seeds and opposite orders of the
calls, and once as the candidate.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from sandbox import CaseOutcome, Kind, RejectionReason, SandboxUnavailableError, SuiteVerdict
from sandbox.text import control_programs, passes_all

from ...algorithm.question import Question, request_for
from ...data.asserts import LOOSE
from ...jobs.confinement import JudgeAll
from ...jobs.jsonl_store import Row
from ..test_quality.metrics import verdicts_of
from .options import PrepareOptions
from .rows import Dropped, Entry, Reason

BATCH_TESTS = 64
"""Largest number of tests in one run. The number is small because the limits on time and output apply to a whole
run."""
_DETAIL_CHARACTERS = 300
UNREADABLE = "unreadable"
"""The test is not of the form ``assert f(literals) == literal``, so the judge cannot read it. The row may stay."""
_REASONS = {
    RejectionReason.REFERENCE_RAISED: Reason.REFERENCE_FAILS,
    RejectionReason.REFERENCE_TIMED_OUT: Reason.REFERENCE_SLOW,
    RejectionReason.REFERENCE_NONDETERMINISTIC: Reason.REFERENCE_NONDETERMINISTIC,
    RejectionReason.UNENCODABLE: Reason.UNENCODABLE,
}
"""Rejections that the reference causes. All other rejections are caused by the text of the test."""
_IN_ANY_CASE = (Reason.REFERENCE_NONDETERMINISTIC, Reason.REFERENCE_SLOW)
"""A row is dropped for one of these reasons even if only one test shows the reason. In training, a slow or
nondeterministic reference could not answer the tests of a Test LLM."""


class Fault(NamedTuple):
    """One test that does not hold."""

    place: int
    """Index of the test in ``distinct_tests``."""
    reason: str
    """``UNREADABLE``, or the ``Reason`` for which the row is dropped."""
    detail: str


class JudgedReference(msgspec.Struct, frozen=True, kw_only=True):
    """A row of ``OUTPUT.judged.jsonl``: facts about a reference that do not depend on the options of ``decide``."""

    key: str
    outage: str | None = None
    """Why the sandbox could not judge the reference. After an outage, no facts are known."""
    load_error: str = ""
    faults: tuple[Fault, ...] = ()
    passed_by: tuple[str, ...] = ()
    """Names of the control programs that pass all tests; empty without ``--control``. Control programs solve
    nothing."""


# ------------------------------ facts ------------------------------


def distinct_tests(question: Question) -> tuple[str, ...]:
    """List the different tests and golden tests, in the order of judging."""
    return tuple(dict.fromkeys((*question.tests, *question.golden_tests)))


def content_key(question: Question) -> str:
    """Hash all parts of a question that the facts about its reference depend on: SHA-256 in hexadecimal."""
    content = [question.prelude, question.reference, question.entry_points, distinct_tests(question)]
    if question.kind != Kind.FUNCTIONS:
        content += [question.kind, question.checker]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def judged_row(question: Question, judge_all: JudgeAll, *, with_controls: bool = False) -> Row:
    """Judge a question's reference on its tests. ``with_controls`` also runs the control programs on the tests.

    Each test is a separate suite, so that it gets its own verdict. If a question has no tests, one request without
    suites loads the reference.

    Returns:
        A row of the store, see ``JudgedReference``.
    """
    key = content_key(question)
    tests = distinct_tests(question)
    judged = replace(question, id=key)
    requests = []
    for start in range(0, max(1, len(tests)), BATCH_TESTS):
        suites = [(test,) for test in tests[start : start + BATCH_TESTS]]
        requests.append(request_for(judged, question.reference, *suites, given=True))
    try:
        verdicts = verdicts_of(judge_all, requests)
        passed_by = _controls_that_pass(judged, judge_all) if with_controls and tests else []
    except SandboxUnavailableError as error:
        return {"key": key, "outage": str(error)[:_DETAIL_CHARACTERS]}
    load_error = ""
    faults = []
    place = 0
    for verdict in verdicts:
        load_error = load_error or verdict.load_error
        if not any(suite.cases for suite in verdict.suites):
            load_error = load_error or verdict.example_failure  # an example that hangs keeps a reference from loading
        for suite in verdict.suites:
            faults += [(place, reason, detail[:_DETAIL_CHARACTERS]) for reason, detail in _faults(suite)]
            place += 1
    return {
        "key": key,
        "outage": None,
        "load_error": load_error[:_DETAIL_CHARACTERS],
        "faults": faults,
        "passed_by": passed_by,
    }


def _controls_that_pass(judged: Question, judge_all: JudgeAll) -> list[str]:
    """Name the control programs that pass all tests. Control programs solve nothing."""
    request = replace(request_for(judged, None, distinct_tests(judged), given=True), until_timeout=True)
    programs = control_programs(request, judged.prompt)
    verdicts = verdicts_of(judge_all, [replace(request, candidate=program) for program in programs.values()])
    return [name for name, verdict in zip(programs, verdicts, strict=True) if passes_all(verdict)]


def _faults(suite: SuiteVerdict) -> Iterator[tuple[str, str]]:
    """Yield a reason and a detail for each faulty test of a suite."""
    for rejection in suite.rejections:
        detail = f"{rejection.text[:120]}  # {rejection.reason.value}: {rejection.detail[:160]}"
        yield _REASONS.get(rejection.reason, UNREADABLE), detail
    for case in suite.cases:
        if case.outcome.failed:  # the reference has answered the same call in the two runs before
            reason = Reason.REFERENCE_NONDETERMINISTIC
            if case.outcome is CaseOutcome.TIMED_OUT:
                reason = Reason.REFERENCE_SLOW
            yield reason, f"{case.call[:120]}  # in a third run: {case.outcome.value} {case.detail[:120]}"
        elif not case.expected_correct:
            detail = f"{case.call[:120]} is {case.reference_value[:80]}, expected {case.expected[:80]}"
            yield Reason.REFERENCE_FAILS, detail


# ------------------------------ decision ------------------------------


def decide(
    entry: Entry,
    judged: JudgedReference,
    options: PrepareOptions,
) -> Entry | Dropped:
    """Keep an entry with the tests that hold, or drop the entry.

    Args:
        entry: the row that was judged.
        judged: the facts about the row's reference.
        options: ``min_tests`` is the least number of tests that must remain; golden tests do not count. If the row has
            no golden tests, its first ``golden`` tests become golden.
    """
    if judged.outage:
        return entry.dropped(Reason.OUTAGE, judged.outage)
    if judged.load_error:
        return entry.dropped(Reason.LOAD_FAILED, judged.load_error)
    if judged.passed_by:
        names = ", ".join(judged.passed_by)
        return entry.dropped(Reason.PASSED_BY_CONTROL, f"its tests accept programs that solve nothing: {names}")
    question, faults = entry.question, judged.faults
    texts = distinct_tests(question)

    def summary(chosen: Sequence[Fault]) -> str:
        return f"{len(chosen)} of {len(texts)} tests do not hold, the first: {chosen[0].detail}"

    for reason in _IN_ANY_CASE:
        if with_reason := [fault for fault in faults if fault.reason == reason]:
            return entry.dropped(reason, summary(with_reason))
    # A loose assert may have been read wrongly. If a loose assert does not hold, only this assert is removed.
    failing = [fault for fault in faults if fault.reason != UNREADABLE and not texts[fault.place].endswith(LOOSE)]
    if failing:
        return entry.dropped(Reason(failing[0].reason), summary(failing))
    removed = {texts[fault.place] for fault in faults}
    tests = [text for text in dict.fromkeys(question.tests) if text not in removed]
    golden = [text for text in dict.fromkeys(question.golden_tests) if text not in removed]
    if not golden:
        golden, tests = tests[: options.golden], tests[options.golden :]
    if len(tests) < options.min_tests:
        detail = f"{len(tests)} of {len(set(question.tests))} tests remain beside {len(golden)} golden tests"
        if faults:
            detail += f"; {summary(faults)}"
        return entry.dropped(Reason.TOO_FEW_TESTS, detail)
    reasons = [fault.reason for fault in faults]
    return replace(
        entry,
        question=replace(question, tests=tuple(tests), golden_tests=tuple(golden)),
        removed_tests=(*entry.removed_tests, *reasons),
    )
