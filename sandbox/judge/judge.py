"""The judge finds the valid asserts of a suite, and the candidate's outcome in each valid assert.

The judge's steps are the static gate, the reference pass, the candidate pass and the comparison. Expected values exist
only in the judge's trusted process.
"""

import random
import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple

from ..cases.case import Call, Case, Kind, Rejection, RejectionReason, Suite
from ..cases.definitions import imports_quickly, with_solution, without_examples
from ..cases.gate import Gate
from ..cases.parser import gather_suite
from ..errors import ValueFormatError
from ..limits import Limits
from ..runners.base import CallResult, CallStatus, Program, ProgramResult, Role, Runner
from ..values.comparison import to_literal
from ..values.outputs import Same
from .oracle import NoOracle, OracleBatch, OracleValue, ReferencePass, in_turns
from .repetition import families_of
from .request import JudgeRequest, comparison
from .run_cache import RunCache
from .verdict import CandidateVerdict, CaseOutcome, CaseResult, SuiteVerdict

_MIN_TIMEOUTS_WITHOUT_RESULT = 6
_EXAMPLES_SHARE = 16
"""The time for loading is divided by this number at the first try."""
_MAX_GATES = 256
"""Number of questions whose parsed asserts are kept."""
_SHOWN_VALUE_BYTES = 400
"""Size of the longest wrong value that the detail of a case shows."""


class _CandidateRun(NamedTuple):
    result: ProgramResult
    answers: dict[Call, CallResult]
    was_cached: bool = False
    example_failure: str = ""
    """The reason why an example was skipped, or why the program ran without its examples; empty if all ran."""


