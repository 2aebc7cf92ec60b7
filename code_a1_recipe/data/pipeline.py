"""The stages from rows to questions that stay: read, compare with evaluation sets, judge, decide, find duplicates.

Rows that overlap go first, since their references need not be judged then. Duplicates go last, so that of two rows the
first *good* one stays.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tqdm import tqdm

from sandbox.judge_processes import DEFAULT_QUESTIONS_PER_WORKER, JudgeProcesses, WorkerSettings

from .decontaminate import CommonHits, EvalIndex, OverlapSettings
from .duplicates import split_duplicates
from .entries import Dropped, Entry, Reason
from .judged_file import JudgedFile
from .reading import EvalSets, ReadRows
from .reference_checks import check_references, content_key, limits_for
from .reference_facts import decide
from .texts import phrases_of_prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareSettings:
    """What decides which rows stay."""

    overlap: OverlapSettings
    slow_seconds: float
    """CPU seconds of one call of a reference, on the machine that prepares the data."""
    min_tests: int
    drop_tests: bool
    limit: int | None
    """Rows of each input; None for all."""
    tier: int
    """How programs are confined."""
    allow_missing: tuple[str, ...]
    """Protections to do without; they change no verdict."""

    def of_judging(self) -> dict[str, Any]:
        """What decides the facts of a reference, in the words of the command line."""
        return {"slow_seconds": self.slow_seconds, "tier": self.tier}

    def described(self) -> dict[str, Any]:
        """All of it, in the words of the command line."""
        return {
            "ngram": self.overlap.ngram,
            "duplicate_threshold": self.overlap.threshold,
            **self.of_judging(),
            "min_tests": self.min_tests,
            "drop_tests": self.drop_tests,
            "limit": self.limit,
        }


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
    num_judged: int = 0
    """Distinct references that this command judged; the others were known."""
    cpu_seconds: float = 0.0
    """CPU time of one run of all references that were looked at."""

    @property
    def num_outages(self) -> int:
        return sum(one.reason == Reason.OUTAGE for one in self.dropped)


def prepare_questions(
    read: ReadRows, eval_sets: EvalSets, judged: JudgedFile, settings: PrepareSettings, *, num_workers: int
) -> Prepared:
    """Decide on every row; what was judged before is not judged again.

    Args:
        read: the inputs' rows.
        eval_sets: questions that the data must not repeat; may be empty.
        judged: where facts are kept as they come.
        settings: what decides.
        num_workers: judge processes.

    Raises:
        SandboxConfigError: programs cannot be confined on this machine.
        SandboxUnavailableError: the sandbox is down; facts found so far are kept.
        OSError: the facts cannot be written.
    """
    prepared = Prepared(dropped=list(read.dropped))
    phrases = phrases_of_prompts([entry.question.prompt for entry in read.entries])
    left = _without_overlaps(read.entries, eval_sets, settings.overlap, phrases, prepared)
    left = _with_tests(left, settings.min_tests, prepared)
    outages = _judge(left, judged, settings, prepared, num_workers=num_workers)
    left = list(_decided(left, judged, settings, prepared, outages))
    for entry, dropped in split_duplicates(left, threshold=settings.overlap.threshold, phrases=phrases):
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


def _judge(
    entries: Sequence[Entry],
    judged: JudgedFile,
    settings: PrepareSettings,
    prepared: Prepared,
    *,
    num_workers: int,
) -> dict[str, str]:
    """Judge what is not known yet; gives why there are no facts of some, by key."""
    by_key = {content_key(entry.question): entry.question for entry in entries}
    missing = [question for key, question in by_key.items() if judged.get(key) is None]
    outages: dict[str, str] = {}
    if not missing:
        return outages
    with (
        judges(settings, num_workers=num_workers) as pool,
        tqdm(
            total=len(by_key), initial=len(by_key) - len(missing), unit="reference", desc="judge", file=sys.stderr
        ) as bar,
        contextlib.closing(
            check_references(missing, pool.judge_all, num_threads=num_workers * DEFAULT_QUESTIONS_PER_WORKER)
        ) as results,
    ):
        for checked in results:
            if checked.facts is None:
                outages[checked.key] = checked.outage
            else:
                judged.append(checked.key, checked.facts)
                prepared.num_judged += 1
            bar.set_postfix(outages=len(outages), refresh=False)
            bar.update()
    return outages


def judges(settings: PrepareSettings, *, num_workers: int) -> JudgeProcesses:
    """The processes that judge; the caller closes them."""
    runner = {
        "limits": limits_for(settings.slow_seconds),
        "tier": settings.tier,
        "allow_missing": settings.allow_missing,
    }
    return JudgeProcesses(num_workers, settings=WorkerSettings(runner=runner))


def _decided(
    entries: Sequence[Entry],
    judged: JudgedFile,
    settings: PrepareSettings,
    prepared: Prepared,
    outages: Mapping[str, str],
) -> Iterator[Entry]:
    for entry in entries:
        key = content_key(entry.question)
        facts = judged.get(key)
        if facts is None:
            prepared.dropped.append(Dropped.of(entry, Reason.OUTAGE, outages.get(key, "not judged")))
            continue
        prepared.cpu_seconds += facts.cpu_seconds
        decision = decide(entry.question, facts, drop_tests=settings.drop_tests, min_tests=settings.min_tests)
        if decision.reason is not None:
            prepared.dropped.append(Dropped.of(entry, decision.reason, decision.detail))
        else:
            prepared.num_removed_tests.update(decision.num_removed)
            yield replace(entry, question=decision.question)
