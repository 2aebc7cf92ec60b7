"""Attack on one program: calls on which it fails, each shrunk to a minimal one and confirmed in a fresh process.

The program runs where a ``sandbox.Runner`` runs it. It is asked many calls in one process. A failure that does not
come again when the call is made alone has to do with earlier calls (a default argument that is changed, a global);
then one call is looked for after which it comes.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
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
"""CPU seconds after which a call counts as hanging, unless the reference itself needs a tenth of them or more."""
_EARLIER_CALLS = 12
"""Calls of each kind that are tried in front of one that fails only after others."""
_MAX_ASKED = 300
_MAX_HANG_TRIES = 6
_IMPATIENT_SECONDS = 0.05
"""CPU seconds of a call while time-outs are shrunk; the reference's time counts tenfold as ever."""


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A minimal failing call."""

    call: Call
    earlier: tuple[Call, ...] = ()
    """Calls to make before it in the same process; empty where it fails alone."""
    expected: OracleValue
    failure: Failure


@dataclass(frozen=True, kw_only=True)
class FailureGroup:
    """All failures of one kind."""

    kind: str
    num_calls: int
    bug: Bug | None
    """The minimal call; None where the failure did not come again."""


@dataclass(kw_only=True)
class Attack:
    """One program, the reference that says what it should answer, and where both run.

    All methods raise ``SandboxUnavailableError`` where something could not be run, and ``InputError`` where the
    program does not load.
    """

    source: str
    reference: str
    """Empty where there is none: then nothing is expected, and nothing found."""
    runner: Runner
    limits: Limits
    gate: Gate
    """Reads simplified calls as it reads those of tests."""
    unasked: set[Call] = field(default_factory=set)
    """Calls that the program, or the reference, had no time left for."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Why calls that were expected last have no expected answer."""
    is_stateful: bool = False
    """The reference's calls influence one another by design; then each call is asked of a fresh process."""

    @cached_property
    def _references(self) -> ReferencePass:
        return ReferencePass(self.runner, limits=self.limits)

    def calls_near(self, calls: Sequence[Call], *, max_calls: int) -> list[Call]:
        """The given calls, then small changes of them up to ``max_calls`` in all."""
        room = max(0, max_calls - len(calls))
        texts = variants([call.text for call in calls], self.gate.interface.entry_points, max_calls=room)
        changed = [case.call for text in texts if isinstance(case := self.gate.call(text), Case)]
        return list(dict.fromkeys([*calls, *changed]))

    def expect(self, calls: Collection[Call]) -> dict[Call, OracleValue]:
        """The reference's answers, each taken twice; calls that have none are left out and counted."""
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
        """What the program answers, all calls in one process unless the reference itself keeps state."""
        # A call after one that hangs has no less time, or it would be taken for hanging too.
        limits = replace(self.limits, min_cpu_seconds_per_case=self.limits.cpu_seconds_per_case)
        results = self._run(tuple(calls), expected, limits, isolated=self.is_stateful)
        answers = dict(zip(calls, results, strict=True))
        self.unasked |= {call for call, answer in answers.items() if not was_asked(answer)}
        return answers

    def find(self, calls: Collection[Call]) -> list[FailureGroup]:
        """The failing calls by kind; the shortest of each kind is shrunk."""
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
        """The minimal call that one failing call leads to; None where the failure does not come again.

        A call that fails only after another one, itself or one of ``others``, is shrunk with it.
        """
        tries: list[list[Call]] = [[]]
        if not self.is_stateful:
            tries += [[before] for before in dict.fromkeys([call, *others])]
        for earlier in tries:
            if failure := self._failure(*earlier, call):
                break
        else:
            return None
        kind, limits = failure.kind, self.limits
        simplest_first = self._shrink(call, kind, lambda simpler: (*earlier, simpler))
        if earlier:
            last = simplest_first[0]
            earlier = self._shrink(earlier[0], kind, lambda simpler: (simpler, last))[:1]
        if is_late := kind == TIME_OUT:  # a slow call that is right is no bug
            limits = replace(limits, cpu_seconds_per_case=HANG_SECONDS, wall_seconds_per_case=2 * HANG_SECONDS)
        for simpler in simplest_first[:_MAX_HANG_TRIES]:
            if failure := self._failure(*earlier, simpler, limits=limits):
                expected = self.expect([simpler])[simpler]
                failure = replace(failure, is_late=is_late)
                return Bug(call=simpler, earlier=tuple(earlier), expected=expected, failure=failure)
        return None

    def _shrink(self, call: Call, kind: str, sequence: Callable[[Call], tuple[Call, ...]]) -> list[Call]:
        """Calls on which the last call of ``sequence`` fails in a fresh process, the simplest first."""
        limits = self.limits
        if kind == TIME_OUT:  # impatient: what it takes for hanging by mistake is found out at the end
            limits = replace(limits, cpu_seconds_per_case=_IMPATIENT_SECONDS)

        def fails(text: str) -> bool:
            failure = self._failure(*sequence(self._call(text)), limits=limits)
            return failure is not None and failure.kind == kind

        entry_points = self.gate.interface.entry_points
        return [self._call(text) for text in shrink(call.text, fails, entry_points=entry_points, max_asked=_MAX_ASKED)]

    def _call(self, text: str) -> Call:
        """A call that was well formed stays so when its literals are simplified; else it is asked as written."""
        case = self.gate.call(text)
        return case.call if isinstance(case, Case) else Call(expression=text)

    def _failure(self, *calls: Call, limits: Limits | None = None) -> Failure | None:
        """The failure of the last of these calls, in a fresh process."""
        expected = self.expect(calls[-1:])
        if not expected:
            return None
        results = self._run(calls, expected, limits or self.limits)
        return failure_of(expected[calls[-1]].value, results[-1])

    def _run(
        self,
        calls: tuple[Call, ...],
        expected: Mapping[Call, OracleValue],
        limits: Limits,
        *,
        isolated: bool = False,
    ) -> tuple[CallResult, ...]:
        program = Program(
            source=self.source,
            calls=calls,
            reference_cpu_seconds=tuple(expected[call].cpu_seconds if call in expected else 0.0 for call in calls),
            limits=limits,
            isolated=isolated,
            max_timeouts_without_result=len(calls) + 1,  # many are known to hang; the others count
        )
        result = self.runner.run(program, role=Role.CANDIDATE)
        if not result.loaded:
            raise InputError(f"the program under attack does not load in the sandbox: {result.load_error}")
        return result.results
