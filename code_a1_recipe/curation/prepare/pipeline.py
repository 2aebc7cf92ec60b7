"""The stages from rows to questions that stay: read, compare with evaluation sets, judge, decide, find duplicates.

Rows that overlap go first, since their references need not be judged then. Duplicates go last, so that of two rows the
first *good* one stays. A base model is asked last: its programs cost most.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from ...algorithm.question import Question
from ...jobs.confinement import Confinement, judge_confined
from ...jobs.jsonl_store import JsonlStore, Row
from .decontaminate import CommonHits, EvalIndex
from .duplicates import split_duplicates
from .entries import Dropped, Entry, Reason
from .frontier import Frontier
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
    read: ReadRows,
    eval_sets: EvalSets,
    store: JsonlStore,
    options: PrepareOptions,
    confinement: Confinement,
    frontier: Frontier | None = None,
) -> Prepared:
    """Decide on every row; what was judged before is not judged again.

    Args:
        read: the inputs' rows.
        eval_sets: questions that the data must not repeat; may be empty.
        store: keeps the facts of references as they come.
        options: decide which rows stay.
        confinement: of the references and of a base model's programs.
        frontier: the base model whose rates decide too; None for none.

    Raises:
        InputError: the base model cannot be started or asked.
        SandboxConfigError: programs cannot be confined on this machine.
        OutageError: the sandbox or the base model is down; what is found so far is kept.
        OSError: the facts cannot be written.
    """
    prepared = Prepared(dropped=list(read.dropped))
    phrases = phrases_of_prompts([entry.question.prompt for entry in read.entries])
    left = read.entries
    if eval_sets.questions:
        index = EvalIndex(
            eval_sets.questions, ngram=options.ngram, threshold=options.duplicate_threshold, data_phrases=phrases
        )
        left = _staying(_overlaps(left, index), prepared)
        prepared.common_hits = index.common
    left = _staying(_too_few_tests(left, options.min_tests), prepared)
    judge_confined(
        store,
        list({content_key(entry.question): entry.question for entry in left}.values()),
        judged_row,
        key=content_key,
        confinement=confinement,
        num_workers=options.workers,
        unit="reference",
    )
    rows = {row["key"]: row for row in store.rows()}
    left = _staying(_decided(left, rows, options, prepared), prepared)
    left = _staying(split_duplicates(left, threshold=options.duplicate_threshold, phrases=phrases), prepared)
    prepared.kept = left if frontier is None else _staying(frontier.split(left, confinement), prepared)
    rank = {name: place for place, name in enumerate(read.num_rows)}
    prepared.dropped.sort(key=lambda one: (rank[one.file], one.row))
    return prepared


def _staying(stage: Iterable[tuple[Entry, Dropped | None]], prepared: Prepared) -> list[Entry]:
    """Entries that a stage gives no reason to go; the others are noted."""
    looked_at = list(stage)
    prepared.dropped += [dropped for _, dropped in looked_at if dropped is not None]
    return [entry for entry, dropped in looked_at if dropped is None]


def _overlaps(entries: Sequence[Entry], index: EvalIndex) -> Iterator[tuple[Entry, Dropped | None]]:
    for entry, overlaps in index.overlaps(entries):
        detail = "".join(f"with {one.id} of {one.set_name}, by {one.how}: {one.detail}" for one in overlaps[:1])
        yield entry, Dropped.of(entry, Reason.OVERLAP, detail, overlaps) if overlaps else None


def _too_few_tests(entries: Sequence[Entry], min_tests: int) -> Iterator[tuple[Entry, Dropped | None]]:
    """Rows that cannot have enough tests, whatever the judge says of them, need no judging."""
    for entry in entries:
        num_tests = len(set(entry.question.tests))
        detail = f"{num_tests} tests of the form assert f(literals) == literal"
        yield entry, Dropped.of(entry, Reason.TOO_FEW_TESTS, detail) if num_tests < min_tests else None


def _decided(
    entries: Sequence[Entry], rows: Mapping[str, Row], options: PrepareOptions, prepared: Prepared
) -> Iterator[tuple[Entry, Dropped | None]]:
    for entry in entries:
        row = rows[content_key(entry.question)]
        if row["outage"]:
            yield entry, Dropped.of(entry, Reason.OUTAGE, row["outage"])
            continue
        facts = msgspec.convert(row, ReferenceFacts)
        decided = decide(
            entry.question, facts, drop_tests=options.drop_tests, min_tests=options.min_tests, num_golden=options.golden
        )
        if isinstance(decided, Question):
            prepared.num_removed_tests.update(one.fault.value for one in facts.faults)
            yield replace(entry, question=decided), None
        else:
            yield entry, Dropped.of(entry, *decided)