class Judge:
    """Judges candidates with one runner. Thread-safe; reference answers are cached between requests.

    Args:
        runner: runs the programs. The caller closes it.
        limits: limits of one program; None means the runner's limits.
        seed: decides the order of each candidate's calls.
        reuse_results: reuse the results of an earlier program that differs only in formatting and had the same calls.
            If False, each candidate runs for its own verdict.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        limits: Limits | None = None,
        seed: int = 0,
        reuse_results: bool = False,
    ) -> None:
        self._runner = runner
        limits = limits or runner.limits
        self._limits = limits
        # With the full limits, a training step would wait long for examples that hang.
        self._example_limits = replace(
            limits,
            load_cpu_seconds=limits.load_cpu_seconds / _EXAMPLES_SHARE,
            load_idle_seconds=limits.load_idle_seconds / _EXAMPLES_SHARE,
        )
        self._seed = seed
        self._gate = lru_cache(_MAX_GATES)(partial(Gate, assert_chars=limits.assert_chars))
        self._references = ReferencePass(runner, limits=limits)
        self._runs = RunCache() if reuse_results else None

    def judge(self, request: JudgeRequest, families: Mapping[Call, str] | None = None) -> CandidateVerdict:
        """Judge one candidate, and block until its verdict is ready.

        Args:
            request: the candidate with its suites.
            families: what ``prepare`` returned for this request. None: they are searched for now.

        Raises:
            SandboxUnavailableError: a program could not be run, so there is no verdict.
        """
        started = time.monotonic()
        suites = self._parse(request)
        groups = _calls_of(suites)
        batch = self._references.answer(request.question_id, self._reference(request), suites=groups)
        run = self._run_candidate(request, batch, groups)
        same = comparison(request.kind, request.checker)
        # With the checker ``accepted``, the reference prints all accepted outputs at once. If it were judged like other
        # candidates, it would fail its own cases.
        is_reference = request.candidate == request.reference
        if families is None or not families.keys() >= batch.valued.keys():
            # Nobody is paid for a data set's own tests, so the reference is not asked about them.
            [families] = families_of([batch], self._runner, limits=self._limits, asks=not request.given)
        compare = _Comparison(batch, run.answers, families, same, is_reference)
        # The last suite holds the replays. Replays are no tests of a data set, also beside such tests.
        verdicts = [compare.suite(suite, is_given=request.given) for suite in suites[:-1]]
        history = compare.suite(suites[-1], is_given=False)
        return CandidateVerdict(
            loaded=run.result.loaded,
            load_error=run.result.load_error,
            suites=tuple(verdicts),
            history=history.cases,
            dropped_history=history.rejections,
            cpu_seconds=run.result.cpu_seconds,
            wall_seconds=time.monotonic() - started,
            was_cached=run.was_cached,
            example_failure=run.example_failure,
        )

    def prepare(self, requests: Sequence[JudgeRequest]) -> list[dict[Call, str] | None]:
        """Let the reference answer all calls of these requests, so that ``judge`` finds the answers in the cache.

        This step is optional. After it, all candidates of a question use the answers of the same reference processes
        and get the same cases. A call for which the reference had no time left stays refused until the next
        ``prepare``.

        Args:
            requests: one or more requests with the same question, prelude, reference, kind and entry points.

        Returns:
            For each request the families of its calls, for ``judge``. For all of them the reference is asked at once.

        Raises:
            SandboxUnavailableError: the reference could not be run.
        """
        # All suites go into one pass, so that every candidate gets the same valid cases.
        groups = [_calls_of(self._parse(request)) for request in requests]
        reference = self._reference(requests[0])
        every = [group for of_request in groups for group in of_request]
        batch = self._references.answer(requests[0].question_id, reference, suites=every, final=True)
        written = [number for number, request in enumerate(requests) if not request.given]
        batches = [batch.part(chain(*groups[number])) for number in written]
        families = families_of(batches, self._runner, limits=self._limits, asks=True)
        found = dict(zip(written, families, strict=True))
        return [found.get(number) for number in range(len(requests))]

    def _parse(self, request: JudgeRequest) -> list[Suite]:
        """Parse the request's suites, and its replays as a last suite, in which repeated calls count once."""
        gate = self._gate_of(request)
        replays = [gate.call(text) for text in request.history]
        replays.sort(key=lambda replay: isinstance(replay, Case))  # refused replays first
        suites = [gate.suite(asserts) for asserts in request.suites]
        return [*suites, gather_suite(replays)]

    def _gate_of(self, request: JudgeRequest) -> Gate:
        return self._gate(request.reference, request.entry_points, kind=Kind(request.kind))

    def _reference(self, request: JudgeRequest) -> Program:
        return Program(
            prelude=request.prelude,
            source=request.reference,
            calls=(),
            limits=self._limits.for_reference(),
            timed=True,
            entry_points=self._names_under_test(request),
            reads_input=request.kind == Kind.STDIN,
        )

    def _names_under_test(self, request: JudgeRequest) -> tuple[str, ...]:
        return () if request.kind == Kind.STDIN else tuple(self._gate_of(request).interface.entry_points)

    def forget(self, question_id: str) -> None:
        """Drop the cached answers of a question's reference and programs."""
        self._references.forget(question_id)
        if self._runs is not None:
            self._runs.forget(question_id)

    def _order(self, question_id: str, groups: Iterable[Iterable[Call]]) -> list[Call]:
        """Shuffle the suites and the calls of each suite, and let the suites take turns."""
        seed = f"{self._seed}:{question_id}"
        rng = random.Random(seed.encode("utf-8", "surrogatepass"))
        # The calls are sorted before they are shuffled, so that the order does not depend on the calls' places in the
        # suite.
        shuffled = [sorted(group, key=lambda call: call.text) for group in groups]
        for group in shuffled:
            rng.shuffle(group)
        rng.shuffle(shuffled)
        return in_turns(shuffled)

    def _run_candidate(self, request: JudgeRequest, batch: OracleBatch, groups: list[list[Call]]) -> _CandidateRun:
        """Run the candidate on every call that has an oracle, in shuffled order."""
        if request.candidate is None:
            no_program = ProgramResult(loaded=False, load_error="no program in the response")
            return _CandidateRun(no_program, answers={})
        entry_points = self._gate_of(request).interface.entry_points
        source = request.candidate
        if "Solution" in entry_points:
            source = with_solution(source, entry_points["Solution"].methods)
        program = self._program(request, source, batch, groups)
        is_quick = imports_quickly(source) and not program.reads_input and request.candidate != request.reference
        first = replace(program, limits=self._example_limits) if is_quick else program
        result, is_cached = self._run(request.question_id, first)
        failure = result.example_failure
        if _hangs(result) and not program.reads_input:
            definitions = without_examples(source, entry_points)
            alone = None
            if definitions:
                program_alone = replace(program, source=definitions.source)
                if is_quick and definitions.needs_no_examples:
                    alone, is_cached = self._run(request.question_id, program_alone)
            # What raises without the examples may lack what they make.
            raises = alone is not None and any(answer.status is CallStatus.RAISED for answer in alone.results)
            if is_quick and (raises or not (alone and alone.loaded)):
                result, is_cached = self._run(request.question_id, program)
                failure = result.example_failure
            if definitions and _hangs(result):
                # The examples hang. So the program is judged without them.
                if alone is None:
                    alone, is_cached = self._run(request.question_id, program_alone)
                if alone.loaded:
                    failure = result.load_error
                    result = alone
        answers = dict(zip(program.calls, result.results, strict=False))
        return _CandidateRun(result, answers, was_cached=is_cached, example_failure=failure)

    def _program(self, request: JudgeRequest, source: str, batch: OracleBatch, groups: list[list[Call]]) -> Program:
        # Calls without an oracle are left out: they would cost time, and their answers could not be compared.
        seconds_of: dict[Call, float] = {}
        for call, oracle in batch.oracles.items():
            if isinstance(oracle, OracleValue):
                seconds_of[call] = oracle.cpu_seconds
        answerable = [[call for call in group if call in seconds_of] for group in groups]
        calls = self._order(request.question_id, answerable)
        # Costly calls come last, because they could use up the time of all other calls.
        costly_seconds = self._limits.cpu_seconds_per_case / 10
        calls.sort(key=lambda call: seconds_of[call] > costly_seconds)
        suite_of: dict[Call, int] = {}
        for number, group in enumerate(groups):
            suite_of |= dict.fromkeys(group, number)
        num_suites = sum(map(bool, groups))
        return Program(
            prelude=request.prelude,
            source=source,
            calls=tuple(calls),
            suites=tuple(suite_of[call] for call in calls),
            reference_cpu_seconds=tuple(seconds_of[call] for call in calls),
            limits=self._limits,
            # The judge gives a hanging program up only after each suite has had a turn.
            max_timeouts_without_result=max(_MIN_TIMEOUTS_WITHOUT_RESULT, num_suites),
            until_timeout=request.until_timeout,
            isolated=batch.is_stateful,
            entry_points=self._names_under_test(request),
            reads_input=request.kind == Kind.STDIN,
        )

    def _run(self, question_id: str, program: Program) -> tuple[ProgramResult, bool]:
        if self._runs is None:
            return self._runner.run(program, role=Role.CANDIDATE), False
        key, known = self._runs.find(question_id, program)
        with known.lock:  # an identical program waits here until the first one has run
            if known.result is not None:
                return replace(known.result, cpu_seconds=0.0, wall_seconds=0.0), True
            result = self._runner.run(program, role=Role.CANDIDATE)
            self._runs.keep(key, known, result)
        return result, False


