"""The runner on this machine. Each role has a pool of fork servers. A fork server runs one program at a time."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from ...confinement.jail import check_features, missing_features
from ...confinement.tiers import check_tier, probe
from ...errors import ProcessLostError, SandboxConfigError, SandboxUnavailableError
from ...limits import Limits
from ..attempt import Attempt, ExitReason
from ..base import HASH_SEEDS, Closing, Program, ProgramResult, Role, refuse_long_source
from ..progress import Progress
from .fork_server import ForkServer, ForkServerSettings

logger = logging.getLogger(__name__)

T = TypeVar("T")
MAX_ATTEMPTS = 3
"""Number of fork servers that may die under one program before the runner gives up."""
MAX_OUTSIDE_KILLS = 8
"""If a program's process is killed or stopped from outside this many times, the runner gives up. Programs cannot send
signals."""


class LocalRunner(Closing):
    """Runs programs in confined forks of clean fork servers on this machine.

    Args:
        num_workers: number of programs that may run at once. Fork servers start when they are first needed and take
            about 15 MB each.
        tier: strength of the confinement, see ``confinement.tiers``. Tier 0 needs no privileges, tier 1 adds namespaces
            and a private folder for files. A tier that does not work is an error; the runner never takes a lower tier.
        limits: limits for judges that set no limits.
        allow_missing: protections (``"landlock"``, ``"seccomp"``) that the kernel may lack.
        preload: modules that every program finds imported, in addition to common modules of the standard library.
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
        self._places = threading.BoundedSemaphore(num_workers)
        self.tier = tier
        base = ForkServerSettings(hash_seed=0, preload=tuple(preload), readable=tuple(readable), tier=tier)
        self._pools = {role: _Pool(replace(base, hash_seed=seed)) for role, seed in HASH_SEEDS.items()}
        try:
            # One fork server of each role starts now, so that an error comes at once if this machine cannot confine
            # programs.
            for role in self._pools:
                first = self._with_fork_server(role, lambda started: started, when="while they started")
            self.uid_policy, self.notes = first.uid_policy, first.notes
        except BaseException:
            self.close()
            raise
        logger.info(
            "sandbox tier=%d missing=%s uid_policy=%s workers=%d",
            tier,
            ",".join(missing_features()) or "none",
            self.uid_policy,
            num_workers,
        )
        for note in self.notes:  # the notes say why a stronger uid policy does not work
            logger.info("sandbox: %s; using %s", note, self.uid_policy)

    def run(self, program: Program, *, role: Role) -> ProgramResult:
        """Run one program to its end; see ``Runner.run``."""
        started = time.monotonic()
        if refusal := refuse_long_source(program):
            return refusal
        progress = _LocalProgress(program=program)
        self._with_fork_server(role, progress.run, when="under one program")
        return progress.result(time.monotonic() - started)

    def _with_fork_server(self, role: Role, use: Callable[[ForkServer], T], *, when: str) -> T:
        """Use a fork server of a role. If the fork server dies, use another one, but only a few times."""
        for num_died in range(MAX_ATTEMPTS):
            try:
                with self._places, self._pools[role].fork_server() as fork_server:
                    return use(fork_server)
            except ProcessLostError as error:
                logger.warning("role=%s fork server died %d of %d: %s", role, num_died + 1, MAX_ATTEMPTS, error)
        raise SandboxUnavailableError(f"{MAX_ATTEMPTS} fork servers of role {role} died {when}")

    def fork_server_pids(self) -> tuple[int, ...]:
        """Return the pids of the fork servers that run now, for monitoring."""
        return tuple(pid for pool in self._pools.values() for pid in pool.pids())

    def close(self) -> None:
        """Stop all fork servers and programs. A run in progress raises ``SandboxUnavailableError``. Idempotent."""
        for pool in self._pools.values():
            pool.close()


def check_num_workers(num_workers: object) -> None:
    """Refuse a wrong number of workers.

    Raises:
        SandboxConfigError: the number is not an integer, or less than 1.
    """
    if type(num_workers) is not int or num_workers < 1:
        raise SandboxConfigError(f"num_workers must be an integer of at least 1, got {num_workers!r}")


class _Pool:
    """Fork servers of one role. They start on demand, and each is lent to one thread at a time."""

    def __init__(self, settings: ForkServerSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._idle: list[ForkServer] = []
        self._all: set[ForkServer] = set()
        self._is_closed = False

    @contextmanager
    def fork_server(self) -> Iterator[ForkServer]:
        """Lend a fork server. After any exception of the borrower, the fork server is killed."""
        fork_server = self._take()
        try:
            yield fork_server
        except BaseException:
            with self._lock:
                self._all.discard(fork_server)
            fork_server.kill()
            raise
        # The fork server is lent again only after success, because a borrower that raised an error may have sent half a
        # message.
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
        # The kills happen outside the lock, because each kill waits for a process.
        for fork_server in fork_servers:
            fork_server.kill()

    def _take(self) -> ForkServer:
        with self._lock:
            if self._is_closed:
                raise SandboxUnavailableError("the runner is closed")
            if self._idle:
                return self._idle.pop()  # the one used last, whose memory is still in the processor's caches
        # The start happens outside the lock, because it takes long, and other threads may find an idle fork server.
        fork_server = ForkServer(self._settings)
        with self._lock:
            if not self._is_closed:
                self._all.add(fork_server)
                return fork_server
        fork_server.kill()
        raise SandboxUnavailableError("the runner is closed")


@dataclass(kw_only=True)
class _LocalProgress(Progress):
    """Progress on this machine. Programs cannot send signals on this machine, so they cannot stop themselves either."""

    _num_outside_kills: int = 0

    def try_again(self, attempt: Attempt, stop: ExitReason) -> bool:
        """Return True after a kill or a stop from outside, so that the call is made again. This happens only a few
        times.

        Raises:
            SandboxUnavailableError: the program's process was killed or stopped ``MAX_OUTSIDE_KILLS`` times.
        """
        has_ended = stop in (ExitReason.CLOSED, ExitReason.SETUP_FAILED)
        if stop is not ExitReason.STOPPED and not (has_ended and _was_killed(attempt)):
            return False
        self._num_outside_kills += 1
        self.used_seconds -= attempt.used_seconds
        logger.warning(
            "a program's process was killed or stopped from outside, %d of %d: trying that case again",
            self._num_outside_kills,
            MAX_OUTSIDE_KILLS,
        )
        if self._num_outside_kills == MAX_OUTSIDE_KILLS:
            raise SandboxUnavailableError(
                f"one program's process was killed {MAX_OUTSIDE_KILLS} times by somebody other than the judge "
                "(the kernel, short of memory?): lower limits.memory_bytes or the number of judge workers"
            )
        return True


def _was_killed(attempt: Attempt) -> bool:
    """Return True if an operator, or the kernel when memory is short, ended the process by SIGKILL."""
    # A process that has used ``cpu_ceiling`` was killed by RLIMIT_CPU: many threads can use so much time between two
    # readings of the clock.
    return attempt.ending is not None and attempt.ending.was_killed and attempt.cpu_seconds < attempt.cpu_ceiling
