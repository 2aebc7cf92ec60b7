"""The stages from rows to questions that stay: read, compare with evaluation sets, judge, decide, find duplicates.

Rows that overlap go first, since their references need not be judged then. Duplicates go last, so that of two rows the
first *good* one stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from ...jobs.confinement import Confinement, judge_confined
from ...jobs.jsonl_store import JsonlStore, Row
from .decontaminate import CommonHits, EvalIndex, OverlapSettings
from .duplicates import split_duplicates
from .entries import Dropped, Entry, Reason
from .options import PrepareOptions
from .reading import EvalSets, ReadRows
from .reference_checks import content_key, judged_row
from .reference_facts import ReferenceFacts, decide
from .texts import phrases_of_prompts


@dataclass(slots=True, kw_only=True)
class Prepared:
    """What stays and what went."""

    kept: list[Entry] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    """In the order of the inputs and their rows."""
    num_removed_tests: Counter[str] = field(default_factory=Counter)
    """Tests taken out of rows that stay, by ``Fault``."""
    common_hits: CommonHits = field(default_factory=CommonHits)
    """Hits on evaluation questions that did not count."""

    @property
    def num_outages(self) -> int:
        return sum(one.reason == Reason.OUTAGE for one in self.dropped)


def prepare_questions(
    read: ReadRows, eval_sets: EvalSets, store: JsonlStore, options: PrepareOptions, confinement: Confinement
) -> Prepared:
    """Decide on every row; what was judged before is not judged again.

    Args:
        read: the inputs' rows.
        eval_sets: questions that the data must not repeat; may be empty.
        store: keeps the facts of references as they come.
        options: decide which rows stay.
        confinement: of the references.

    Raises:
        SandboxConfigError: programs cannot be confined on this machine.
        OutageError: the sandbox is down; facts found so far are kept.
        OSError: the facts cannot be written.
    """
    prepared = Prepared(dropped=list(read.dropped))
    phrases = phrases_of_prompts([entry.question.prompt for entry in read.entries])
    left = _without_overlaps(read.entries, eval_sets, options.overlap, phrases, prepared)
    left = _with_tests(left, options.min_tests, prepared)
    judge_confined(
        store,
        list({content_key(entry.question): entry.question for entry in left}.values()),
        judged_row,
        key=content_key,
        confinement=confinement,
        num_workers=options.workers,
        unit="reference",
    )
    left = list(_decided(left, {row["key"]: row for row in store.rows()}, options, prepared))
    for entry, dropped in split_duplicates(left, threshold=options.duplicate_threshold, phrases=phrases):
        if dropped is None:
            prepared.kept.append(entry)
        else:
            prepared.dropped.append(dropped)
    rank = {name: place for place, name in enumerate(read.num_rows)}
    prepared.dropped.sort(key=lambda one: (rank[one.file], one.row))
    return prepared


def _without_overlaps(
    entries: Sequence[Entry],
    eval_sets: EvalSets,
    settings: OverlapSettings,
    phrases: frozenset[str],
    prepared: Prepared,
) -> list[Entry]:
    if not eval_sets.questions:
        return list(entries)
    left = []
    index = EvalIndex(eval_sets.questions, settings, data_phrases=phrases)
    for entry, overlaps in index.overlaps(entries):
        if overlaps:
            first = overlaps[0]
            detail = f"with {first.id} of {first.set_name}, by {first.how}: {first.detail}"
            prepared.dropped.append(Dropped.of(entry, Reason.OVERLAP, detail, overlaps))
        else:
            left.append(entry)
    prepared.common_hits = index.common
    return left


def _with_tests(entries: Sequence[Entry], min_tests: int, prepared: Prepared) -> list[Entry]:
    """Rows that cannot have enough tests, whatever the judge says of them, need no judging."""
    left = []
    for entry in entries:
        num_tests = len(set(entry.question.tests))
        if num_tests < min_tests:
            detail = f"{num_tests} tests of the form assert f(literals) == literal"
            prepared.dropped.append(Dropped.of(entry, Reason.TOO_FEW_TESTS, detail))
        else:
            left.append(entry)
    return left


def _decided(
    entries: Sequence[Entry], rows: Mapping[str, Row], options: PrepareOptions, prepared: Prepared
) -> Iterator[Entry]:
    for entry in entries:
        row = rows[content_key(entry.question)]
        if row["outage"]:
            prepared.dropped.append(Dropped.of(entry, Reason.OUTAGE, row["outage"]))
            continue
        facts = msgspec.convert(row, ReferenceFacts)
        decision = decide(entry.question, facts, drop_tests=options.drop_tests, min_tests=options.min_tests)
        if decision.reason is not None:
            prepared.dropped.append(Dropped.of(entry, decision.reason, decision.detail))
        else:
            prepared.num_removed_tests.update(decision.num_removed)
            yield replace(entry, question=decision.question)
