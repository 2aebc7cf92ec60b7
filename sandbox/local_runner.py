"""The runner on this machine: a pool of zygotes per lane, one program at a time in each."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType

from .attempt import Attempt, Stop
from .confine import UidPolicy, check_features, missing_features
from .errors import SandboxConfigError, SandboxUnavailableError
from .limits import Limits
from .runner import (
    HANGS_THROUGHOUT,
    IMPATIENCE,
    IMPATIENCE_WITH_REFERENCES,
    TOTAL_SPENT,
    Answer,
    AnswerKind,
    Lane,
    Program,
    ProgramResult,
    total_seconds,
)
from .tiers import check_tier, probe
from .zygote import Zygote, ZygoteDiedError, ZygoteSettings

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Zygotes that may die under one program before the runner gives up."""
MAX_OUTSIDE_KILLS = 8
"""Times somebody else may kill a program's process before the runner gives up; programs cannot send signals."""
HASH_SEEDS = {Lane.CANDIDATE: 0, Lane.REFERENCE: 1, Lane.SECOND_REFERENCE: 2}


class LocalRunner:
    """Runs programs in confined forks of clean zygotes on this machine.

    Args:
        num_workers: programs of one lane that run at once. Zygotes start when they are first needed,
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
        SandboxUnavailableError: the first zygotes did not start.
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
        base = ZygoteSettings(hash_seed=0, preload=tuple(preload), readable=tuple(readable), tier=tier)
        self._pools = {
            lane: _Pool(replace(base, hash_seed=seed), size=num_workers) for lane, seed in HASH_SEEDS.items()
        }
        try:
            for lane, pool in self._pools.items():
                found = _start_first(pool, lane)
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

    def run(self, program: Program, *, lane: Lane) -> ProgramResult:
        """Run one program to its end; see ``Runner.run``."""
        started = time.monotonic()
        size = len(program.source.encode("utf-8", "surrogatepass"))
        if size > program.limits.source_bytes:
            return ProgramResult(
                loaded=False,
                load_error=f"{size} bytes of source, more than limits.source_bytes = {program.limits.source_bytes}",
                answers=(),
                cpu_seconds=0.0,
                wall_seconds=0.0,
            )
        progress = _Progress(program=program)
        pool = self._pools[lane]
        for num_died in range(MAX_ATTEMPTS):
            try:
                with pool.zygote() as zygote:
                    progress.run(zygote)
                return progress.result(time.monotonic() - started)
            except ZygoteDiedError as error:
                logger.warning("lane=%s zygote died %d of %d: %s", lane, num_died + 1, MAX_ATTEMPTS, error)
        raise SandboxUnavailableError(f"{MAX_ATTEMPTS} zygotes of lane {lane} died under one program")

    def zygote_pids(self) -> tuple[int, ...]:
        """Pids of the zygotes that run now, for monitoring."""
        return tuple(pid for pool in self._pools.values() for pid in pool.pids())

    def close(self) -> None:
        """Stop every zygote, and with it every program. Idempotent; a run in progress raises."""
        for pool in self._pools.values():
            pool.close()

    def __enter__(self) -> LocalRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def check_num_workers(num_workers: object) -> None:
    """Refuse what is no number of workers.

    Raises:
        SandboxConfigError: it is none.
    """
    if type(num_workers) is not int or num_workers < 1:
        raise SandboxConfigError(f"num_workers must be an integer of at least 1, got {num_workers!r}")


def _start_first(pool: _Pool, lane: Lane) -> tuple[UidPolicy, tuple[str, ...]]:
    """Start a pool's first zygote; how it confines programs."""
    for num_died in range(MAX_ATTEMPTS):
        try:
            with pool.zygote() as first:
                return first.uid_policy, first.notes
        except ZygoteDiedError as error:
            logger.warning("lane=%s zygote died %d of %d: %s", lane, num_died + 1, MAX_ATTEMPTS, error)
    raise SandboxUnavailableError(f"{MAX_ATTEMPTS} zygotes of lane {lane} died while they started")


class _Pool:
    """At most ``size`` zygotes of one kind, started on demand, lent to one thread at a time."""

    def __init__(self, settings: ZygoteSettings, *, size: int) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(size)
        self._idle: list[Zygote] = []
        self._all: set[Zygote] = set()
        self._is_closed = False

    @contextmanager
    def zygote(self) -> Iterator[Zygote]:
        """Lend a zygote; one that fails its borrower in any way is replaced."""
        with self._slots:
            zygote = self._take()
            try:
                yield zygote
            except BaseException:
                self._discard(zygote)
                raise
            with self._lock:
                self._idle.append(zygote)

    def pids(self) -> list[int]:
        with self._lock:
            return [zygote.pid for zygote in self._all]

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            zygotes = list(self._all)
            self._all.clear()
            self._idle.clear()
        for zygote in zygotes:
            zygote.kill()

    def _take(self) -> Zygote:
        with self._lock:
            self._refuse_if_closed()
            if self._idle:
                return self._idle.pop()
        zygote = Zygote(self._settings)
        with self._lock:
            if not self._is_closed:
                self._all.add(zygote)
                return zygote
        zygote.kill()
        raise SandboxUnavailableError("the runner is closed")

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise SandboxUnavailableError("the runner is closed")

    def _discard(self, zygote: Zygote) -> None:
        with self._lock:
            self._all.discard(zygote)
        zygote.kill()


