"""The runner on this machine: a pool of fork servers per role, one program at a time in each."""

import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ...confinement.jail import UidPolicy, check_features, missing_features
from ...confinement.tiers import check_tier, probe
from ...errors import ProcessLostError, SandboxConfigError, SandboxUnavailableError
from ...limits import Limits
from ..attempt import Attempt, ExitReason
from ..base import (
    HANGS_THROUGHOUT,
    HASH_SEEDS,
    TOTAL_SPENT,
    CallResult,
    CallStatus,
    Closing,
    Program,
    ProgramResult,
    Role,
    refuse_long_source,
    total_seconds,
)
from .fork_server import ForkServer, ForkServerSettings

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Fork servers that may die under one program before the runner gives up."""
MAX_OUTSIDE_KILLS = 8
"""Times somebody else may kill a program's process before the runner gives up; programs cannot send signals."""


class LocalRunner(Closing):
    """Runs programs in confined forks of clean fork servers on this machine.

    Args:
        num_workers: programs of one role that run at once. Fork servers start when they are first needed,
            about 15 MB each.
        tier: how programs are confined, see ``sandbox.tiers``: 0 without privileges; 1 with namespaces
            and a private folder for files; 2 in bubblewrap too. Never lowered.
        limits: used where a judge sets none.
        allow_missing: protections to do without where the kernel lacks them (``"landlock"``,
            ``"seccomp"``); never the default.
        preload: modules that every program finds already imported, beside the common standard library.
        readable: further paths that programs may read.

    Raises:
        SandboxConfigError: this machine cannot confine programs as asked.
        SandboxUnavailableError: the first fork servers did not start.
    """

    def __init__(
        self,
        *,
        num_workers: int = 1,
        tier: int = 0,
        limits: Limits | None = None,
        allow_missing: Sequence[str] = (),
        preload: Sequence[str] = (),
        readable: Sequence[str] = (),
    ) -> None:
        check_num_workers(num_workers)
        check_tier(tier)
        check_features(allow_missing)
        for state in probe():
            logger.info("sandbox tier %d: %s", state.tier, state.reason or "works here")
        if absent := [path for path in readable if not os.path.exists(path)]:
            raise SandboxConfigError(f"readable names paths that do not exist: {absent}")
        self.limits = limits if limits is not None else Limits()
        self.num_workers = num_workers
        self.tier = tier
        base = ForkServerSettings(hash_seed=0, preload=tuple(preload), readable=tuple(readable), tier=tier)
        self._pools = {
            role: _Pool(replace(base, hash_seed=seed), size=num_workers) for role, seed in HASH_SEEDS.items()
        }
        try:
            for role, pool in self._pools.items():
                found = _start_first(pool, role)
            self.uid_policy: UidPolicy = found[0]
            self.notes: tuple[str, ...] = found[1]
        except BaseException:
            self.close()
            raise
        logger.info(
            "sandbox tier=%d missing=%s uid_policy=%s workers=%d",
            tier, ",".join(missing_features()) or "none", self.uid_policy, num_workers,
        )  # fmt: skip
        for note in self.notes:  # another uid policy took its place, which `python -m sandbox check` explains
            logger.info("sandbox: %s; using %s", note, self.uid_policy)

    def run(self, program: Program, *, role: Role) -> ProgramResult:
        """Run one program to its end; see ``Runner.run``."""
        started = time.monotonic()
        if refusal := refuse_long_source(program):
            return refusal
        progress = _Progress(program=program)
        pool = self._pools[role]
        for num_died in range(MAX_ATTEMPTS):
            try:
                with pool.fork_server() as fork_server:
                    progress.run(fork_server)
                return progress.result(time.monotonic() - started)
            except ProcessLostError as error:
                logger.warning("role=%s fork server died %d of %d: %s", role, num_died + 1, MAX_ATTEMPTS, error)
        raise SandboxUnavailableError(f"{MAX_ATTEMPTS} fork servers of role {role} died under one program")

    def fork_server_pids(self) -> tuple[int, ...]:
        """Pids of the fork servers that run now, for monitoring."""
        return tuple(pid for pool in self._pools.values() for pid in pool.pids())

    def close(self) -> None:
        """Stop every fork server, and with it every program. Idempotent; a run in progress raises."""
        for pool in self._pools.values():
            pool.close()


