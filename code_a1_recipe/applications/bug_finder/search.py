"""Attack on one program: calls on which it fails, each shrunk to a minimal one and confirmed in a fresh process.

The program runs in the sandbox only. It is asked many calls in one process; a failure that is not there when the call
is made alone comes of earlier calls (a default argument that is changed, a global), and then the shortest sequence of
two calls is looked for.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from sandbox import Call, CallResult, CallStatus, Case, Gate, Limits, Program, Role, Runner

from ...errors import InputError
from ...jobs.progress import watched
from .expectations import TIME_OUT, Expectation, Expected, Failure, differ, failure_of, failures_of, was_asked
from .findings import HANG_SECONDS, Bug, Finding, spread, starts_of
from .shrink import BATCH_CALLS, MAX_ASKED, Shrunk, StillFails, shrink

_EARLIER_CALLS = 24
"""Calls that are tried in front of one that fails only after others."""
_MAX_ASKED_ALONE = 300
_TIME_OUT_BATCH, _MAX_ASKED_TIME_OUT = 16, 400
_MAX_HANG_TRIES = 6
_TIME_OUTS_AGAIN = 8
"""Calls that timed out and are made again, to see whether the hanging of others was to blame."""
_IMPATIENT_SECONDS = 0.05
"""CPU seconds of a call while time-outs are shrunk; the reference's time counts tenfold as ever."""