@dataclass(slots=True, kw_only=True)
class _Progress:
    """How far one program has come; survives the death of a zygote."""

    program: Program
    answers: dict[int, Answer] = field(default_factory=dict)
    load_error: str = ""
    cpu_seconds: float = 0.0
    _has_loaded: bool = False
    _used_seconds: float = 0.0
    _patience: float = 1.0
    _num_outside_kills: int = 0

    def run(self, zygote: Zygote) -> None:
        """Fork until every call has an answer, or the program turns out not to load."""
        while not self.load_error:
            pending = [index for index in range(len(self.program.calls)) if index not in self.answers]
            if self._has_loaded and not pending:
                return
            seconds_left = total_seconds(self.program) - self._used_seconds
            if seconds_left <= 0:
                self._give_up(pending)
                return
            attempt = Attempt(
                program=self.program,
                indices=pending[:1] if self.program.isolated else pending,
                patience=self._patience,
                seconds_left=seconds_left,
            )
            try:
                stop = attempt.run(zygote)
            finally:
                self.answers |= dict(zip(attempt.indices, attempt.answers, strict=False))
                self.cpu_seconds += attempt.cpu_seconds
                self._used_seconds += attempt.used_seconds
                self._has_loaded |= attempt.has_loaded
            self._settle(attempt, stop)

    def result(self, wall_seconds: float) -> ProgramResult:
        num_calls = len(self.program.calls) if self._has_loaded else 0
        return ProgramResult(
            loaded=self._has_loaded,
            load_error=self.load_error,
            answers=tuple(self.answers[index] for index in range(num_calls)),
            cpu_seconds=self.cpu_seconds,
            wall_seconds=wall_seconds,
        )

    def _give_up(self, pending: Sequence[int]) -> None:
        if not self._has_loaded:
            self.load_error = f"{AnswerKind.TIMED_OUT.value} while loading: {TOTAL_SPENT}"
            return
        self.answers |= {index: Answer(kind=AnswerKind.TIMED_OUT, detail=TOTAL_SPENT) for index in pending}

    def _settle(self, attempt: Attempt, stop: Stop) -> None:
        """Charge an early end to the one call, or the load, it happened in."""
        if stop in (Stop.FINISHED, Stop.FULL):
            return
        current = attempt.indices[len(attempt.answers)] if attempt.has_loaded else -1
        if stop is Stop.STOPPED or (stop in (Stop.CLOSED, Stop.SETUP_FAILED) and _was_killed(attempt)):
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
        if stop is Stop.SETUP_FAILED:
            raise ZygoteDiedError(f"a program's process was lost before it started: {attempt.detail}")
        kind, detail = _ENDINGS.get(stop, (AnswerKind.DIED, "")), attempt.detail
        if detail == TOTAL_SPENT:
            return  # nothing is left for the pending calls, this one included
        if current == -1:
            self._fail_load(attempt, kind[0], detail)
            return
        self.answers[current] = Answer(kind=kind[0], detail=detail or kind[1] or _describe_end(attempt))
        if stop is Stop.TIMED_OUT:
            self._patience /= IMPATIENCE_WITH_REFERENCES if self.program.timed else IMPATIENCE
            # Not a reference: one suite's hanging calls must not cost another suite its answers.
            if len(self.answers) == self.program.barren_timeouts and self._only_timed_out() and not self.program.timed:
                self.answers |= {
                    index: Answer(kind=AnswerKind.TIMED_OUT, detail=HANGS_THROUGHOUT)
                    for index in range(len(self.program.calls))
                    if index not in self.answers
                }

    def _only_timed_out(self) -> bool:
        return all(answer.kind is AnswerKind.TIMED_OUT for answer in self.answers.values())

    def _fail_load(self, attempt: Attempt, kind: AnswerKind, detail: str) -> None:
        reason = attempt.load_error or detail or _describe_end(attempt)
        if not self._has_loaded:
            self.load_error = f"{kind.value} while loading: {reason}" if not attempt.load_error else reason
            return
        for index in attempt.indices:  # it loaded before; now it does not, so these calls cannot be made
            self.answers[index] = Answer(kind=AnswerKind.DIED, detail=f"did not load again: {reason}")


_ENDINGS = {
    Stop.TIMED_OUT: (AnswerKind.TIMED_OUT, ""),
    Stop.OUTPUT_LIMIT: (AnswerKind.OUTPUT_LIMIT, "too much output"),
    Stop.BROKE_PROTOCOL: (AnswerKind.DIED, "broke its channel"),
    Stop.CLOSED: (AnswerKind.DIED, ""),
}


def _was_killed(attempt: Attempt) -> bool:
    """SIGKILL that the judge did not send: an operator, or the kernel out of memory."""
    ending = attempt.ending
    if ending is None or not ending.by_itself or attempt.cpu_seconds >= attempt.cpu_ceiling:
        return False  # the last is RLIMIT_CPU: many threads can spend it between two looks at the clock
    return (ending.status & 0x7F) == signal.SIGKILL


def _describe_end(attempt: Attempt) -> str:
    if attempt.ending is None or not attempt.ending.by_itself:
        return "closed its channel"
    status = attempt.ending.status
    number = status & 0x7F
    if not number:
        return f"exited with status {status >> 8}"
    known = {member.value for member in signal.Signals}
    return f"ended by {signal.Signals(number).name if number in known else f'signal {number}'}"
