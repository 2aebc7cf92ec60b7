"""Every reference through the judge, on its own tests, in the same confinement in which training asks it.

The judge runs a reference twice, with other hash seeds and in opposite orders, and once more as its own candidate.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from sandbox import (
    CandidateVerdict,
    CaseOutcome,
    CaseResult,
    JudgeRequest,
    Kind,
    Rejection,
    RejectionReason,
    SandboxUnavailableError,
)

from ...algorithm.question import Question, request_for
from ...jobs.confinement import JudgeAll
from ...jobs.jsonl_store import Row
from .reference_facts import Fault, ReferenceFacts, TestFault, distinct_tests

BATCH_TESTS = 64
"""Tests that one run is asked: the limits on time and output are those of a run."""
_DETAIL_CHARACTERS = 300

_REJECTED = {
    RejectionReason.REFERENCE_RAISED: Fault.RAISES,
    RejectionReason.REFERENCE_TIMED_OUT: Fault.SLOW,
    RejectionReason.REFERENCE_NONDETERMINISTIC: Fault.NONDETERMINISTIC,
    RejectionReason.UNENCODABLE: Fault.UNENCODABLE,
}
"""All other reasons are about the text alone."""


def content_key(question: Question) -> str:
    """sha256 of what decides the facts of a question, in hexadecimal."""
    content = [question.prelude, question.reference, question.entry_points, distinct_tests(question)]
    content += [question.kind, question.checker] if question.kind != Kind.FUNCTIONS else []
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def requests_for(question: Question) -> list[JudgeRequest]:
    """The reference as its own candidate; every test is a suite of its own, so that what is said of it is told apart.

    A question without tests is one request without suites: the reference is loaded, and that is all.
    """
    tests = distinct_tests(question)
    batches = [tests[at : at + BATCH_TESTS] for at in range(0, len(tests), BATCH_TESTS)] or [()]
    known_as = replace(question, id=content_key(question))
    return [request_for(known_as, question.reference, *((text,) for text in batch)) for batch in batches]


def facts_of(verdicts: Sequence[CandidateVerdict]) -> ReferenceFacts:
    """What the verdicts on ``requests_for`` one question say about its reference."""
    suites = [suite for verdict in verdicts for suite in verdict.suites]
    faults = []
    for place, suite in enumerate(suites):
        for rejection in suite.rejections:
            faults.append(_rejected(place, rejection))
        faults += [fault for case in suite.cases if (fault := _failed(place, case)) is not None]
    load_errors = [verdict.load_error or "unknown error" for verdict in verdicts if not verdict.loaded]
    return ReferenceFacts(
        num_tests=len(suites),
        load_error=load_errors[0][:_DETAIL_CHARACTERS] if load_errors else "",
        faults=tuple(faults),
        cpu_seconds=round(sum(verdict.cpu_seconds for verdict in verdicts), 6),
    )


def _rejected(place: int, rejection: Rejection) -> TestFault:
    fault = _REJECTED.get(rejection.reason, Fault.UNREADABLE)
    detail = f"{rejection.text[:120]}  # {rejection.reason.value}: {rejection.detail[:160]}"
    return TestFault(place=place, fault=fault, detail=detail[:_DETAIL_CHARACTERS])


def _failed(place: int, case: CaseResult) -> TestFault | None:
    if case.outcome.failed:
        # It has just answered the same call, twice.
        fault = Fault.SLOW if case.outcome is CaseOutcome.TIMED_OUT else Fault.NONDETERMINISTIC
        detail = f"{case.call[:120]}  # in a third run: {case.outcome.value} {case.detail[:120]}"
    elif not case.expected_correct:
        fault = Fault.INCORRECT_ASSERTION
        detail = f"{case.call[:120]} is {case.reference_value[:80]}, expected {case.expected[:80]}"
    else:
        return None
    return TestFault(place=place, fault=fault, detail=detail[:_DETAIL_CHARACTERS])


def judged_row(question: Question, judge_all: JudgeAll) -> Row:
    """The facts of a question's reference as a row of a store; with ``outage`` there are none."""
    row: Row = {"key": content_key(question), "outage": None}
    verdicts: list[CandidateVerdict] = []
    for result in judge_all(requests_for(question)):
        if isinstance(result, SandboxUnavailableError):
            return row | {"outage": str(result)[:_DETAIL_CHARACTERS]}
        verdicts.append(result)
    facts: Row = msgspec.to_builtins(facts_of(verdicts))
    return row | facts
