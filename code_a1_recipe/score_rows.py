"""Items -> output rows: judge, reward, write down; an outage is a row without a reward."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

from reward_fns import Breakdown, code_reward
from sandbox import CandidateVerdict, JudgeRequest, SandboxUnavailableError

from .episode import hidden_request, request_for, rewarded
from .episode_data import CandidateResult
from .rollout_log import reward_record, suite_record, verdict_record
from .score_input import RECORDED, Item
from .settings import RewardSettings

logger = logging.getLogger(__name__)

MAX_OUTAGES_IN_A_ROW = 50
"""Without a verdict between them; then the sandbox is down and going on would only write outages."""
ITEMS_TOGETHER = 32
"""Most items of one question that go to the judge in one piece, and get their rows at once."""

Row = dict[str, Any]
JudgeAll = Callable[[Sequence[JudgeRequest]], Iterable[CandidateVerdict | SandboxUnavailableError]]
"""Judges requests of one question; results in their order, an outage in place of a verdict. Thread-safe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """From items to requests, and from verdicts to rows."""

    rewards: RewardSettings
    num_cases: int
    """K, the cases a suite was asked for."""

    def requests(self, item: Item) -> list[JudgeRequest]:
        """What the judge is asked: suites and replays, then the question's own tests where they were recorded."""
        request = request_for(item.question, item.result, history=item.history)
        if item.is_greedy:
            return [hidden_request(request, item.question)]
        return [request, *([hidden_request(request, item.question)] if item.has_hidden_tests else [])]

    def row(self, item: Item, results: Sequence[CandidateVerdict | SandboxUnavailableError]) -> Row:
        """The item's output row. An outage leaves ``reward`` null and says why in ``outage``."""
        verdicts: list[CandidateVerdict] = []
        for found in results:
            if isinstance(found, SandboxUnavailableError):
                return _row(item, replace(item.result, outage=f"{type(found).__name__}: {found}"), reward=None)
            verdicts.append(found)
        if item.is_greedy:
            return _row(item, replace(item.result, hidden=verdicts[0]), reward=None)
        verdict, hidden = verdicts[0], verdicts[1] if len(verdicts) > 1 else None
        result = replace(item.result, verdict=verdict, hidden=hidden)
        result = rewarded(result, rewards=self.rewards, num_cases=self.num_cases)
        if item.role == "test":
            return _row(item, result, reward=result.suites[0].reward)
        return _row(item, result, reward=code_reward(verdict) if item.role == "code" else result.reward)

    def score(self, items: Sequence[Item], judge_all: JudgeAll) -> list[Row]:
        """Rows of some items of one question."""
        requests = [self.requests(item) for item in items]
        results = iter(list(judge_all([request for group in requests for request in group])))
        return [
            self.row(item, list(itertools.islice(results, len(group))))
            for item, group in zip(items, requests, strict=True)
        ]


def _row(item: Item, result: CandidateResult, *, reward: Breakdown | None) -> Row:
    verdict = result.verdict
    suites = [suite_record(suite) for suite in verdict.suites] if verdict else [None] * len(result.suites)
    head = {"item": item.index, **item.labels}
    judged = {"outage": result.outage, "reward": reward_record(reward), "verdict": verdict_record(verdict)}
    if item.role != RECORDED:
        refusal = result.suites[0].refusal if item.role == "test" else result.refusal
        return {**head, "refusal": refusal, **judged, "suite": suites[0]}
    return {
        **item.record,
        **head,
        **judged,
        "source": result.source,
        "refusal": result.refusal,
        "hidden_tests": suite_record(result.hidden.suites[0]) if result.hidden else None,
        "suites": [
            {**old, "refusal": suite.refusal, "reward": reward_record(suite.reward), "verdict": judged_suite}
            for old, suite, judged_suite in zip(item.record["suites"], result.suites, suites, strict=True)
        ],
    }


def score_items(
    items: Sequence[Item], score: Callable[[Sequence[Item]], list[Row]], *, num_threads: int, num_attempts: int = 2
) -> Generator[Row, None, None]:
    """Score all items, some questions at a time; rows come as they get ready. Outages are tried again at the end.

    Args:
        items: in any order; those of one question go to the judge together, for its reference answers.
        score: gives the rows of items of one question; called from ``num_threads`` threads.
        num_threads: questions at a time, at least 1.
        num_attempts: how often an item may meet an outage before its row says so.

    Raises:
        SandboxUnavailableError: ``MAX_OUTAGES_IN_A_ROW`` of them without a verdict in between.
    """
    pending = list(items)
    for attempt in range(1, num_attempts + 1):
        again = []
        for item, row in _score_once(pending, score, num_threads=num_threads):
            if is_outage(row) and attempt < num_attempts:
                again.append(item)
            else:
                yield row
        pending = again
        if pending:
            logger.warning("%d items met an outage of the sandbox and are tried again", len(pending))


def _score_once(
    items: Sequence[Item], score: Callable[[Sequence[Item]], list[Row]], *, num_threads: int
) -> Iterator[tuple[Item, Row]]:
    waiting = iter(_pieces(items))
    outages_in_a_row = 0
    running: dict[Future[list[Row]], Sequence[Item]] = {}
    threads = ThreadPoolExecutor(num_threads, thread_name_prefix="score")
    try:
        while True:
            room = 2 * num_threads - len(running)
            running |= {threads.submit(score, piece): piece for piece in itertools.islice(waiting, room)}
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                for item, row in zip(running.pop(future), future.result(), strict=True):
                    outages_in_a_row = outages_in_a_row + 1 if is_outage(row) else 0
                    if outages_in_a_row >= MAX_OUTAGES_IN_A_ROW:
                        raise SandboxUnavailableError(
                            f"{outages_in_a_row} items in a row could not be judged, the last one because of "
                            f"{row['outage']}"
                        )
                    yield item, row
    finally:
        # Not waited for: whoever breaks off closes the judges next, which ends what still runs.
        threads.shutdown(wait=False, cancel_futures=True)


def _pieces(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Items by question, in the order of each question's first one, at most ``ITEMS_TOGETHER`` in a piece."""
    of_question: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        of_question.setdefault((item.question.id, item.question.reference), []).append(item)
    return [
        group[at : at + ITEMS_TOGETHER] for group in of_question.values() for at in range(0, len(group), ITEMS_TOGETHER)
    ]


def is_outage(row: Mapping[str, Any]) -> bool:
    """Whether the row says that nothing is known about its item."""
    return bool(row.get("outage"))