def check_num_workers(num_workers: object) -> None:
    """Refuse what is no number of workers.

    Raises:
        SandboxConfigError: it is none.
    """
    if type(num_workers) is not int or num_workers < 1:
        raise SandboxConfigError(f"num_workers must be an integer of at least 1, got {num_workers!r}")


def _start_first(pool: "_Pool", role: Role) -> tuple[UidPolicy, tuple[str, ...]]:
    """Start a pool's first fork server; how it confines programs."""
    for num_died in range(MAX_ATTEMPTS):
        try:
            with pool.fork_server() as first:
                return first.uid_policy, first.notes
        except ProcessLostError as error:
            logger.warning("role=%s fork server died %d of %d: %s", role, num_died + 1, MAX_ATTEMPTS, error)
    raise SandboxUnavailableError(f"{MAX_ATTEMPTS} fork servers of role {role} died while they started")


class _Pool:
    """At most ``size`` fork servers of one kind, started on demand, lent to one thread at a time."""

    def __init__(self, settings: ForkServerSettings, *, size: int) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(size)
        self._idle: list[ForkServer] = []
        self._all: set[ForkServer] = set()
        self._is_closed = False

    @contextmanager
    def fork_server(self) -> Iterator[ForkServer]:
        """Lend a fork server; one that fails its borrower in any way is replaced."""
        with self._slots:
            fork_server = self._take()
            try:
                yield fork_server
            except BaseException:
                self._discard(fork_server)
                raise
            with self._lock:
                self._idle.append(fork_server)

    def pids(self) -> list[int]:
        with self._lock:
            return [fork_server.pid for fork_server in self._all]

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            fork_servers = list(self._all)
            self._all.clear()
            self._idle.clear()
        for fork_server in fork_servers:
            fork_server.kill()

    def _take(self) -> ForkServer:
        with self._lock:
            if self._is_closed:
                raise SandboxUnavailableError("the runner is closed")
            if self._idle:
                return self._idle.pop()
        fork_server = ForkServer(self._settings)
        with self._lock:
            if not self._is_closed:
                self._all.add(fork_server)
                return fork_server
        fork_server.kill()
        raise SandboxUnavailableError("the runner is closed")

    def _discard(self, fork_server: ForkServer) -> None:
        with self._lock:
            self._all.discard(fork_server)
        fork_server.kill()


