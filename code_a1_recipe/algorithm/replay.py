"""Mistake Book, retrieve: the cases that candidates meet again; and what their verdicts mean to its update."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reward_fns.lookup import lookup
from sandbox import CandidateVerdict, CaseOutcome

from .mistake_book import BookEntry, FailedCase, MistakeBook

ReplaySampler = Callable[..., tuple[BookEntry, ...]]
"""``(book, question_id, *, limit, seed) -> entries``: at most ``limit`` distinct cases of the question."""


def most_frequent(book: MistakeBook, question_id: str, *, limit: int, seed: int) -> tuple[BookEntry, ...]:
    """The paper's rule: by frequency, ties to the older case. ``seed`` is not used."""
    del seed
    return book.retrieve(question_id, limit)


def uniform(book: MistakeBook, question_id: str, *, limit: int, seed: int) -> tuple[BookEntry, ...]:
    """Any of the question's cases with equal chance, without repetition.

    The draw depends on ``seed`` and the question id only, so a resumed run draws the same.
    """
    entries = book.entries(question_id)
    chance = random.Random(f"{seed}/{question_id}")
    return tuple(chance.sample(entries, min(limit, len(entries))))


REPLAY_SAMPLERS: dict[str, ReplaySampler] = {"frequency": most_frequent, "uniform": uniform}
"""By name; "frequency" is the default."""


def find_replay_sampler(name: str) -> ReplaySampler:
    """The sampler called ``name``; ValueError with the known names when there is none."""
    return lookup(name, REPLAY_SAMPLERS, what="replay sampler")


@dataclass(frozen=True, slots=True, kw_only=True)
class BookUpdate:
    """What one question's verdicts change in the Mistake Book; the arguments of ``MistakeBook.update``."""

    failed: tuple[FailedCase, ...]
    """One item per (candidate, suite) that fails a valid case."""
    passed_replays: tuple[str, ...]
    """One key per candidate that passes a replayed case."""


def collect_book_update(verdicts: Sequence[CandidateVerdict]) -> BookUpdate:
    """Collect a question's failed cases and passed replays from its candidates' verdicts.

    A case whose outcome is NOT_LOADED does not count: the candidate never ran, so every valid case would
    enter the book and push out the ones that tell candidates apart. The gate of R_T says the same. All
    other failures count, time-outs and deaths included.

    Args:
        verdicts: of candidates the judge answered for; rows lost to an outage are left out by the caller.

    Returns:
        Items in the order of candidates, suites and cases; the book does not depend on it.
    """
    failed = tuple(
        FailedCase(call=case.call, answer=case.reference_value, key=case.key)
        for verdict in verdicts
        for suite in verdict.suites
        for case in suite.cases
        if case.outcome.failed and case.outcome is not CaseOutcome.NOT_LOADED
    )
    passed = tuple(case.key or case.call for verdict in verdicts for case in verdict.history if not case.outcome.failed)
    return BookUpdate(failed=failed, passed_replays=passed)