def _hangs(result: ProgramResult) -> bool:
    """Tell whether a program did not load in its time."""
    # The text of a load error may come from the program. But a program that lies here could hang as well.
    return result.load_error.startswith(CallStatus.TIMED_OUT)


def _calls_of(suites: Iterable[Suite]) -> list[list[Call]]:
    return [[case.call for case in suite.cases] for suite in suites]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Everything that the cases of one candidate are compared with."""

    batch: OracleBatch
    answers: dict[Call, CallResult]
    families: Mapping[Call, str]
    same: Same
    is_reference: bool

    def suite(self, suite: Suite, *, is_given: bool) -> SuiteVerdict:
        """Compare the cases that have an oracle. Refuse the others, with the reason why they have no oracle."""
        results = []
        rejections = list(suite.rejections)
        seen: set[Hashable] = set()
        values_of: dict[bytes, list[bytes]] = defaultdict(list)
        for case in suite.cases:
            oracle = self.batch.oracles[case.call]
            if isinstance(oracle, NoOracle):
                rejections.append(Rejection(text=case.text, reason=oracle.reason, detail=oracle.detail))
                continue
            name = case.text.strip() if is_given else case.call
            is_repeated = name in seen
            seen.add(name)
            # An author is not paid twice for `f(3)` and `f(3.0)`, unless the reference tells them apart.
            if not (is_given or case.call.reads):
                values = values_of[case.key]
                is_repeated |= any(self.same(value, oracle.value) for value in values)
                values.append(oracle.value)
            if is_repeated:
                reason, detail = RejectionReason.DUPLICATE, case.call.text
                rejections.append(Rejection(text=case.text, reason=reason, detail=detail))
                continue
            outcome, detail = _outcome(oracle, self.answers.get(case.call), self.same, self.is_reference)
            result = CaseResult(
                call=case.call.text,
                reference_value=oracle.literal,
                expected=case.expected or oracle.literal,
                expected_correct=not case.expected or self.same(oracle.value, case.expected_value),
                outcome=outcome,
                detail=detail,
                key=case.key.hex(),
                family=self.families[case.call],
            )
            results.append(result)
        return SuiteVerdict(cases=tuple(results), rejections=tuple(rejections))


def _outcome(oracle: OracleValue, answer: CallResult | None, same: Same, is_reference: bool) -> tuple[CaseOutcome, str]:
    """Return the outcome of one case and its detail."""
    if answer is None:
        return CaseOutcome.NOT_LOADED, ""
    if answer.status is not CallStatus.VALUE:
        return CaseOutcome(answer.status.value), answer.detail
    is_same_program = is_reference and oracle.value == answer.value
    if is_same_program or same(oracle.value, answer.value):
        return CaseOutcome.PASSED, ""
    return CaseOutcome.WRONG_VALUE, _show(answer.value)


def _show(value: bytes) -> str:
    if len(value) > _SHOWN_VALUE_BYTES:
        return f"{len(value)} bytes"
    try:
        return to_literal(value)
    except ValueFormatError as error:
        return str(error)
