"""Mistake Book, retrieve: the cases that candidates meet again; and what their verdicts mean to its update."""

import heapq
import random
from collections.abc import Callable, Sequence
from itertools import islice, zip_longest

from sandbox import CandidateVerdict, CaseOutcome, CaseResult, RejectionReason

from .hindsight import Lesson
from .mistake_book import BookEntry, BookUpdate, FailedCase, MistakeBook
from .opponents import OpponentUpdate

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


def weighted(book: MistakeBook, question_id: str, *, limit: int, seed: int) -> tuple[BookEntry, ...]:
    """In proportion to quality, without repetition (Efraimidis and Spirakis 2006); seeded as ``uniform`` is."""
    chance = random.Random(f"{seed}/{question_id}")
    entries = book.entries(question_id)
    return tuple(heapq.nsmallest(limit, entries, key=lambda entry: chance.expovariate(entry.quality)))


def one_of_each_cell(book: MistakeBook, question_id: str, *, limit: int, seed: int) -> tuple[BookEntry, ...]:
    """One case of each cell in turn, in a cell the best quality first, cells by their best; ties to the older case.

    ``seed`` is not used.
    """
    del seed
    cells: dict[str, list[BookEntry]] = {}
    for entry in sorted(book.entries(question_id), key=lambda entry: -entry.quality):
        cells.setdefault(entry.cell, []).append(entry)
    return tuple(islice((entry for turn in zip_longest(*cells.values()) for entry in turn if entry), limit))


REPLAY_SAMPLERS: dict[str, ReplaySampler] = {
    "frequency": most_frequent,
    "uniform": uniform,
    "weighted": weighted,
    "cells": one_of_each_cell,
}
"""By name; "frequency" is the default."""


def collect_book_update(
    verdicts: Sequence[CandidateVerdict], *, lessons: tuple[Lesson, ...] = (), opponents: OpponentUpdate | None = None
) -> BookUpdate:
    """Collect the cases and replays that a question's candidates failed and passed from their verdicts.

    A case whose outcome is NOT_LOADED does not count: the candidate never ran, so every valid case would
    enter the book and push out the ones that tell candidates apart. The gate of R_T says the same. All
    other failures count, time-outs and deaths included.

    Args:
        verdicts: of candidates the judge answered for; rows lost to an outage are left out by the caller.

    Returns:
        Items in the order of candidates, suites and cases; the book does not depend on it.
    """
    new = [case for verdict in verdicts for suite in verdict.suites for case in suite.cases]
    replayed = [case for verdict in verdicts for case in verdict.history]
    return BookUpdate(
        failed=tuple(
            FailedCase(call=case.call, answer=case.reference_value, key=case.key, outcome=case.outcome)
            for case in new
            if _is_failure(case)
        ),
        passed_replays=tuple(case.key or case.call for case in replayed if not case.outcome.failed),
        failed_replays=tuple(case.key or case.call for case in replayed if _is_failure(case)),
        dropped_replays=tuple(
            dropped.text
            for verdict in verdicts
            for dropped in verdict.dropped_history
            if dropped.reason is not RejectionReason.DUPLICATE
        ),
        passed_new=tuple(case.key or case.call for case in new if not case.outcome.failed),
        lessons=lessons,
        opponents=opponents,
    )


def _is_failure(case: CaseResult) -> bool:
    return case.outcome.failed and case.outcome is not CaseOutcome.NOT_LOADED
