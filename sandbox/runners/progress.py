"""Runs one program to its end, locally or inside a service. After each early end, a new process continues."""

from dataclasses import dataclass, field

from ..errors import ProcessLostError
from .attempt import Attempt, ExitReason
from .base import (
    HANGS_THROUGHOUT,
    NOT_ASKED,
    TOTAL_SPENT,
    CallResult,
    CallStatus,
    Program,
    ProgramResult,
    import_seconds,
    total_seconds,
)
from .forker import Forker

_CHEAP_LOAD_SECONDS = 0.2
"""A program whose load takes longer gets no short limits. Each stopped call costs a load, so they would not pay."""


@dataclass(kw_only=True)
class Progress:
    """Results of one program so far.

    The results are kept if the fork server dies. A runner decides in ``try_again`` which early ends are not the
    program's fault.
    """

    program: Program
    results: dict[int, CallResult] = field(default_factory=dict)
    """Maps the index of each finished call to its result."""
    load_error: str = ""
    example_failure: str = ""
    has_loaded: bool = False
    cpu_seconds: float = 0.0
    used_seconds: float = 0.0
    """CPU and idle seconds that count against the program."""
    _slowest_seconds: float = 0.0
    _doubtful: dict[int, str] = field(default_factory=dict)
    """Calls that less than their full limit has stopped, each with the limit. These calls are made again at the end,
    with their full limit."""
    _is_patient: bool = False
    """True if the program is slow and does not hang, so it gets no short limits."""
    _has_timed_out: bool = False
    """True if a time-out ended the last process."""
    _has_imported_again: bool = False

    def run(self, forker: Forker) -> None:
        """Start processes until every call has a result, or until the program does not load.

        Raises:
            ProcessLostError: a process was lost before it ran the program. ``forker`` may raise other errors.
        """
        while not self.load_error:
            left = [index for index in range(len(self.program.calls)) if index not in self.results]
            if self.has_loaded and not left:
                return
            pending = [index for index in left if index not in self._doubtful]
            is_last_try = bool(self._doubtful) and (not pending or self.program.until_timeout)
            if is_last_try:
                pending = [min(self._doubtful, key=self._last_try_order)]
                del self._doubtful[pending[0]]
            seconds_left = total_seconds(self.program) - self.used_seconds
            if seconds_left <= 0:
                if self.has_loaded:
                    self._give_up(TOTAL_SPENT)
                else:
                    self.load_error = f"{CallStatus.TIMED_OUT.value} while loading: {TOTAL_SPENT}"
                return
            # Each isolated call gets a new process, so that the call does not depend on earlier calls.
            attempt = Attempt(
                program=self.program,
                indices=pending[:1] if self.program.isolated else pending,
                num_timeouts=self._num_timeouts(),
                slowest_seconds=self._slowest_seconds,
                is_first=not self.has_loaded,
                is_last_try=is_last_try,
                is_patient=self._is_patient or import_seconds(self.program) > 0,
                pays_imports=not self.has_loaded or self._may_import_again(),
                seconds_left=seconds_left,
                take=self.take,
            )
            try:
                stop = attempt.run(forker)
            finally:
                # The results are kept after errors of the forker, too, so that their calls are not made again.
                self.results |= dict(zip(attempt.indices, attempt.results, strict=False))
                self.cpu_seconds += attempt.cpu_seconds
                self.used_seconds += attempt.used_seconds
                self.has_loaded |= attempt.has_loaded
                self._slowest_seconds = attempt.slowest_seconds
            self._has_timed_out = stop is ExitReason.TIMED_OUT
            self.settle(attempt, stop)
            if is_last_try and pending[0] in self.results:
                self._end_last_try(self.results[pending[0]])
            elif attempt.load_seconds > _CHEAP_LOAD_SECONDS:
                self._is_patient = True

    def take(self, result: CallResult | str) -> None:
        """Take one result while its process still runs; see ``Attempt.take``."""
        if isinstance(result, str):
            self.example_failure = self.example_failure or result

    def try_again(self, attempt: Attempt, stop: ExitReason) -> bool:
        """Return True if somebody other than the program ended the process, so that its call must be made again."""
        return False

    def settle(self, attempt: Attempt, stop: ExitReason) -> None:
        """Charge an early end to the single call, or to the load, in which it happened."""
        if stop is ExitReason.FULL:
            self._give_up_barren()
        if stop in (ExitReason.FINISHED, ExitReason.FULL) or self.try_again(attempt, stop):
            return
        if stop is ExitReason.SETUP_FAILED:
            raise ProcessLostError(f"a program's process was lost before it started: {attempt.detail}")
        if attempt.detail == TOTAL_SPENT:
            return  # `run` will give up all pending calls, including this call
        status, detail = attempt.early_end(stop)
        if not attempt.has_loaded:
            self._fail_load(attempt, status, detail)
            return
        index = attempt.indices[len(attempt.results)]
        if self._has_timed_out and attempt.is_shortened and not self.program.timed:
            self._doubtful[index] = detail
        else:
            self.results[index] = CallResult(status=status, detail=detail)
        self._give_up_barren()

    def _may_import_again(self) -> bool:
        """Return True once, after the first time-out of a program that has answered a call before.

        Imports may have caused the time-out.
        """
        may = self._has_timed_out and self._slowest_seconds > 0 and not self._has_imported_again
        self._has_imported_again |= may
        return may

    def _last_try_order(self, index: int) -> tuple[int, float]:
        """Return the sort key of a doubtful call. The call that is most likely to succeed comes first.

        So calls of suites with few time-outs come first. Within such suites, calls that are slow for the reference come
        first, because a shortened limit affects slow calls most. The reference's time is rounded, because small
        differences come from chance.
        """
        suites = self.program.suites
        timed_out = [other for other, result in self.results.items() if result.status is CallStatus.TIMED_OUT]
        num_hangs = sum(suites[other] == suites[index] for other in (*timed_out, *self._doubtful))
        return num_hangs, -round(self.program.reference_cpu_seconds[index], 2)

    def _end_last_try(self, result: CallResult) -> None:
        """Give up the doubtful calls if one has timed out again and several are left. Otherwise the program is slow."""
        if result.status is CallStatus.TIMED_OUT:
            # With more tries, a training step would wait long for a program that hangs in some calls.
            if len(self._doubtful) > 1:
                self._end_doubtful()
        elif not self._is_patient:
            self._is_patient = True
            self._doubtful.clear()

    def _end_doubtful(self) -> None:
        for index, detail in self._doubtful.items():
            self.results[index] = CallResult(status=CallStatus.TIMED_OUT, detail=detail)
        self._doubtful.clear()

    def result(self, wall_seconds: float) -> ProgramResult:
        """Return the result of the finished program."""
        return ProgramResult(
            loaded=self.has_loaded,
            load_error=self.load_error,
            example_failure=self.example_failure,
            results=tuple(self.results[index] for index in sorted(self.results)),
            cpu_seconds=self.cpu_seconds,
            wall_seconds=wall_seconds,
        )

    def _give_up(self, detail: str) -> None:
        """Record a time-out for all calls that have no result, without making them."""
        for index in range(len(self.program.calls)):
            self.results.setdefault(index, CallResult(status=CallStatus.TIMED_OUT, detail=detail))

    def _give_up_barren(self) -> None:
        """Give up all other calls if the first calls gave no result, or if the first time-out must stop the program.

        Timed programs, such as references, go on, because hanging calls of one suite must not cost other suites their
        results.
        """
        program = self.program
        if program.timed:
            return
        statuses = [result.status for result in self.results.values()]
        num_barren = statuses.count(CallStatus.TIMED_OUT) + statuses.count(CallStatus.OUTPUT_LIMIT)
        is_barren = len(statuses) == num_barren
        if is_barren and num_barren + len(self._doubtful) >= program.max_timeouts_without_result:
            self._end_doubtful()
            self._give_up(HANGS_THROUGHOUT)
        elif program.until_timeout and CallStatus.TIMED_OUT in statuses:
            self._give_up(NOT_ASKED)

    def _num_timeouts(self) -> int:
        num_timed_out = sum(result.status is CallStatus.TIMED_OUT for result in self.results.values())
        return self.program.earlier_timeouts + num_timed_out + len(self._doubtful)

    def _fail_load(self, attempt: Attempt, status: CallStatus, detail: str) -> None:
        if not self.has_loaded:
            self.load_error = attempt.load_error or f"{status.value} while loading: {detail}"
            return
        # The program loaded in an earlier process but does not load in this one, so these calls cannot be made.
        died = CallResult(status=CallStatus.DIED, detail=f"did not load again: {attempt.load_error or detail}")
        for index in attempt.indices:
            self.results[index] = died
