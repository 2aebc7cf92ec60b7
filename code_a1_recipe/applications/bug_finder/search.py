"""Attack on one program: calls on which it fails, each shrunk to a minimal one and confirmed in a fresh process.

The program runs in the sandbox only. It is asked many calls in one process. A failure that does not come again when
the call is made alone has to do with earlier calls (a default argument that is changed, a global); then one call is
looked for after which it comes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sandbox import Call, CallResult, Case, Gate, Limits, Program, Role, Runner

from ...errors import InputError
from ...jobs.progress import watched
from .expectations import TIME_OUT, Expectation, Expected, Failure, failure_of, failures_of, was_asked
from .shrink import shrink
from .variants import variants

HANG_SECONDS = 3.0
"""CPU seconds after which a call counts as hanging, unless the reference itself needs a tenth of them or more."""
_EARLIER_CALLS = 24
"""Calls that are tried in front of one that fails only after others."""
_MAX_ASKED = 300
_MAX_HANG_TRIES = 6
_IMPATIENT_SECONDS = 0.05
"""CPU seconds of a call while time-outs are shrunk; the reference's time counts tenfold as ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A minimal failing call."""

    call: Call
    earlier: tuple[Call, ...] = ()
    """Calls to make before it in the same process; empty where it fails alone."""
    expected: Expected
    failure: Failure

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of all calls, in order."""
        return (*(call.text for call in self.earlier), self.call.text)

    @property
    def text(self) -> str:
        """``assert f([1]) == 2``; the call alone where no single value is expected."""
        return f"assert {self.call.text} == {self.expected.literal}" if self.expected.literal else self.call.text


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """All failures of one kind."""

    kind: str
    num_calls: int
    bugs: tuple[Bug, ...]
    """Different minimal calls; empty where others took the room, or the failure did not come again."""


@dataclass(slots=True, kw_only=True)
class Attack:
    """One program, what it should answer, and where it runs.

    All methods raise ``SandboxUnavailableError`` where something could not be run, and ``InputError`` where the
    program does not load.
    """

    source: str
    expectation: Expectation
    runner: Runner
    limits: Limits
    gate: Gate
    """Reads simplified calls as it reads those of tests."""
    unasked: set[Call] = field(default_factory=set)
    """Calls that the program had no time left for."""

    def calls_near(self, calls: Sequence[Call], *, max_calls: int) -> list[Call]:
        """The given calls, then small changes of them up to ``max_calls`` in all."""
        room = max(0, max_calls - len(calls))
        texts = variants([call.text for call in calls], self.gate.interface.entry_points, max_calls=room)
        cases = [case for text in texts if isinstance(case := self.gate.call(text), Case)]
        return list(dict.fromkeys([*calls, *(case.call for case in cases)]))

    def answers(self, calls: Sequence[Call], expected: Mapping[Call, Expected]) -> dict[Call, CallResult]:
        """What the program answers, all calls in one process unless the reference itself keeps state."""
        distinct = list(dict.fromkeys(calls))
        # A call after one that hangs has no less time, or it would be taken for hanging too.
        limits = replace(self.limits, min_cpu_seconds_per_case=self.limits.cpu_seconds_per_case)
        results = self._run(
            distinct,
            expected,
            limits,
            isolated=self.expectation.is_stateful,
        )
        answers = dict(zip(distinct, results, strict=True))
        self.unasked |= {call for call, answer in answers.items() if not was_asked(answer)}
        return answers

    def failures(self, calls: Sequence[Call]) -> dict[Call, Failure]:
        """Calls that have an expected answer and fail.

        A failing call's expected answer is taken once more, where no other call went before.
        """
        expected = self.expectation.expect(calls)
        answers = self.answers(list(expected), expected)
        failing = list(failures_of(expected, answers))
        return failures_of(self.expectation.expect(failing, alone=True), answers)

    def shrink_all(self, failures: Mapping[Call, Failure], *, max_bugs: int) -> list[FailureGroup]:
        """Shrink failing calls of each kind, kinds in turns, until ``max_bugs`` different ones are found.

        The shortest call comes first, then one of middle length: another start may lead to another bug.
        """
        kinds: dict[str, list[Call]] = {}
        for call in sorted(failures, key=_by_length):
            kinds.setdefault(failures[call].kind, []).append(call)
        starts = []
        for kind, calls in kinds.items():
            different = dict.fromkeys([calls[0], calls[len(calls) // 2]])
            starts += [(turn, kind, call) for turn, call in enumerate(different)]
        starts.sort(key=lambda start: start[0])
        bugs: dict[tuple[str, ...], tuple[str, Bug]] = {}
        for _, kind, call in watched(starts, total=len(starts), what="shrink", unit="call"):
            bug = self._shrunk(call, kind, list(failures)) if len(bugs) < max_bugs else None
            if bug is not None:
                bugs.setdefault(bug.texts, (kind, bug))
        groups = []
        for kind, calls in kinds.items():
            own = tuple(bug for bug_kind, bug in bugs.values() if bug_kind == kind)
            groups.append(FailureGroup(kind=kind, num_calls=len(calls), bugs=own))
        return sorted(groups, key=lambda group: -group.num_calls)

    def replay(self, texts: Sequence[str]) -> Bug | None:
        """The bug that the last of these calls shows, made after the others in a fresh process; None if it is right."""
        *earlier, last = map(self._call, texts)
        failure = self._failure_alone(*earlier, last)
        if failure is not None and failure.kind == TIME_OUT:
            return self._hanging([last])
        return self._bug(failure, *earlier, last)

    def _shrunk(self, call: Call, kind: str, others: Sequence[Call]) -> Bug | None:
        """The minimal call that one failing call leads to; None where the failure does not come again."""
        failure = self._failure_alone(call)
        if failure is None or failure.kind != kind:
            return None if self.expectation.is_stateful else self._shrunk_sequence(call, others)
        simplest_first = self._shrink(call, kind, lambda simpler: (simpler,))
        if kind == TIME_OUT:
            return self._hanging(simplest_first)
        return self._bug(self._failure_alone(simplest_first[0]), simplest_first[0])

    def _shrunk_sequence(self, call: Call, others: Sequence[Call]) -> Bug | None:
        """A call that fails only after another one, both shrunk; the call itself is tried first as the other."""
        shortest = sorted(set(others) - {call}, key=_by_length)[:_EARLIER_CALLS]
        for before in (call, *shortest):
            failure = self._failure_alone(before, call)
            if failure is not None:
                break
        else:
            return None
        if before == call:
            last = self._shrink(call, failure.kind, lambda simpler: (simpler, simpler))[0]
            first = last
        else:
            last = self._shrink(call, failure.kind, lambda simpler: (before, simpler))[0]
            first = self._shrink(before, failure.kind, lambda simpler: (simpler, last))[0]
        return self._bug(self._failure_alone(first, last), first, last)

    def _shrink(self, call: Call, kind: str, sequence: Callable[[Call], tuple[Call, ...]]) -> list[Call]:
        """Calls on which the last call of ``sequence`` fails in a fresh process, the simplest first."""
        limits = self.limits
        if kind == TIME_OUT:  # impatient: what it takes for hanging by mistake is found out at the end
            limits = replace(limits, cpu_seconds_per_case=_IMPATIENT_SECONDS)

        def fails(text: str) -> bool:
            failure = self._failure_alone(*sequence(self._call(text)), limits=limits)
            return failure is not None and failure.kind == kind

        entry_points = self.gate.interface.entry_points
        texts = shrink(
            call.text,
            fails,
            entry_points=entry_points,
            max_asked=_MAX_ASKED,
        )
        return [self._call(text) for text in texts]

    def _hanging(self, simplest_first: Sequence[Call]) -> Bug | None:
        """The simplest call that fails even where it is given ``HANG_SECONDS``; a slow one that is right is no bug."""
        patient = replace(
            self.limits,
            cpu_seconds_per_case=HANG_SECONDS,
            wall_seconds_per_case=2 * HANG_SECONDS,
        )
        for call in simplest_first[:_MAX_HANG_TRIES]:
            failure = self._failure_alone(call, limits=patient)
            if failure is not None:
                return self._bug(replace(failure, is_late=True), call)
        return None

    def _bug(self, failure: Failure | None, *calls: Call) -> Bug | None:
        *earlier, call = calls
        expected = self.expectation.expect([call], alone=True).get(call)
        if failure is None or expected is None:
            return None
        return Bug(
            call=call,
            earlier=tuple(earlier),
            expected=expected,
            failure=failure,
        )

    def _call(self, text: str) -> Call:
        """A call that was well formed stays so when its literals are simplified; else it is asked as written."""
        case = self.gate.call(text)
        return case.call if isinstance(case, Case) else Call(expression=text)

    def _failure_alone(self, *calls: Call, limits: Limits | None = None) -> Failure | None:
        """The failure of the last of these calls, in a fresh process."""
        expected = self.expectation.expect(calls[-1:], alone=True)
        if not expected:
            return None
        results = self._run(calls, expected, limits or self.limits)
        return failure_of(expected[calls[-1]], results[-1])

    def _run(
        self, calls: Sequence[Call], expected: Mapping[Call, Expected], limits: Limits, *, isolated: bool = False
    ) -> tuple[CallResult, ...]:
        seconds = []
        for call in calls:
            seconds.append(expected[call].cpu_seconds if call in expected else 0.0)
        program = Program(
            source=self.source,
            calls=tuple(calls),
            reference_cpu_seconds=tuple(seconds),
            limits=limits,
            isolated=isolated,
            max_timeouts_without_result=len(calls) + 1,  # many are known to hang; the others count
        )
        result = self.runner.run(program, role=Role.CANDIDATE)
        if not result.loaded:
            raise InputError(f"the program under attack does not load in the sandbox: {result.load_error}")
        return result.results


def _by_length(call: Call) -> tuple[int, str]:
    return len(call.text), call.text
