"""The reference pass finds the right answer to each call, or the reason why the call has no right answer.

Two reference processes with different hash seeds run every distinct call of a question once, in opposite orders. The
oracle of a call is the reference's answer **in the state right after loading**. If the two processes agree on all calls
of a batch, order and hash seed do not matter, and the answers count. If the two processes differ, the reference is
nondeterministic or stateful (a mutable default, a global counter). Then the batch runs again, with every call in a
process of its own. Calls that still differ are nondeterministic. Candidates of a stateful reference get a process for
each call, too.

Two runs can agree by chance. So a reference runs once more, with the hash seed of candidates, because a candidate equal
to the reference must pass. If its text names a clock, this run comes a second later. A reference runs more often if it
names chance, or if it wavers: some call had two answers. If both are true, all calls are refused.
"""

import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Protocol

from ..cases.case import Call, RejectionReason
from ..cases.definitions import without_examples
from ..errors import ValueFormatError
from ..limits import Limits
from ..runners.base import TOTAL_SPENT, CallResult, CallStatus, Program, Role, Runner
from ..values.comparison import to_literal
from .bounded_cache import BoundedCache

logger = logging.getLogger(__name__)

MAX_CALLS_PER_QUESTION = 8192
MAX_BYTES = 256 << 20
"""Limit for the bytes of all cached answers."""
_ENTRY_BYTES = 450
_CRASHES = (CallStatus.TIMED_OUT, CallStatus.DIED, CallStatus.OUTPUT_LIMIT)
_REASONS = {
    CallStatus.RAISED: RejectionReason.REFERENCE_RAISED,
    CallStatus.DIED: RejectionReason.REFERENCE_RAISED,
    CallStatus.TIMED_OUT: RejectionReason.REFERENCE_TIMED_OUT,
    CallStatus.OUTPUT_LIMIT: RejectionReason.UNENCODABLE,
    CallStatus.UNENCODABLE: RejectionReason.UNENCODABLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleValue:
    """The right answer to one call, encoded at the moment when the call returned."""

    value: bytes
    literal: str
    cpu_seconds: float
    """CPU time of the call in the slower process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOracle:
    """The reason why a call has no right answer."""

    reason: RejectionReason
    detail: str


Oracle = OracleValue | NoOracle


_FURTHER_PASSES = 2
"""Limit of passes after the first one, for calls that had no time left. A pass may take ``limits.total_seconds``."""
_CHANCE = re.compile(r"\b(?:random|secrets|urandom|uuid\w*|id(?=\s*[(,)]))\b")
_CLOCK = re.compile(
    r"\b(?:time\.\w+|time_ns|times|now|utcnow|today|ctime|asctime|localtime|gmtime|strftime|default_timer|monotonic\w*|"
    r"perf_counter\w*)\b(?!\s*=)|\btime\s*\(|(?:import|from)\s.{,80}\btime(?:it)?\b"
)
_CLOCK_SECONDS = 1.1
"""Pause before another run of a reference that reads a clock. Many clocks show whole seconds."""
_REPEATS = (Role.CANDIDATE, *(Role.REFERENCE, Role.SECOND_REFERENCE) * 4)
"""Roles of further runs. A reference that wavers has them all. One that only names chance has ``_CHANCE_REPEATS``."""
_CHANCE_REPEATS = 5
_WAVERS = NoOracle(reason=RejectionReason.REFERENCE_NONDETERMINISTIC, detail="runs with different hash seeds differ")
_UNASKED = NoOracle(reason=RejectionReason.REFERENCE_TIMED_OUT, detail=TOTAL_SPENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleBatch:
    """The oracles of the calls of one request."""

    oracles: dict[Call, Oracle]
    is_stateful: bool
    """Calls influence one another. So a candidate must make each call in a process of its own."""
    reference: Program
    """The reference without calls. If its examples hang, it has only its definitions."""

    @property
    def valued(self) -> dict[Call, OracleValue]:
        """The calls that have an answer."""
        return {call: oracle for call, oracle in self.oracles.items() if isinstance(oracle, OracleValue)}

    def part(self, calls: Iterable[Call]) -> "OracleBatch":
        """Return the part of the batch with these calls."""
        return replace(self, oracles={call: self.oracles[call] for call in calls})


@dataclass(slots=True, eq=False)
class _Question:
    lock: threading.Lock = field(default_factory=threading.Lock)
    oracles: OrderedDict[Call, Oracle] = field(default_factory=OrderedDict)
    is_stateful: bool = False
    wavers: bool = False
    """Some call had two answers."""
    definitions: str = ""
    """The reference without its examples if these hang, otherwise empty."""
    num_timeouts: int = 0
    """Number of the reference's time-outs so far in all suites. Time-outs shorten the limits of later calls."""


def _size(call: Call, oracle: Oracle) -> int:
    """Estimate the bytes of a call and its oracle."""
    texts = (oracle.value, oracle.literal) if isinstance(oracle, OracleValue) else (oracle.detail,)
    return _ENTRY_BYTES + len(call.text) + sum(map(len, texts))


def in_turns(groups: Iterable[Iterable[Call]]) -> list[Call]:
    """List the first call of each group, then the second call of each, and so on. Drop repeated calls."""
    return list(dict.fromkeys(call for turn in zip_longest(*groups) for call in turn if call is not None))


class ReferencePass:
    """Computes and caches the oracles of each question. Thread-safe."""

    def __init__(self, runner: Runner, *, limits: Limits) -> None:
        self._runner = runner
        self._limits = limits
        self._questions = BoundedCache(_Question, max_bytes=MAX_BYTES)
        self.forget = self._questions.forget

    def answer(
        self,
        question_id: str,
        program: Program,
        *,
        suites: Sequence[Sequence[Call]],
        final: bool = False,
    ) -> OracleBatch:
        """Return the oracles of all calls. Threads that ask about the same question wait for one another.

        Args:
            program: the reference without calls; it is timed.
            suites: the calls of each suite. Suites take turns. If some calls had no time left, the next pass begins
                with the suites that hang least often.
            final: a call that had no time left stays refused until another final request asks for it. If False, the
                next request asks the reference for this call again.

        Raises:
            SandboxUnavailableError: the reference could not be run.
        """
        calls = in_turns(suites)
        # The reference is part of the key, so that a question with a corrected reference starts anew.
        text = f"{program.reads_input}{len(program.prelude)}:{program.prelude}{program.source}"
        key, question = self._questions.find(question_id, text)
        # All candidates of a question wait here for one run of the question's reference.
        with question.lock:
            known = question.oracles
            missing = [call for call in calls if call not in known or (final and known[call] == _UNASKED)]
            if missing:
                was_stateful = question.is_stateful
                found = self._compute_in_passes(question, program, missing, suites)
                if question.is_stateful and not was_stateful:
                    # Earlier answers come from a shared process, so they may depend on the calls that were made before.
                    known.clear()
                    earlier = [call for call in calls if call not in found]
                    if earlier:
                        found |= self._compute(question, program, earlier)
                for call, oracle in found.items():
                    # A call that had no time left may get an answer in another batch.
                    if final or oracle != _UNASKED:
                        known[call] = oracle
            oracles = {call: known.get(call, _UNASKED) for call in calls}
            for call in oracles:
                if call in known:
                    known.move_to_end(call)
            # The least recently asked calls are dropped first.
            while len(known) > MAX_CALLS_PER_QUESTION:
                known.popitem(last=False)
            if missing:
                size = sum(_size(call, oracle) for call, oracle in known.items())
                self._questions.note_size(key, question, size)
            program = replace(program, source=question.definitions or program.source)
            return OracleBatch(oracles=oracles, is_stateful=question.is_stateful, reference=program)

    def _compute_in_passes(
        self, question: _Question, program: Program, calls: list[Call], suites: Sequence[Sequence[Call]]
    ) -> dict[Call, Oracle]:
        """Ask all calls. Then ask again the calls that had no time left because other calls had used it."""
        found = self._compute(question, program, calls)
        for _ in range(_FURTHER_PASSES):
            unasked = [call for call, oracle in found.items() if oracle == _UNASKED]
            # If no call had time in this pass, no call would have time in another pass.
            if not unasked or len(unasked) == len(calls):
                break
            was_stateful = question.is_stateful
            # If a call is in several suites, the suite that hangs least often counts.
            num_hangs: dict[Call, int] = {}
            for suite in suites:
                suite_hangs = sum(_is_hang(found.get(call)) for call in suite)
                for call in suite:
                    num_hangs[call] = min(suite_hangs, num_hangs.get(call, suite_hangs))
            unasked.sort(key=num_hangs.__getitem__)
            found |= self._compute(question, program, unasked)
            if question.is_stateful and not was_stateful:
                return self._compute(question, program, calls)
        return found

    def _compute(self, question: _Question, program: Program, calls: list[Call]) -> dict[Call, Oracle]:
        load_errors: list[str] = []
        program = replace(program, source=question.definitions or program.source)

        def run(ordered: list[Call], role: Role, *, isolated: bool) -> list[CallResult]:
            if not load_errors:
                earlier = question.num_timeouts
                asked = replace(program, calls=tuple(ordered), isolated=isolated, earlier_timeouts=earlier)
                result = self._runner.run(asked, role=role)
                if result.loaded:
                    for answer in result.results:
                        if answer.status is CallStatus.TIMED_OUT and answer.detail != TOTAL_SPENT:
                            question.num_timeouts += 1
                    return list(result.results)
                load_errors.append(result.load_error)
            # The comparison needs some result for each call. The load error below replaces these results.
            return [CallResult(status=CallStatus.RAISED)] * len(ordered)

        oracles: dict[Call, Oracle] = {}
        repetition_differs = False
        if not question.is_stateful:
            oracles, repetition_differs = _compare(calls, run, isolated=False)
        differing = [call for call in oracles if oracles[call] == _WAVERS]
        # Chance or state may cause a difference. Isolated calls share no state, so their differences come from chance.
        if question.is_stateful or differing or repetition_differs:
            oracles, _ = _compare(calls, run, isolated=True)
        if load_errors:
            can_change = load_errors[0].startswith(CallStatus.TIMED_OUT) and not (
                question.definitions or program.reads_input
            )
            if can_change and (alone := without_examples(program.source, program.entry_points)):
                question.definitions = alone.source
                return self._compute(question, program, calls)
            logger.warning("a reference does not load, all its cases are refused: %s", load_errors[0])
            detail = f"the reference does not load: {load_errors[0]}"
            return dict.fromkeys(calls, NoOracle(reason=RejectionReason.REFERENCE_RAISED, detail=detail))
        question.wavers |= _WAVERS in oracles.values()
        # The reference has state if the repeated call differed, or if a differing call agrees after it was isolated.
        isolation_helped = any(isinstance(oracles[call], OracleValue) for call in differing)
        question.is_stateful |= repetition_differs or isolation_helped
        self._repeat(question, program.source, oracles, run)
        return oracles

    def _repeat(self, question: _Question, text: str, oracles: dict[Call, Oracle], run: "_Run") -> None:
        """Refuse calls that have another answer in further runs."""
        if _CLOCK.search(text):
            time.sleep(_CLOCK_SECONDS)
        names_chance = _CHANCE.search(text)
        num_repeats = _CHANCE_REPEATS if names_chance else 1
        for number, role in enumerate(_REPEATS, 1):
            valued = {call: oracle.value for call, oracle in oracles.items() if isinstance(oracle, OracleValue)}
            if question.wavers and names_chance:  # some of many random answers agree by chance in all runs
                oracles |= dict.fromkeys(valued, _WAVERS)
                return
            again = run(list(valued), role, isolated=question.is_stateful) if valued else []
            for (call, value), answer in zip(valued.items(), again, strict=True):
                if answer.status in _CRASHES:
                    continue
                if answer.status is not CallStatus.VALUE or answer.value != value:
                    oracles[call] = _WAVERS
                    question.wavers = True
            if not question.wavers and number == num_repeats:
                return


class _Run(Protocol):
    def __call__(self, ordered: list[Call], role: Role, *, isolated: bool) -> list[CallResult]: ...


def _compare(calls: list[Call], run: _Run, *, isolated: bool) -> tuple[dict[Call, Oracle], bool]:
    """Ask two processes in opposite orders. Without isolation, the second process repeats a call at the end.

    Returns:
        The oracles, and whether the repeated call had another answer.
    """
    first = dict(zip(calls, run(calls, Role.REFERENCE, isolated=isolated), strict=True))
    # Isolated calls keep the given order. So in both processes it is the last calls that may have no time left.
    ordered = calls if isolated else calls[::-1]
    # One crash is enough to refuse a call, so the second process does not make this call.
    live = [call for call in ordered if first[call].status not in _CRASHES]
    # If each call changes the state in the same way, both orders can agree. A repeated call shows the change.
    repeated = [] if isolated or len(live) < 2 else live[:1]
    again = run(live + repeated, Role.SECOND_REFERENCE, isolated=isolated)
    second = dict(zip(live, again, strict=False))
    oracles = {call: _judge(answer, second.get(call, answer)) for call, answer in first.items()}
    return oracles, bool(repeated) and not _agree(again[0], again[-1])


def _is_hang(oracle: Oracle | None) -> bool:
    is_timeout = isinstance(oracle, NoOracle) and oracle.reason is RejectionReason.REFERENCE_TIMED_OUT
    return is_timeout and oracle != _UNASKED


def _agree(one: CallResult, other: CallResult) -> bool:
    """Return True if two answers have the same status and bytes, or if one of them is a crash."""
    # Crashes depend on chance and are no sign of state. A single crash is enough to refuse the call.
    if one.status in _CRASHES or other.status in _CRASHES:
        return True
    return one.status is other.status and one.value == other.value


def _judge(one: CallResult, other: CallResult) -> Oracle:
    for answer in (one, other):
        if answer.status in _CRASHES:
            return NoOracle(reason=_REASONS[answer.status], detail=answer.detail)
    if not _agree(one, other):
        return _WAVERS
    if one.status is not CallStatus.VALUE:
        return NoOracle(reason=_REASONS[one.status], detail=one.detail)
    try:
        literal = to_literal(one.value)
    except ValueFormatError as error:
        return NoOracle(reason=RejectionReason.UNENCODABLE, detail=str(error))
    # The time of the slower process counts, so that a candidate's limit is less affected by a busy core.
    seconds = max(one.cpu_seconds, other.cpu_seconds)
    return OracleValue(value=one.value, literal=literal, cpu_seconds=seconds)
