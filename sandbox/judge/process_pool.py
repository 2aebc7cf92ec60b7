"""Judges in worker processes, which use every core of this machine.

A single process would parse asserts and compare values on one core only, because both are Python code. Each worker is a
freshly started interpreter with a ``Judge`` and a ``LocalRunner``. A worker gets requests and sends verdicts over pipes
that no other process holds. All requests of a question go to one worker, so that its reference processes answer once
for all candidates. Callers take turns, question by question. If a worker is lost, it is replaced, and its questions are
judged again. Verdicts do not depend on a worker's cache.
"""

import logging
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from ..confinement.libc import end_with_parent
from ..errors import ProcessLostError, SandboxConfigError, SandboxUnavailableError
from ..runners.base import Closing
from ..runners.local.runner import LocalRunner, check_num_workers
from .judge import Judge
from .request import JudgeRequest
from .verdict import CandidateVerdict

logger = logging.getLogger(__name__)

MAX_WORKER_LOSSES = 3
"""If a question loses this number of workers, its results are an outage."""
DEFAULT_QUESTIONS_PER_WORKER = 4
"""Number of questions that a worker judges at once, each with one running program. If one program hangs, the other
programs go on."""
_STOP_SECONDS = 5.0
_BOOTSTRAP = """\
import sys
sys.path[:] = {path!r}
from {module} import serve
serve({descriptors!r}, {parent})
"""

Result = CandidateVerdict | SandboxUnavailableError
"""A verdict, or the reason why it is missing."""