@dataclass(slots=True, kw_only=True)
class Attack:
    """One program, what it should answer, and where it runs."""

    source: str
    expectation: Expectation
    runner: Runner
    limits: Limits
    gate: Gate
    """Of the entry points; simplified calls pass it like those of tests."""
    unasked: set[Call] = field(default_factory=set)
    """Calls that the program had no time left for."""
    _known: dict[tuple[str, str], bool] = field(default_factory=dict)
    _late: dict[str, Failure | None] = field(default_factory=dict)

    def answers(
        self, calls: Sequence[Call], expected: Mapping[Call, Expected], *, limits: Limits | None = None
    ) -> dict[Call, CallResult]:
        """What the program answers, all calls in one process unless the reference itself keeps state.

        Raises:
            InputError: the program does not load.
            SandboxUnavailableError: it could not be run.
        """
        distinct = tuple(dict.fromkeys(calls))
        answers = self._run(distinct, expected, isolated=self.expectation.is_stateful, limits=limits)
        found = dict(zip(distinct, answers, strict=True))
        self.unasked |= {call for call, answer in found.items() if not was_asked(answer)}
        return found

    def failures(
        self, calls: Sequence[Call], *, limits: Limits | None = None, confirm: bool = False
    ) -> dict[Call, Failure]:
        """Calls that have an expected answer and fail; raises as ``answers``.

        Args:
            calls: to make.
            limits: of the program; the attack's own if None.
            confirm: a failing call's expected answer is taken once more, where no other call went before; calls
                that time out because others hang are made again.
        """
        expected = self.expectation.expect(calls)
        answers = self.answers(list(expected), expected, limits=limits)
        if not confirm:
            return failures_of(expected, answers)
        answers |= self._time_outs_again(expected, answers)
        found = failures_of(expected, answers)
        return failures_of(self.expectation.expect(list(found), alone=True), answers) if found else found

    def _time_outs_again(
        self, expected: Mapping[Call, Expected], answers: Mapping[Call, CallResult]
    ) -> dict[Call, CallResult]:
        """A call after one that hangs has less time; where some of those answer that are given all, all are."""
        late = [call for call, answer in answers.items() if answer.status is CallStatus.TIMED_OUT and was_asked(answer)]
        limits = replace(self.limits, min_cpu_seconds_per_case=self.limits.cpu_seconds_per_case)
        again = self.answers(spread(late, _TIME_OUTS_AGAIN), expected, limits=limits) if late else {}
        if len(late) > len(again) and any(answer.status is not CallStatus.TIMED_OUT for answer in again.values()):
            again |= self.answers(late, expected, limits=limits)
        return again

    def shrink_all(self, failures: Mapping[Call, Failure], *, max_bugs: int) -> list[Finding]:
        """Shrink failing calls of each kind, kinds in turns, until ``max_bugs`` different ones are found.

        Args:
            failures: of ``failures``.
            max_bugs: in all.

        Raises:
            SandboxUnavailableError: something could not be run.
        """
        starts = starts_of(failures)
        bugs: dict[str, dict[tuple[str, ...], Bug]] = {kind: {} for kind in starts}
        turns = [
            (kind, call)
            for turn in zip_longest(*starts.values())
            for kind, call in zip(starts, turn, strict=True)
            if call is not None
        ]
        for kind, call in watched(turns, total=len(turns), what="shrink", unit="call"):
            if sum(map(len, bugs.values())) < max_bugs:
                bug = self._shrunk(call, kind, others=list(failures))
                if bug is not None:
                    bugs[kind].setdefault((*(one.text for one in bug.earlier), bug.call.text), bug)
        counts = Counter(failure.kind for failure in failures.values())
        return [
            Finding(kind=kind, num_calls=count, bugs=self._seeds_tried(list(bugs[kind].values())))
            for kind, count in counts.most_common()
        ]

    def replay(self, texts: Sequence[str]) -> Bug | None:
        """The bug that the last of these calls shows, made after the others in a fresh process; None if it is right."""
        *earlier, last = map(self._call, texts)
        failure = self._failure_alone(*earlier, last)
        shrunk = Shrunk(call=last.text, path=(last.text,), num_asked=0, is_minimal=True)
        if failure is not None and failure.kind == TIME_OUT:
            return self._late_bug(last, shrunk)
        return self._bug(last, failure, shrunk, earlier=tuple(earlier))

    def _seeds_tried(self, bugs: Sequence[Bug]) -> tuple[Bug, ...]:
        """Marks bugs that depend on the hash seed; of one kind they are one bug, the first."""
        marked = [replace(bug, depends_on_seed=self._depends_on_seed(bug)) for bug in bugs]
        dependent = [bug for bug in marked if bug.depends_on_seed]
        return tuple(bug for bug in marked if not bug.depends_on_seed or bug is dependent[0])

    def _depends_on_seed(self, bug: Bug) -> bool:
        """The minimal call may come out alike under a few seeds; the longer one it was shrunk from hardly does."""
        if bug.hangs or bug.fails_late:
            return False
        sequences = [(*bug.earlier, bug.call)] if bug.earlier else [(bug.call,), (self._call(bug.start),)]
        for calls in sequences:
            expected = self.expectation.expect(calls, alone=True)
            # The roles of references have other hash seeds; nothing is asked of references after this.
            first, *others = (self._run(calls, expected, role=role)[-1] for role in Role)
            if any(differ(first, other) for other in others):
                return True
        return False

    def _shrunk(self, call: Call, kind: str, *, others: Sequence[Call]) -> Bug | None:
        """The minimal call of one failing call; None where the failure does not come again."""
        failure = self._failure_alone(call)
        if failure is None or failure.kind != kind:
            return None if self.expectation.is_stateful else self._shrunk_sequence(call, others)
        if kind == TIME_OUT:
            return self._shrunk_time_out(call)
        shrunk = self._shrink(call, self._still_fails_together(kind))
        last = self._call(shrunk.call)
        failure = self._failure_alone(last)
        if failure is None or failure.kind != kind:  # calls of a batch had changed one another's answers
            shrunk = self._shrink_alone(call, kind, lambda one: (one,))
            last = self._call(shrunk.call)
            failure = self._failure_alone(last)
        return self._bug(last, failure, shrunk)

    def _shrunk_time_out(self, call: Call) -> Bug | None:
        """The smallest call on the way that hangs; where none does, the smallest that is too slow."""
        shrunk = self._shrink(
            call, self._still_fails_together(TIME_OUT), batch=_TIME_OUT_BATCH, max_asked=_MAX_ASKED_TIME_OUT
        )
        path = [self._call(text) for text in shrunk.path[::-1]]
        for last in path[:_MAX_HANG_TRIES]:
            if self._late_failure(last) is not None:
                bug = self._late_bug(last, shrunk)
                return bug and replace(bug, is_minimal=shrunk.is_minimal and last == path[0])
        for last in path:
            failure = self._failure_alone(last)
            if failure is not None and failure.kind == TIME_OUT:
                return self._late_bug(last, shrunk) or self._bug(last, failure, shrunk)
        return None

    def _late_bug(self, call: Call, shrunk: Shrunk) -> Bug | None:
        """None where the answer is right after ``HANG_SECONDS`` or less."""
        late = self._late_failure(call)
        hangs = late is not None and late.kind == TIME_OUT
        bug = self._bug(call, self._failure_alone(call) if hangs else late, shrunk)
        return bug and replace(bug, hangs=hangs, fails_late=not hangs)

    def _late_failure(self, call: Call) -> Failure | None:
        """How a call fails that is given ``HANG_SECONDS``."""
        if call.text not in self._late:
            patient = replace(self.limits, cpu_seconds_per_case=HANG_SECONDS, wall_seconds_per_case=2 * HANG_SECONDS)
            self._late[call.text] = self._failure_alone(call, limits=patient)
        return self._late[call.text]

    def _shrunk_sequence(self, call: Call, others: Sequence[Call]) -> Bug | None:
        """A call that fails only after another one, both shrunk; the call itself is tried first as the other."""
        fewest = sorted(set(others) - {call}, key=lambda one: (len(one.text), one.text))[:_EARLIER_CALLS]
        for before in (call, *fewest):
            failure = self._failure_alone(before, call)
            if failure is not None:
                break
        else:
            return None
        kind, is_repeated = failure.kind, before == call
        shrunk = self._shrink_alone(call, kind, lambda one: (one if is_repeated else before, one))
        last = self._call(shrunk.call)
        before = last if is_repeated else self._call(self._shrink_alone(before, kind, lambda one: (one, last)).call)
        return self._bug(last, self._failure_alone(before, last), shrunk, earlier=(before,))

    def _bug(
        self, call: Call, failure: Failure | None, shrunk: Shrunk, *, earlier: tuple[Call, ...] = ()
    ) -> Bug | None:
        expected = self.expectation.expect([call], alone=True).get(call)
        if failure is None or expected is None:
            return None
        return Bug(
            call=call,
            earlier=earlier,
            expected=expected,
            failure=failure,
            start=shrunk.path[0],
            is_minimal=shrunk.is_minimal,
        )

    def _shrink(
        self, call: Call, still_fails: StillFails, *, batch: int = BATCH_CALLS, max_asked: int = MAX_ASKED
    ) -> Shrunk:
        entry_points = self.gate.interface.entry_points
        return shrink(call.text, still_fails, entry_points=entry_points, batch=batch, max_asked=max_asked)

    def _shrink_alone(self, call: Call, kind: str, sequence: Callable[[Call], tuple[Call, ...]]) -> Shrunk:
        """Shrink a call by what the last call of its ``sequence`` answers in a fresh process."""

        def still_fails(texts: list[str]) -> list[bool]:
            found = [self._failure_alone(*sequence(self._call(text))) for text in texts]
            return [failure is not None and failure.kind == kind for failure in found]

        return self._shrink(call, still_fails, batch=1, max_asked=_MAX_ASKED_ALONE)

    def _call(self, text: str) -> Call:
        """A call that was well formed stays so when its literals are simplified; else it is asked as written."""
        case = self.gate.call(text)
        return case.call if isinstance(case, Case) else Call(expression=text)

    def _still_fails_together(self, kind: str) -> StillFails:
        # Impatient with calls that hang: those it takes for hanging by mistake are found out at the end.
        limits = replace(self.limits, cpu_seconds_per_case=_IMPATIENT_SECONDS) if kind == TIME_OUT else None

        def still_fails(texts: list[str]) -> list[bool]:
            calls = {text: self._call(text) for text in texts if (kind, text) not in self._known}
            failures = self.failures(list(calls.values()), limits=limits)
            for text, call in calls.items():
                self._known[kind, text] = call in failures and failures[call].kind == kind
            return [self._known[kind, text] for text in texts]

        return still_fails

    def _failure_alone(self, *calls: Call, limits: Limits | None = None) -> Failure | None:
        """The failure of the last of these calls, in a fresh process."""
        expected = self.expectation.expect(calls[-1:], alone=True)
        return failure_of(expected[calls[-1]], self._run(calls, expected, limits=limits)[-1]) if expected else None

    def _run(
        self,
        calls: Sequence[Call],
        expected: Mapping[Call, Expected],
        *,
        isolated: bool = False,
        limits: Limits | None = None,
        role: Role = Role.CANDIDATE,
    ) -> tuple[CallResult, ...]:
        program = Program(
            source=self.source,
            calls=tuple(calls),
            reference_cpu_seconds=tuple(expected[call].cpu_seconds if call in expected else 0.0 for call in calls),
            limits=limits or self.limits,
            isolated=isolated,
            max_timeouts_without_result=len(calls) + 1,  # many are known to hang; the others count
        )
        result = self.runner.run(program, role=role)
        if not result.loaded:
            raise InputError(f"the program under attack does not load in the sandbox: {result.load_error}")
        return result.results
