"""What a call should answer: by a reference solution, or by other programs, of which none is known to be right."""

import abc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandbox import (
    HANGS_THROUGHOUT,
    TOTAL_SPENT,
    Call,
    CallResult,
    CallStatus,
    Limits,
    OracleValue,
    Program,
    ReferencePass,
    Runner,
    ValueFormatError,
    matches,
    to_literal,
)

from ..best_of_n.answer_matrix import ask_programs, error_name, group_answers

WRONG_VALUE = "wrong value"
TIME_OUT = "time-out"
NOT_ASKED = "not asked for want of time"
_LONGEST_SHOWN = 120
_OTHER_KINDS = {
    CallStatus.TIMED_OUT: TIME_OUT,
    CallStatus.DIED: "the process ends",
    CallStatus.OUTPUT_LIMIT: "too large an answer",
    CallStatus.UNENCODABLE: "no plain value",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The answer that a call should have."""

    value: bytes
    """Encoded, see ``sandbox.values``."""
    literal: str
    """The same as Python source."""
    cpu_seconds: float = 0.0
    """What the reference needed; 0 where there is none."""
    votes: tuple[tuple[CallResult, int], ...] = ()
    """Without a reference: all answers of the other programs and how many gave each, the most frequent, this one,
    first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How an answer differs from the expected one."""

    kind: str
    """``wrong value``, ``returns None``, ``raises IndexError``, ``time-out``, ...: failures are grouped by it."""
    shown: str
    """The answer in one printable line, from an untrusted process; cut off where it is long."""
    is_late: bool = False
    """The call runs into its time limit; given much longer it fails in this way."""


class Expectation(abc.ABC):
    """Knows the right answers, or guesses them."""

    def __init__(self) -> None:
        self.is_stateful = False
        """Calls influence one another by design; then each call is asked of a fresh process."""
        self.refusals: Counter[str] = Counter()
        """Why calls have no expected answer, counted over all that were asked."""
        self.unasked: set[Call] = set()
        """Calls that nobody had time to answer, although an answer is possible."""

    @abc.abstractmethod
    def expect(self, calls: Sequence[Call], *, alone: bool = False) -> dict[Call, Expected]:
        """The expected answers; calls that have none are left out.

        Args:
            calls: in the order in which they are made.
            alone: free of what other calls left behind in a process.

        Raises:
            SandboxUnavailableError: something could not be run.
        """

    def _refuse_unasked(self, call: Call) -> None:
        self.unasked.add(call)
        self.refusals[NOT_ASKED] += 1


class ReferenceExpectation(Expectation):
    """The reference's answers, each taken twice, with different hash seeds and in opposite orders."""

    def __init__(self, reference: str, runner: Runner, *, limits: Limits) -> None:
        super().__init__()
        self._reference = reference
        self._references = ReferencePass(runner, limits=limits)

    def expect(self, calls: Sequence[Call], *, alone: bool = False) -> dict[Call, Expected]:
        batch = self._references.answer("attack", prelude="", reference=self._reference, suites=[calls])
        self.is_stateful = batch.is_stateful
        found = {}
        for call, oracle in batch.oracles.items():
            if isinstance(oracle, OracleValue):
                found[call] = Expected(value=oracle.value, literal=oracle.literal, cpu_seconds=oracle.cpu_seconds)
            elif oracle.detail == TOTAL_SPENT:
                self._refuse_unasked(call)
            else:
                self.refusals[oracle.reason.value] += 1
        return found


class MajorityExpectation(Expectation):
    """The most frequent answer of the other programs, where that is a value; the first program's among equals.

    A call on which most of the others raise or hang is likely no valid one and has no expected answer. Exceptions of
    one type are one answer; a program that hangs or dies is an answer of its own. Without other programs no call has
    an expected answer.
    """

    def __init__(self, programs: Sequence[str], runner: Runner, *, limits: Limits, num_threads: int = 1) -> None:
        super().__init__()
        self._programs = tuple(programs)
        self._runner = runner
        self._limits = limits
        self._num_threads = num_threads
        self._known: dict[tuple[Call, bool], Expected | None] = {}

    def expect(self, calls: Sequence[Call], *, alone: bool = False) -> dict[Call, Expected]:
        if not self._programs:
            return {}
        missing = [call for call in dict.fromkeys(calls) if (call, alone) not in self._known]
        if missing:
            asked = Program(
                source="",
                calls=tuple(missing),
                limits=self._limits,
                isolated=alone,
                max_timeouts_without_result=len(missing) + 1,  # a program that hangs in its first calls is asked on
            )
            results = ask_programs(self._programs, asked, self._runner, num_threads=self._num_threads)
            for index, call in enumerate(missing):
                answers = [result.results[index] for result in results]
                self._known[call, alone] = self._majority(call, [one for one in answers if was_asked(one)])
        return {call: expected for call in calls if (expected := self._known[call, alone]) is not None}

    def _majority(self, call: Call, answers: list[CallResult]) -> Expected | None:
        if not answers:
            self._refuse_unasked(call)
            return None
        groups = group_answers(answers)
        alone = [(index,) for index in range(len(answers)) if not any(index in group for group in groups)]
        ranked = sorted([*groups, *alone], key=lambda group: -len(group))  # stable: ties in the order of the programs
        votes = tuple((answers[group[0]], len(group)) for group in ranked)
        first = votes[0][0]
        if first.status is not CallStatus.VALUE:
            self.refusals["most other programs fail"] += 1
            return None
        try:
            return Expected(value=first.value, literal=to_literal(first.value), votes=votes)
        except ValueFormatError:
            self.refusals["the answer is no plain value"] += 1
            return None


def was_asked(answer: CallResult) -> bool:
    """False where other calls had used up the program's time, or its patience."""
    return answer.status is not CallStatus.TIMED_OUT or answer.detail not in (TOTAL_SPENT, HANGS_THROUGHOUT)


def failure_of(expected: Expected, answer: CallResult) -> Failure | None:
    """How ``answer`` fails; None where it is the expected one, or where the call was not really asked.

    Without a reference a differing answer fails only where it is not more frequent, the program under attack counted
    in, than the expected one is among the others.
    """
    if not was_asked(answer):
        return None  # a limit that other calls had used up; ``Attack.unasked`` holds such calls
    if answer.status is CallStatus.VALUE and matches(expected.value, answer.value):
        return None
    if expected.votes:
        (_, most), *others = expected.votes
        same = sum(count for other, count in others if len(group_answers([other, answer])) == 1)
        if answer.status in (CallStatus.VALUE, CallStatus.RAISED) and same + 1 > most:
            return None
    return Failure(kind=_kind(expected, answer), shown=show_answer(answer))


def failures_of(expected: Mapping[Call, Expected], answers: Mapping[Call, CallResult]) -> dict[Call, Failure]:
    """``failure_of`` all calls that have an expected answer, where they fail."""
    failures = {call: failure_of(right, answers[call]) for call, right in expected.items()}
    return {call: failure for call, failure in failures.items() if failure is not None}


def show_answer(answer: CallResult) -> str:
    """One printable line: the value as a literal, or what happened instead."""
    if answer.status is CallStatus.VALUE:
        try:
            return one_line(to_literal(answer.value))
        except ValueFormatError as error:
            return one_line(str(error))
    if answer.status is CallStatus.RAISED:
        return one_line(answer.detail.rstrip(": ") or "an exception")
    detail = one_line(answer.detail)
    return f"{_OTHER_KINDS[answer.status]} ({detail})" if detail else _OTHER_KINDS[answer.status]


def one_line(text: str) -> str:
    """Text of an untrusted process for a terminal or a comment: printable, on one line, at most 120 characters."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text[: 2 * _LONGEST_SHOWN])
    return plain if len(plain) <= _LONGEST_SHOWN else plain[: _LONGEST_SHOWN - 3] + "..."


def _kind(expected: Expected, answer: CallResult) -> str:
    if answer.status is CallStatus.RAISED:
        return f"raises {one_line(error_name(answer.detail)) or 'an exception'}"
    if answer.status is not CallStatus.VALUE:
        return _OTHER_KINDS[answer.status]
    if _type_tag(answer.value) == _type_tag(expected.value):
        return WRONG_VALUE
    return "returns None" if answer.value == b"N" else "wrong type"


def _type_tag(value: bytes) -> str:
    """The first byte of an encoded value, see ``sandbox.values``; numbers compare across types."""
    tag = value[:1].decode("latin-1")
    return "number" if tag in "TFifncqD" else tag
