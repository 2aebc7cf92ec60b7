"""The data card of a prepared training set, and the table of the terminal: what was kept, what went and why."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...runs.folder import versions
from ...stats.tables import counts_text
from ..dataset_card import dataset_card
from .entries import Overlap
from .frontier import Frontier
from .options import PrepareOptions
from .pipeline import Prepared
from .reading import EvalSets, ReadRows
from .sources import Source

_PACKAGES = ("code-a1-recipe", "datasketch", "pyarrow", "datasets")
_RULES = ("id", "prompt", "reference", "tests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """All that one command did."""

    options: PrepareOptions
    command: Sequence[str]
    """The command line."""
    sources: Sequence[Source]
    eval_sources: Sequence[Source]
    read: ReadRows
    eval_sets: EvalSets
    prepared: Prepared
    seconds: float
    frontier: Frontier | None = None

    @property
    def num_rows(self) -> int:
        return self.read.num_rows.total()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOverlap:
    """One evaluation set against the data."""

    set_name: str
    num_questions: int
    num_met: int
    """Its questions that some row repeats."""
    num_rows: int
    """Rows removed because of it; one row may meet several sets."""
    num_by_rule: Counter[str]
    """Of these rows, by the first rule that found them."""


def overlaps_by_set(eval_sets: EvalSets, prepared: Prepared) -> list[SetOverlap]:
    """What was found of each evaluation set, in the order of the sets."""
    names = dict.fromkeys((question.data_source, question.id) for question in eval_sets.questions)  # two files, one set
    num_questions = Counter(set_name for set_name, _ in names)
    met: dict[str, set[str]] = {name: set() for name in num_questions}
    rules: dict[str, Counter[str]] = {name: Counter() for name in num_questions}
    for dropped in prepared.dropped:
        first: dict[str, Overlap] = {}
        for overlap in dropped.overlaps:
            met[overlap.set_name].add(overlap.id)
            first.setdefault(overlap.set_name, overlap)
        for name, overlap in first.items():
            rules[name][overlap.how] += 1
    return [
        SetOverlap(
            set_name=name,
            num_questions=count,
            num_met=len(met[name]),
            num_rows=rules[name].total(),
            num_by_rule=rules[name],
        )
        for name, count in num_questions.items()
    ]


def summary_text(preparation: Preparation) -> str:
    """Lines for the terminal: every row is in exactly one of them."""
    prepared = preparation.prepared
    reasons = Counter(dropped.reason for dropped in prepared.dropped).most_common()
    width = max([len("kept"), *(len(reason) for reason, _ in reasons)])
    counts = f"{len(prepared.kept)} of {preparation.num_rows} rows kept"
    lines = [f"{preparation.options.output}: {counts}, in {preparation.seconds:.0f} s"]
    lines += [f"  {reason:{width}}  {count:7d}" for reason, count in [("kept", len(prepared.kept)), *reasons]]
    tables = overlaps_by_set(preparation.eval_sets, prepared)
    if tables:
        lines.append("rows that repeat a question of an evaluation set, by the first rule that found them:")
        width = max(len(one.set_name) for one in tables)
        lines += [
            f"  {one.set_name:{width}}  {one.num_rows} rows, {one.num_met} of {one.num_questions} questions met"
            + (f" ({counts_text(one.num_by_rule)})" if one.num_rows else "")
            for one in tables
        ]
        lines.append(f"discarded as common to many evaluation questions: {_common_text(prepared)}")
    unreadable = preparation.eval_sets.num_unreadable
    lines += [f"{name}: {count} rows have no prompt that can be read" for name, count in unreadable.items()]
    lines.append(f"tests: {_tests_text(preparation)}")
    lines += [preparation.frontier.rates] if preparation.frontier else []
    return "\n".join(lines) + "\n"


def card_of(preparation: Preparation) -> bytes:
    """The data card: ``data_card.md.jinja``, filled in."""
    options, prepared, read = preparation.options, preparation.prepared, preparation.read
    sources, eval_sources = preparation.sources, preparation.eval_sources
    described = options.described() | (preparation.frontier.described() if preparation.frontier else {})
    settings = [(f"`--{name.replace('_', '-')}`", "" if value is None else value) for name, value in described.items()]
    reasons = [(f"dropped: {name}", n) for name, n in Counter(one.reason for one in prepared.dropped).most_common()]
    return dataset_card(
        options.output,
        Path(__file__).with_name("data_card.md.jinja"),
        num_rows=len(prepared.kept),
        sources=[(one.name, read.adapters[one.name], read.num_rows[one.name], one.fingerprint()) for one in sources],
        eval_sources=[(one.name, "evaluation set", one.num_rows, one.fingerprint(), "") for one in eval_sources],
        command=shlex.join(preparation.command),
        rows=[("read", preparation.num_rows), ("kept", len(prepared.kept)), *reasons],
        tests=_tests_text(preparation),
        preparation=preparation,
        overlaps=[
            (one.set_name, one.num_questions, one.num_met, one.num_rows, *(one.num_by_rule[rule] for rule in _RULES))
            for one in overlaps_by_set(preparation.eval_sets, prepared)
        ],
        common=_common_text(prepared),
        settings=[*settings, *versions(_PACKAGES)],
        path=shlex.quote(str(options.output)),
    )


def _tests_text(preparation: Preparation) -> str:
    kept = preparation.prepared.kept
    texts = [f"{sum(len(entry.question.tests) for entry in kept)} in {len(kept)} questions"]
    if golden := sum(len(entry.question.golden_tests) for entry in kept):
        texts.append(f"{golden} golden ones")
    if preparation.prepared.num_removed_tests:
        texts.append(f"removed from kept rows: {counts_text(preparation.prepared.num_removed_tests)}")
    if preparation.read.num_unwritable_tests:
        num_unwritable = preparation.read.num_unwritable_tests
        texts.append(f"{num_unwritable} of all rows cannot be written as assert f(literals) == literal")
    return "; ".join(texts)


def _common_text(prepared: Prepared) -> str:
    common = prepared.common_hits
    return f"{common.num_hits} shared runs of words; {common.num_rows} rows have nothing else in common with a question"