@dataclass(slots=True, eq=False)
class _Batch:
    """The questions of one caller that no thread has taken yet."""

    questions: deque[tuple[list[JudgeRequest], Future[list[Result]]]]
    most_at_once: int
    num_running: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Settings of every worker."""

    questions_at_once: int = DEFAULT_QUESTIONS_PER_WORKER
    seed: int = 0
    """Seed of the judge, which shuffles the calls of each candidate."""
    runner: dict[str, Any] = field(default_factory=dict)
    """Further arguments of ``LocalRunner``."""


class JudgeProcesses(Closing):
    """Judges candidates in ``num_workers`` processes. Thread-safe.

    Args:
        num_workers: number of worker processes; None means one for each core.
        settings: settings of each worker.

    Raises:
        SandboxConfigError: a setting is wrong, or programs cannot be confined on this machine.
        SandboxUnavailableError: a worker did not start.
    """

    def __init__(self, num_workers: int | None = None, *, settings: WorkerSettings | None = None) -> None:
        if num_workers is None:
            num_workers = len(os.sched_getaffinity(0))
        check_num_workers(num_workers)
        self.num_workers = num_workers
        self._settings = settings or WorkerSettings()
        self._is_closed = threading.Event()
        self._slots = [_Slot(self._settings, is_closed=self._is_closed) for _ in range(num_workers)]
        # The threads of this pool start the workers, and must outlive them: when a thread ends, the kernel kills the
        # workers that it started, as if the parent process had ended.
        num_threads = num_workers * self._settings.questions_at_once
        self._threads = ThreadPoolExecutor(num_threads, thread_name_prefix="judge-process")
        self._num_threads = num_threads
        self._batches: deque[_Batch] = deque()
        self._choosing = threading.Lock()  # for ``_batches``
        self._free: queue.SimpleQueue[tuple[_Slot, int]] = queue.SimpleQueue()
        for channel in range(self._settings.questions_at_once):
            # Every worker gets its first question before any worker gets a second one.
            for slot in self._slots:
                self._free.put((slot, channel))
        try:
            list(self._threads.map(_Slot.worker, self._slots))
        except BaseException:
            self.close()
            raise

    def judge_all(self, requests: Iterable[JudgeRequest], *, num_left_free: int = 0) -> Iterator[Result]:
        """Judge many candidates. Yield each result as soon as it is ready, in the order of the requests.

        Requests of the same question are judged together and need not follow one another. If a candidate could not be
        judged, its result is the error. So an outage of one question does not affect the verdicts of other questions.
        After the iterator is closed, no further question begins.

        Args:
            requests: the candidates with their questions.
            num_left_free: number of threads that these requests leave to other callers, if there are enough threads.

        Raises:
            SandboxUnavailableError: the pool is closed.
        """
        if self._is_closed.is_set():
            raise SandboxUnavailableError("the judge processes are closed")
        requests = list(requests)
        # All candidates of a question go to one worker, whose reference processes answer once for all.
        groups: dict[object, list[int]] = {}
        for place, request in enumerate(requests):
            question = (request.question_id, request.prelude, request.reference, request.kind, request.entry_points)
            groups.setdefault(question, []).append(place)
        futures: dict[int, tuple[Future[list[Result]], int]] = {}
        batch = _Batch(deque(), max(1, self._num_threads - num_left_free))
        for places in groups.values():
            future = Future[list[Result]]()
            batch.questions.append(([requests[place] for place in places], future))
            futures |= {place: (future, rank) for rank, place in enumerate(places)}
        with self._choosing:
            self._batches.append(batch)
        try:
            for _ in range(min(len(groups), batch.most_at_once)):
                self._threads.submit(self._work)
            for place in range(len(requests)):
                # `pop` removes the future, so that a yielded verdict does not stay in memory.
                future, rank = futures.pop(place)
                yield future.result()[rank]
        finally:  # the caller may close the iterator early
            with self._choosing:
                batch.questions.clear()

    def worker_pids(self) -> tuple[int, ...]:
        """Return the pids of the running worker processes, for monitoring."""
        workers = [slot.running for slot in self._slots]
        return tuple(worker.pid for worker in workers if worker)

    def close(self) -> None:
        """Stop every worker and its programs. The results of questions in progress become outages. Idempotent."""
        self._is_closed.set()
        for slot in self._slots:
            slot.close()
        self._threads.shutdown(cancel_futures=True)
        for batch in self._batches:
            for _, future in batch.questions:
                future.cancel()

    def _work(self) -> None:
        """Judge questions until none may begin. A question that may not begin yet waits for a thread of its batch."""
        while taken := self._take():
            batch, requests, future = taken
            try:
                future.set_result(self._judge_group(requests))
            except Exception as error:  # noqa: BLE001 - the caller gets it
                future.set_exception(error)
            with self._choosing:
                batch.num_running -= 1

    def _take(self) -> tuple[_Batch, list[JudgeRequest], Future[list[Result]]] | None:
        with self._choosing:
            for _ in range(len(self._batches)):
                batch = self._batches.popleft()
                if not batch.questions:
                    continue
                self._batches.append(batch)  # the other batches come first next time
                if batch.num_running < batch.most_at_once:
                    batch.num_running += 1
                    return batch, *batch.questions.popleft()
        return None

    def _judge_group(self, requests: list[JudgeRequest]) -> list[Result]:
        """Judge one question's candidates on a worker. If the worker is lost, ask another worker."""
        reason = ""
        for attempt in range(MAX_WORKER_LOSSES):
            try:
                return self._ask_one(requests)
            except ProcessLostError as error:
                reason = str(error)
                logger.warning("judge worker lost, %d of %d: %s", attempt + 1, MAX_WORKER_LOSSES, error)
            except SandboxUnavailableError as error:
                # The sandbox itself has an outage, so another worker would not help.
                return [error] * len(requests)
        outage = SandboxUnavailableError(f"{MAX_WORKER_LOSSES} judge workers were lost under one question: {reason}")
        return [outage] * len(requests)

    def _ask_one(self, requests: list[JudgeRequest]) -> list[Result]:
        slot, channel = self._free.get()
        try:
            worker = slot.worker()
            try:
                return worker.ask(requests, channel=channel)
            except ProcessLostError:
                # The worker is discarded before its place is free again, so that the next thread starts a new worker.
                slot.discard(worker)
                raise
        finally:
            self._free.put((slot, channel))


class _Slot:
    """Place of one worker. If the worker is lost, the next use of the place starts another worker."""

    def __init__(self, settings: WorkerSettings, *, is_closed: threading.Event) -> None:
        self._settings = settings
        self._is_closed = is_closed
        self._lock = threading.Lock()
        self.running: _Worker | None = None

    def worker(self) -> "_Worker":
        with self._lock:
            if self._is_closed.is_set():
                raise SandboxUnavailableError("the judge processes are closed")
            if self.running is None:
                self.running = _Worker(self._settings)
            return self.running

    def discard(self, worker: "_Worker") -> None:
        """Close a lost worker, unless another thread has already closed it."""
        with self._lock:
            if self.running is worker:
                self.running = None
                worker.close()

    def close(self) -> None:
        with self._lock:
            if self.running:
                self.running.close()
                self.running = None