@dataclass(slots=True, kw_only=True)
class _Progress:
    """How far one program has come; survives the death of a fork server."""

    program: Program
    results: dict[int, CallResult] = field(default_factory=dict)
    load_error: str = ""
    cpu_seconds: float = 0.0
    _has_loaded: bool = False
    _used_seconds: float = 0.0
    _slowest_seconds: float = 0.0
    _num_outside_kills: int = 0

    def run(self, fork_server: ForkServer) -> None:
        """Fork until every call has a result, or the program turns out not to load."""
        while not self.load_error:
            pending = [index for index in range(len(self.program.calls)) if index not in self.results]
            if self._has_loaded and not pending:
                return
            seconds_left = total_seconds(self.program) - self._used_seconds
            if seconds_left <= 0:
                self._give_up(pending)
                return
            attempt = Attempt(
                program=self.program,
                indices=pending[:1] if self.program.isolated else pending,
                num_timeouts=self._num_timeouts(),
                slowest_seconds=self._slowest_seconds,
                is_first=not self._has_loaded,
                seconds_left=seconds_left,
            )
            try:
                stop = attempt.run(fork_server)
            finally:
                self.results |= dict(zip(attempt.indices, attempt.results, strict=False))
                self.cpu_seconds += attempt.cpu_seconds
                self._used_seconds += attempt.used_seconds
                self._has_loaded |= attempt.has_loaded
                self._slowest_seconds = attempt.slowest_seconds
            self._settle(attempt, stop)

    def result(self, wall_seconds: float) -> ProgramResult:
        num_calls = len(self.program.calls) if self._has_loaded else 0
        return ProgramResult(
            loaded=self._has_loaded,
            load_error=self.load_error,
            results=tuple(self.results[index] for index in range(num_calls)),
            cpu_seconds=self.cpu_seconds,
            wall_seconds=wall_seconds,
        )

    def _give_up(self, pending: Sequence[int]) -> None:
        if not self._has_loaded:
            self.load_error = f"{CallStatus.TIMED_OUT.value} while loading: {TOTAL_SPENT}"
            return
        self.results |= {index: CallResult(status=CallStatus.TIMED_OUT, detail=TOTAL_SPENT) for index in pending}

    def _settle(self, attempt: Attempt, stop: ExitReason) -> None:
        """Charge an early end to the one call, or the load, it happened in."""
        if stop is ExitReason.FULL:
            self._give_up_barren()
        if stop in (ExitReason.FINISHED, ExitReason.FULL):
            return
        closed = stop in (ExitReason.CLOSED, ExitReason.SETUP_FAILED)
        if stop is ExitReason.STOPPED or (closed and _was_killed(attempt)):
            self._num_outside_kills += 1
            self._used_seconds -= attempt.used_seconds
            logger.warning(
                "a program's process was killed or stopped from outside, %d of %d: trying that case again",
                self._num_outside_kills, MAX_OUTSIDE_KILLS,
            )  # fmt: skip
            if self._num_outside_kills == MAX_OUTSIDE_KILLS:
                raise SandboxUnavailableError(
                    f"one program's process was killed {MAX_OUTSIDE_KILLS} times by somebody other than the judge "
                    "(the kernel, short of memory?): lower limits.memory_bytes or the number of judge workers"
                )
            return
        if stop is ExitReason.SETUP_FAILED:
            raise ProcessLostError(f"a program's process was lost before it started: {attempt.detail}")
        if attempt.detail == TOTAL_SPENT:
            return  # nothing is left for the pending calls, this one included
        status, detail = attempt.early_end(stop)
        if not attempt.has_loaded:
            self._fail_load(attempt, status, detail)
            return
        self.results[attempt.indices[len(attempt.results)]] = CallResult(status=status, detail=detail)
        self._give_up_barren()

    def _give_up_barren(self) -> None:
        """Not of a reference: one suite's hanging calls must not cost another suite its results."""
        barren = [one for one in self.results.values() if one.status in (CallStatus.TIMED_OUT, CallStatus.OUTPUT_LIMIT)]
        if len(barren) == len(self.results) == self.program.max_timeouts_without_result and not self.program.timed:
            self.results |= {
                index: CallResult(status=CallStatus.TIMED_OUT, detail=HANGS_THROUGHOUT)
                for index in range(len(self.program.calls))
                if index not in self.results
            }

    def _num_timeouts(self) -> int:
        return sum(result.status is CallStatus.TIMED_OUT for result in self.results.values())

    def _fail_load(self, attempt: Attempt, status: CallStatus, detail: str) -> None:
        reason = attempt.load_error or detail
        if not self._has_loaded:
            self.load_error = attempt.load_error or f"{status.value} while loading: {detail}"
            return
        for index in attempt.indices:  # it loaded before; now it does not, so these calls cannot be made
            self.results[index] = CallResult(status=CallStatus.DIED, detail=f"did not load again: {reason}")


def _was_killed(attempt: Attempt) -> bool:
    """SIGKILL that the judge did not send: an operator, or the kernel out of memory."""
    # At the ceiling it is RLIMIT_CPU: many threads can spend it between two looks at the clock.
    return attempt.ending is not None and attempt.ending.was_killed and attempt.cpu_seconds < attempt.cpu_ceiling
