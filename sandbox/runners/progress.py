"""Progress of one program through its processes: a new one after each early end. The same here and in a service."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..errors import ProcessLostError
from .attempt import Attempt, ExitReason
from .base import (
    FREE_TIMEOUTS,
    HANGS_THROUGHOUT,
    NOT_ASKED,
    SHORTENED,
    TOTAL_SPENT,
    CallResult,
    CallStatus,
    Program,
    ProgramResult,
    total_seconds,
)
from .forker import Forker


@dataclass(kw_only=True)
class Progress:
    """Results of one program so far. They survive the death of the process that forks for it.

    A runner decides in ``try_again`` which ends are not the program's fault.
    """

    program: Program
    results: dict[int, CallResult] = field(default_factory=dict)
    """Maps the index of each finished call to its result."""
    load_error: str = ""
    has_loaded: bool = False
    cpu_seconds: float = 0.0
    used_seconds: float = 0.0
    """CPU and idle seconds, as far as they count against the program."""
    _slowest_seconds: float = 0.0
    _doubtful: set[int] = field(default_factory=set)
    """Calls that timed out under a shortened limit, of a program that has answered others. They are asked once more at
    the end, under their own."""
    _has_timed_out: bool = False
    """The last process."""
    _has_imported_again: bool = False

    def run(self, forker: Forker) -> None:
        """Fork until every call has a result, or the program turns out not to load.

        Raises:
            ProcessLostError: a process was lost before it ran the program. ``forker`` may raise errors of its own.
        """
        while not self.load_error:
            # Indices ascend and results come in order, so what is done is always a beginning.
            left = [index for index in range(len(self.program.calls)) if index not in self.results]
            pending = [index for index in left if index not in self._doubtful]
            is_last_try = self.has_loaded and not pending and bool(left)
            if is_last_try:
                pending = [min(left, key=self._hope)]
            if self.has_loaded and not pending:
                return
            seconds_left = total_seconds(self.program) - self.used_seconds
            if seconds_left <= 0:
                self._give_up(left)
                return
            # Isolated calls have a process each, so no call finds what another one left.
            attempt = Attempt(
                program=self.program,
                indices=pending[:1] if self.program.isolated else pending,
                num_timeouts=0 if is_last_try else self._num_timeouts(),
                slowest_seconds=self._slowest_seconds,
                is_first=not self.has_loaded,
                pays_imports=not self.has_loaded or self._may_import_again(),
                seconds_left=seconds_left,
                take=self.take,
            )
            try:
                stop = attempt.run(forker)
            finally:
                # Also where the forker died: what had arrived by then is not asked for again.
                self.results |= dict(zip(attempt.indices, attempt.results, strict=False))
                self.cpu_seconds += attempt.cpu_seconds
                self.used_seconds += attempt.used_seconds
                self.has_loaded |= attempt.has_loaded
                self._slowest_seconds = attempt.slowest_seconds
            self._has_timed_out = stop is ExitReason.TIMED_OUT
            self.settle(attempt, stop)
            if is_last_try:
                self._end_last_try(pending[0])

    def take(self, result: CallResult | None) -> bool:
        """See ``Attempt.take``: each result while its process still runs, None when the program has loaded."""
        return True

    def try_again(self, attempt: Attempt, stop: ExitReason) -> bool:
        """True where somebody else ended the process, so that its call is made again."""
        return False

    def settle(self, attempt: Attempt, stop: ExitReason) -> None:
        """Charge an early end to the one call, or the load, that it happened in."""
        if stop is ExitReason.FULL:
            self._give_up_barren()
        if stop in (ExitReason.FINISHED, ExitReason.FULL) or self.try_again(attempt, stop):
            return
        if stop is ExitReason.SETUP_FAILED:
            raise ProcessLostError(f"a program's process was lost before it started: {attempt.detail}")
        if attempt.detail == TOTAL_SPENT:
            return  # nothing is left for the pending calls, this one included
        status, detail = attempt.early_end(stop)
        if not attempt.has_loaded:
            self._fail_load(attempt, status, detail)
            return
        index = attempt.indices[len(attempt.results)]
        is_shortened = attempt.num_timeouts > FREE_TIMEOUTS and self._has_timed_out
        if is_shortened and self._slowest_seconds and not self.program.timed:
            self._doubtful.add(index)
        else:
            self.results[index] = CallResult(status=status, detail=detail)
        self._give_up_barren()

    def _may_import_again(self) -> bool:
        """Once, after a time-out that has cost a program that answers calls one of these."""
        may = self._has_timed_out and self._slowest_seconds > 0 and not self._has_imported_again
        self._has_imported_again |= may
        return may

    def _hope(self, index: int) -> tuple[int, float]:
        """Smaller for a call of a suite with fewer time-outs, and for a dear one, whom a short limit hits first."""
        suites, program = self.program.suites, self.program
        timed_out = [index for index, one in self.results.items() if one.status is CallStatus.TIMED_OUT]
        hangs = sum(suites[other] == suites[index] for other in (*timed_out, *self._doubtful))
        return hangs, -program.reference_cpu_seconds[index]

    def _end_last_try(self, index: int) -> None:
        """Give up once one was in vain."""
        if index not in self.results:
            return  # not its fault: it is asked again
        self._doubtful.remove(index)
        # More tries would keep a step waiting for a program that merely hangs in some calls.
        if self.results[index].status is CallStatus.TIMED_OUT:
            self._give_up(self._doubtful, detail=SHORTENED)
            self._doubtful.clear()

    def result(self, wall_seconds: float) -> ProgramResult:
        """The finished program."""
        num_calls = len(self.program.calls) if self.has_loaded else 0
        return ProgramResult(
            loaded=self.has_loaded,
            load_error=self.load_error,
            results=tuple(self.results[index] for index in range(num_calls)),
            cpu_seconds=self.cpu_seconds,
            wall_seconds=wall_seconds,
        )

    def _give_up(self, pending: Iterable[int], detail: str = TOTAL_SPENT) -> None:
        if not self.has_loaded:
            self.load_error = f"{CallStatus.TIMED_OUT.value} while loading: {TOTAL_SPENT}"
            return
        for index in pending:
            self.results[index] = CallResult(status=CallStatus.TIMED_OUT, detail=detail)

    def _give_up_barren(self) -> None:
        """Ask a program no more that gave nothing in its first calls, or has timed out and need not go on.

        Not a reference: one suite's hanging calls must not cost another suite its results.
        """
        program = self.program
        if program.timed:
            return
        statuses = [result.status for result in self.results.values()]
        num_barren = statuses.count(CallStatus.TIMED_OUT) + statuses.count(CallStatus.OUTPUT_LIMIT)
        if len(statuses) == num_barren == program.max_timeouts_without_result:
            detail = HANGS_THROUGHOUT
        elif program.until_timeout and self._num_timeouts():
            detail = NOT_ASKED
        else:
            return
        for index in range(len(program.calls)):
            self.results.setdefault(index, CallResult(status=CallStatus.TIMED_OUT, detail=detail))

    def _num_timeouts(self) -> int:
        found = sum(result.status is CallStatus.TIMED_OUT for result in self.results.values())
        return self.program.earlier_timeouts + found + len(self._doubtful - self.results.keys())

    def _fail_load(self, attempt: Attempt, status: CallStatus, detail: str) -> None:
        if not self.has_loaded:
            self.load_error = attempt.load_error or f"{status.value} while loading: {detail}"
            return
        # It loaded before and now it does not, so these calls cannot be made.
        died = CallResult(status=CallStatus.DIED, detail=f"did not load again: {attempt.load_error or detail}")
        for index in attempt.indices:
            self.results[index] = died