class _Worker:
    """The parent's side of one worker process. Each channel serves one thread at a time."""

    def __init__(self, settings: WorkerSettings) -> None:
        pairs = [Pipe() for _ in range(settings.questions_at_once)]
        self._channels = [ours for ours, _ in pairs]
        descriptors = [theirs.fileno() for _, theirs in pairs]
        code = _BOOTSTRAP.format(path=sys.path, module=__name__, descriptors=descriptors, parent=os.getpid())
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], pass_fds=descriptors, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            raise SandboxUnavailableError(f"cannot start {sys.executable}: {error}") from error
        finally:
            for _, theirs in pairs:
                theirs.close()
        self.pid = self._process.pid
        try:
            refusal = self._exchange(settings, self._channels[0])
        except ProcessLostError as error:
            self.close()
            raise SandboxUnavailableError(f"a judge worker did not start: {error}") from error
        if refusal is not None:
            self.close()
            raise refusal

    def ask(self, requests: list[JudgeRequest], *, channel: int) -> list[Result]:
        """Return the results of one question's requests, in their order.

        Raises:
            ProcessLostError: the process is gone.
            RuntimeError: the judge has a bug. The worker still runs.
        """
        results: list[Result] | Exception = self._exchange(requests, self._channels[channel])
        if isinstance(results, Exception):
            raise results
        return results

    def _exchange(self, message: object, channel: Connection) -> Any:
        """Send a message and return the answer. The answer is trusted, because no program runs in the worker itself."""
        try:
            channel.send(message)
            return channel.recv()
        except (OSError, EOFError) as error:
            raise ProcessLostError(f"worker pid={self.pid}: {error or 'hung up'}") from error

    def close(self) -> None:
        """End the process with its fork servers and programs. Idempotent.

        The end of the process wakes up threads that wait for its answers. A channel closes when no thread refers to it.
        """
        self._process.kill()
        self._process.wait()


def serve(descriptors: Sequence[int], parent: int) -> None:
    """Run a worker process: get the settings, then serve questions on every channel until the parent ends."""
    # Only the parent process handles interrupts. This process ends when its parent ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    # The parent may have ended before the call of `end_with_parent`.
    if os.getppid() != parent:
        return
    channels = [Connection(descriptor) for descriptor in descriptors]
    try:
        settings: WorkerSettings = channels[0].recv()
        runner = LocalRunner(num_workers=settings.questions_at_once, **settings.runner)
    except (SandboxConfigError, SandboxUnavailableError) as error:
        channels[0].send(error)
        return
    with runner, ThreadPoolExecutor(len(channels)) as threads:
        channels[0].send(None)
        judge = Judge(runner, seed=settings.seed)
        list(threads.map(lambda channel: _serve_channel(judge, channel), channels))


def _serve_channel(judge: Judge, channel: Connection) -> None:
    while True:
        try:
            requests: list[JudgeRequest] = channel.recv()
        except (EOFError, OSError):
            return
        try:
            answer: list[Result] | Exception = _judge_question(judge, requests)
        except Exception as error:  # the caller waits for an answer, and must learn of the bug
            logger.exception("question %s", requests[0].question_id)
            answer = RuntimeError(f"the judge failed on question {requests[0].question_id!r}: {error!r}")
        channel.send(answer)


def _judge_question(judge: Judge, requests: list[JudgeRequest]) -> list[Result]:
    results: list[Result] = []
    try:
        for request, families in zip(requests, judge.prepare(requests), strict=True):
            results.append(judge.judge(request, families))
    except SandboxUnavailableError as error:
        logger.warning("question %s: %s", requests[0].question_id, error)
        results += [error] * (len(requests) - len(results))
    # A question does not come again, so its cached answers would only take memory.
    judge.forget(requests[0].question_id)
    return results
