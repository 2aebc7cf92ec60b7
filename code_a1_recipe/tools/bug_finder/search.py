"""Attacks one program: finds calls on which the program fails, and shrinks them to minimal calls.

First, one process makes many calls. If a failing call does not fail when it is made alone, the failure depends on
earlier calls, which changed a default argument or a global. In this case, the search looks for one earlier call that is
enough to make the call fail. A new process confirms each minimal call.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sandbox import Call, CallResult, Limits, Program, ReferencePass, Role, Runner
from sandbox.text import TOTAL_SPENT, Case, Gate, OracleValue

from ...errors import InputError
from ...jobs.progress import Progress
from .failures import TIME_OUT, Failure, failure_of, was_asked
from .shrink import shrink
from .variants import variants

NOT_ASKED = "not asked, because no time was left"
HANG_SECONDS = 3.0
"""CPU seconds after which a call counts as hanging. The limit of a call is always at least ten times the reference's
time."""
_EARLIER_CALLS = 12
"""At most this many failing calls of each kind are tried as the earlier call on which a failure depends."""
_MAX_ASKED = 300
"""Largest number of calls that one search for a simpler call makes."""
_MAX_HANG_TRIES = 6
"""To confirm a failure, at most this many simplified calls are made again, the simplest first. To confirm a time-out,
each call gets the long limit ``HANG_SECONDS``."""
_IMPATIENT_SECONDS = 0.05
"""Limit of CPU seconds for a call while the search shrinks a call that times out. The limit of a call is always at
least ten times the reference's time."""


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A minimal failing call."""

    call: Call
    earlier: tuple[Call, ...] = ()
    """Calls that the same process must make before ``call``; empty if the call fails alone."""
    expected: OracleValue
    failure: Failure
    is_late: bool = False
    """The call exceeds the usual time limit. ``failure`` describes how the call fails with the much longer limit
    ``HANG_SECONDS``."""


@dataclass(frozen=True, kw_only=True)
class FailureGroup:
    """All failures of one kind."""

    kind: str
    num_calls: int
    bug: Bug | None
    """The minimal call; None if the failure could not be confirmed."""


@dataclass(kw_only=True)
class Attack:
    """One program, the reference that gives the right answers, and the runner of both programs.

    All methods raise ``SandboxUnavailableError`` if a program cannot be run, and ``InputError`` if the program under
    attack does not load.
    """

    source: str
    reference: str
    """Source of the reference. Without a reference, only ``answers`` may be called."""
    runner: Runner
    limits: Limits
    gate: Gate
    """Checks and reads changed calls and simplified calls, by the same rules as the calls in tests."""
    unasked: set[Call] = field(default_factory=set)
    """Calls for which the program or the reference had no time left."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Reason -> number of calls that got no right answer from the last ``expect``."""
    is_stateful: bool = False
    """Calls of the reference influence later calls of the reference, so each call is made in a new process."""

    @cached_property
    def _references(self) -> ReferencePass:
        return ReferencePass(self.runner, limits=self.limits)

    def calls_near(self, calls: Sequence[Call], *, max_calls: int) -> list[Call]:
        """List the given calls and then changed calls, together at most ``max_calls``. Given calls always stay."""
        texts = [call.text for call in calls]
        known = dict.fromkeys(calls)
        num_left = max(0, max_calls - len(calls))
        for text in variants(texts, self.gate.interface.entry_points, max_calls=num_left):
            case = self.gate.call(text)
            if isinstance(case, Case):
                known.setdefault(case.call)
        return list(known)

    def expect(self, calls: Collection[Call]) -> dict[Call, OracleValue]:
        """Make each call twice on the reference, and return the right answers.

        Calls without a right answer are left out, and counted in ``refusals``.
        """
        self.refusals = Counter()
        batch = self._references.answer(
            "attack",
            prelude="",
            reference=self.reference,
            suites=[list(calls)],
        )
        self.is_stateful = batch.is_stateful
        expected = {}
        for call, oracle in batch.oracles.items():
            if isinstance(oracle, OracleValue):
                expected[call] = oracle
            elif oracle.detail == TOTAL_SPENT:
                self.unasked.add(call)
                self.refusals[NOT_ASKED] += 1
            else:
                self.refusals[oracle.reason.value] += 1
        return expected

    def answers(self, calls: Collection[Call], expected: Mapping[Call, OracleValue]) -> dict[Call, CallResult]:
        """Make all calls in one process. If the reference keeps state between calls, each call gets a new process."""
        # Usually, the judge gives less time to calls after a time-out. With less time, a correct call would seem to
        # hang too.
        limits = replace(self.limits, min_cpu_seconds_per_case=self.limits.cpu_seconds_per_case)
        results = self._run(tuple(calls), expected, limits, isolated=self.is_stateful)
        answers = dict(zip(calls, results, strict=True))
        for call, answer in answers.items():
            if not was_asked(answer):
                self.unasked.add(call)
        return answers

    def find(self, calls: Collection[Call]) -> list[FailureGroup]:
        """Find the failing calls, group them by kind, and shrink the shortest call of each kind."""
        expected = self.expect(calls)
        answers = self.answers(expected, expected)
        calls_of_kind: dict[str, list[Call]] = {}
        for call in sorted(expected, key=lambda call: (len(call.text), call.text)):
            if failure := failure_of(expected[call].value, answers[call]):
                calls_of_kind.setdefault(failure.kind, []).append(call)
        shortest = []
        for failing in calls_of_kind.values():
            shortest += failing[:_EARLIER_CALLS]
        groups = []
        for kind, failing in Progress("shrink", calls_of_kind.items(), total=len(calls_of_kind), unit="call"):
            bug = self._minimal(failing[0], shortest)
            groups.append(FailureGroup(kind=kind, num_calls=len(failing), bug=bug))
        return sorted(groups, key=lambda group: -group.num_calls)

    def _minimal(self, call: Call, others: Sequence[Call]) -> Bug | None:
        """Shrink a failing call to a minimal call; None if the failure cannot be confirmed.

        Some calls fail only after an earlier call, which may be the same call or one of ``others``. The search then
        shrinks the failing call and the earlier call.
        """
        tries: list[list[Call]] = [[]]
        if not self.is_stateful:
            tries += [[earlier_call] for earlier_call in dict.fromkeys([call, *others])]
        limits = self.limits
        for earlier in tries:
            if failure := self._failure(*earlier, call, limits=limits):
                break
        else:
            return None
        kind = failure.kind
        simplest_first = self._shrink(call, kind, before=earlier)
        if earlier:
            earlier = self._shrink(earlier[0], kind, after=simplest_first[:1])[:1]
        is_late = kind == TIME_OUT
        if is_late:  # a call that is slow but returns the right value is no bug, so the limit is raised
            limits = replace(limits, cpu_seconds_per_case=HANG_SECONDS, wall_seconds_per_case=2 * HANG_SECONDS)
        for simpler in simplest_first[:_MAX_HANG_TRIES]:
            if failure := self._failure(*earlier, simpler, limits=limits):
                return Bug(
                    call=simpler,
                    earlier=tuple(earlier),
                    expected=self.expect([simpler])[simpler],
                    failure=failure,
                    is_late=is_late,
                )
        return None

    def _shrink(
        self,
        call: Call,
        kind: str,
        *,
        before: Sequence[Call] = (),
        after: Sequence[Call] = (),
    ) -> list[Call]:
        """List simpler calls that still fail with the kind ``kind``, the simplest first.

        For each simpler call, a new process makes the calls ``before``, the simpler call, and the calls ``after``. The
        simpler call is listed if the last call in this process fails with the kind ``kind``.
        """
        limits = self.limits
        if kind == TIME_OUT:  # a short limit saves time; later, `_minimal` drops calls that are only slow
            limits = replace(limits, cpu_seconds_per_case=_IMPATIENT_SECONDS)

        def fails(text: str) -> bool:
            failure = self._failure(*before, self._call(text), *after, limits=limits)
            return failure is not None and failure.kind == kind

        entry_points = self.gate.interface.entry_points
        failing = shrink(call.text, fails, entry_points=entry_points, max_asked=_MAX_ASKED)
        return list(map(self._call, failing))

    def _call(self, text: str) -> Call:
        """Read the text of a call. If the gate refuses the text, the call is made exactly as the text says."""
        case = self.gate.call(text)
        return case.call if isinstance(case, Case) else Call(expression=text)

    def _failure(self, *calls: Call, limits: Limits) -> Failure | None:
        """Make the calls in a new process, and describe the failure of the last call."""
        expected = self.expect(calls[-1:])
        if not expected:
            return None
        results = self._run(calls, expected, limits)
        return failure_of(expected[calls[-1]].value, results[-1])

    def _run(
        self,
        calls: tuple[Call, ...],
        expected: Mapping[Call, OracleValue],
        limits: Limits,
        *,
        isolated: bool = False,
    ) -> tuple[CallResult, ...]:
        seconds = [expected[call].cpu_seconds if call in expected else 0.0 for call in calls]
        program = Program(
            source=self.source,
            calls=calls,
            reference_cpu_seconds=tuple(seconds),
            limits=limits,
            isolated=isolated,
            # The run goes on after any number of time-outs, because a later call may fail in another way.
            max_timeouts_without_result=len(calls) + 1,
        )
        result = self.runner.run(program, role=Role.CANDIDATE)
        if not result.loaded:
            raise InputError(f"the program under attack does not load in the sandbox: {result.load_error}")
        return result.results
