"""Attacks one program: finds calls on which it fails, shrinks each to a minimal call, and confirms it in a new process.

A ``sandbox.Runner`` runs the program. First it makes many calls in one process. If a failure does not come again when
the call is made alone, it depends on earlier calls (through a changed default argument, or a global). Then the search
looks for one earlier call that brings the failure back.
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

NOT_ASKED = "not asked for want of time"
HANG_SECONDS = 3.0
"""CPU seconds after which a call hangs. A call may always take ten times as long as the reference."""
_EARLIER_CALLS = 12
"""Failing calls of each kind that are tried as the earlier call on which a failure depends."""
_MAX_ASKED = 300
"""Calls that one search for a simpler call may make."""
_MAX_HANG_TRIES = 6
"""Simplified calls, the simplest first, that are confirmed with all the time they may need."""
_IMPATIENT_SECONDS = 0.05
"""CPU seconds of a call while time-outs are shrunk; a call may still take ten times as long as the reference."""


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A minimal failing call."""

    call: Call
    earlier: tuple[Call, ...] = ()
    """Calls to make before it in the same process; empty if the call fails alone."""
    expected: OracleValue
    failure: Failure
    is_late: bool = False
    """The call exceeds the usual time limit, and fails in this way with a much longer one."""


@dataclass(frozen=True, kw_only=True)
class FailureGroup:
    """All failures of one kind."""

    kind: str
    num_calls: int
    bug: Bug | None
    """The minimal call; None if the failure did not come again."""


@dataclass(kw_only=True)
class Attack:
    """One program, the reference that gives the right answers, and the runner of both.

    All methods raise ``SandboxUnavailableError`` if a program cannot be run, and ``InputError`` if the program under
    attack does not load.
    """

    source: str
    reference: str
    """Source of the reference. If it is empty, only ``answers`` is of use."""
    runner: Runner
    limits: Limits
    gate: Gate
    """Reads changed and simplified calls by the same rules as calls of tests."""
    unasked: set[Call] = field(default_factory=set)
    """Calls for which the program or the reference had no time left."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Reason -> calls of the last ``expect`` that have no right answer."""
    is_stateful: bool = False
    """The reference's calls influence one another by design, so each call is made in a new process."""

    @cached_property
    def _references(self) -> ReferencePass:
        return ReferencePass(self.runner, limits=self.limits)

    def calls_near(self, calls: Sequence[Call], *, max_calls: int) -> list[Call]:
        """List the given calls, then small changes of them, up to ``max_calls`` in all."""
        texts = [call.text for call in calls]
        known = dict.fromkeys(calls)
        for text in variants(texts, self.gate.interface.entry_points, max_calls=max(0, max_calls - len(calls))):
            case = self.gate.call(text)
            if isinstance(case, Case):
                known.setdefault(case.call)
        return list(known)

    def expect(self, calls: Collection[Call]) -> dict[Call, OracleValue]:
        """Ask the reference for the right answers, each twice. Calls without an answer are left out and counted."""
        self.refusals = Counter()
        batch = self._references.answer("attack", prelude="", reference=self.reference, suites=[list(calls)])
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
        """Make all calls in one process, or each in its own if the reference itself keeps state."""
        # After a call that hangs, the next one must not have less time. Else it would seem to hang too.
        limits = replace(self.limits, min_cpu_seconds_per_case=self.limits.cpu_seconds_per_case)
        results = self._run(tuple(calls), expected, limits, isolated=self.is_stateful)
        answers = dict(zip(calls, results, strict=True))
        self.unasked |= {call for call, answer in answers.items() if not was_asked(answer)}
        return answers

    def find(self, calls: Collection[Call]) -> list[FailureGroup]:
        """Find the failing calls by kind, and shrink the shortest call of each kind."""
        expected = self.expect(calls)
        answers = self.answers(expected, expected)
        kinds: dict[str, list[Call]] = {}
        for call in sorted(expected, key=lambda call: (len(call.text), call.text)):
            if failure := failure_of(expected[call].value, answers[call]):
                kinds.setdefault(failure.kind, []).append(call)
        shortest = [call for of_kind in kinds.values() for call in of_kind[:_EARLIER_CALLS]]
        groups = []
        for kind, of_kind in Progress("shrink", kinds.items(), total=len(kinds), unit="call"):
            bug = self._minimal(of_kind[0], shortest)
            groups.append(FailureGroup(kind=kind, num_calls=len(of_kind), bug=bug))
        return sorted(groups, key=lambda group: -group.num_calls)

    def _minimal(self, call: Call, others: Sequence[Call]) -> Bug | None:
        """Shrink a failing call to a minimal one; None if the failure does not come again.

        If the call fails only after an earlier call, itself or one of ``others``, both are shrunk.
        """
        tries: list[list[Call]] = [[]]
        if not self.is_stateful:
            tries += [[before] for before in dict.fromkeys([call, *others])]
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
        if is_late:  # a call that is slow but returns the right value is no bug, so it gets more time
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
        """List simpler calls, the simplest first, with which the last call of a new process fails.

        The process makes the calls ``before``, the simpler call, and the calls ``after``.
        """
        limits = self.limits
        if kind == TIME_OUT:  # a short limit saves time; `_minimal` drops calls that are only slow
            limits = replace(limits, cpu_seconds_per_case=_IMPATIENT_SECONDS)

        def fails(text: str) -> bool:
            failure = self._failure(*before, self._call(text), *after, limits=limits)
            return failure is not None and failure.kind == kind

        entry_points = self.gate.interface.entry_points
        failing = shrink(call.text, fails, entry_points=entry_points, max_asked=_MAX_ASKED)
        return list(map(self._call, failing))

    def _call(self, text: str) -> Call:
        """Read a call by the gate. A simplified call that the gate refuses is made as written."""
        case = self.gate.call(text)
        return case.call if isinstance(case, Case) else Call(expression=text)

    def _failure(self, *calls: Call, limits: Limits) -> Failure | None:
        """Make the calls in a new process, and describe the failure of the last one."""
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
            max_timeouts_without_result=len(calls) + 1,  # never give up: many calls may hang before one that fails
        )
        result = self.runner.run(program, role=Role.CANDIDATE)
        if not result.loaded:
            raise InputError(f"the program under attack does not load in the sandbox: {result.load_error}")
        return result.results
