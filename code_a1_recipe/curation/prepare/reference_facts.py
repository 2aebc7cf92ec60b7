"""What the judge found out about a reference on its own tests, and what follows from it for the row."""

import enum
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from ...algorithm.question import Question
from ...stats.tables import counts_text
from .entries import Reason


class Fault(enum.StrEnum):
    """Why a test is no use."""

    UNREADABLE = "unreadable"
    """Not of the form ``assert f(literals) == literal``: the judge cannot take it, whatever the reference says."""
    INCORRECT_ASSERTION = "incorrect_assertion"
    RAISES = "raises"
    UNENCODABLE = "unencodable"
    SLOW = "slow"
    NONDETERMINISTIC = "nondeterministic"


class TestFault(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One test that does not hold."""

    __test__ = False  # not one of pytest's

    place: int
    """Of the test among the distinct tests of its question, from 0."""
    fault: Fault
    detail: str


class ReferenceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one reference; the same whatever is decided on it."""

    num_tests: int
    """Distinct tests that were judged, golden ones included."""
    load_error: str
    """Why the reference does not load; "" when it does."""
    faults: tuple[TestFault, ...]
    cpu_seconds: float
    """CPU time of one run of the reference on all tests."""


_ALWAYS = {Fault.NONDETERMINISTIC: Reason.REFERENCE_NONDETERMINISTIC, Fault.SLOW: Reason.REFERENCE_SLOW}
"""Such a reference is no oracle for tests that are still to be written, however few of its tests show it."""
_OF_A_TEST = {
    Fault.INCORRECT_ASSERTION: Reason.REFERENCE_FAILS,
    Fault.RAISES: Reason.REFERENCE_FAILS,
    Fault.UNENCODABLE: Reason.UNENCODABLE,
}


def distinct_tests(question: Question) -> tuple[str, ...]:
    """Tests and golden tests, each text once, in the order in which they are judged."""
    return tuple(dict.fromkeys((*question.tests, *question.golden_tests)))


def decide(
    question: Question, facts: ReferenceFacts, *, drop_tests: bool, min_tests: int, num_golden: int = 0
) -> Question | tuple[Reason, str]:
    """The question with the tests that remain where its row stays; otherwise why the row is left out, with a detail.

    Args:
        question: what was judged.
        facts: of its reference.
        drop_tests: tests that do not hold cost themselves, not the row, as long as one test holds.
        min_tests: of the tests (golden ones do not count) that must remain.
        num_golden: tests, the first ones, that become golden where the row has no golden ones.
    """
    if facts.load_error:
        return Reason.LOAD_FAILED, facts.load_error
    for fault, reason in _ALWAYS.items():
        if found := [one for one in facts.faults if one.fault is fault]:
            return reason, _told(found, facts)
    failing = [one for one in facts.faults if one.fault in _OF_A_TEST]
    num_readable = facts.num_tests - sum(one.fault is Fault.UNREADABLE for one in facts.faults)
    if failing and (not drop_tests or len(failing) == num_readable):
        return _OF_A_TEST[failing[0].fault], _told(failing, facts)
    texts = distinct_tests(question)
    gone = {texts[one.place] for one in facts.faults}
    tests = tuple(text for text in dict.fromkeys(question.tests) if text not in gone)
    golden = tuple(text for text in dict.fromkeys(question.golden_tests) if text not in gone)
    if not golden:
        golden, tests = tests[:num_golden], tests[num_golden:]
    if len(tests) < min_tests:
        return Reason.TOO_FEW_TESTS, _too_few(question, facts, tests, golden)
    return replace(question, tests=tests, golden_tests=golden)


def _told(faults: list[TestFault], facts: ReferenceFacts) -> str:
    kinds = counts_text(Counter(one.fault.value for one in faults))
    return f"{len(faults)} of {facts.num_tests} tests ({kinds}), the first: {faults[0].detail}"


def _too_few(question: Question, facts: ReferenceFacts, tests: Sequence[str], golden: Sequence[str]) -> str:
    beside = f" beside {len(golden)} golden ones" if golden and not question.golden_tests else ""
    if not facts.faults:
        return f"{len(tests)} tests of the form assert f(literals) == literal{beside}"
    num_all = len(set(question.tests))
    return f"{len(tests)} of {num_all} tests remain{beside}; the first that does not: {facts.faults[0].detail}"
