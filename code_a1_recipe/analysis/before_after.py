"""One run's held-out measures at its first and its last validation, paired by question."""

from __future__ import annotations

from dataclasses import dataclass

from .intervals import Interval, interval_of, paired_difference
from .measures import MEASURES, measures_of
from .records import Record, RunRecords


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One measure before and after, over the same held-out questions."""

    measure: str
    before: Interval
    after: Interval
    difference: Interval


def changes_of(run: RunRecords) -> list[Change]:
    """Each measure's change between the first and the last validation; empty with fewer than two."""
    steps = run.validation_steps
    if len(steps) < 2:
        return []
    first, last = (measures_of(_first_source(run.validation(step))) for step in (steps[0], steps[-1]))
    return [
        Change(
            measure=name,
            before=interval_of(list(first[name].values())),
            after=interval_of(list(last[name].values())),
            difference=paired_difference(last[name], first[name]),
        )
        for name in MEASURES
        if name in first and name in last and first[name].keys() & last[name].keys()
    ]


def _first_source(records: list[Record]) -> list[Record]:
    """Other sources may be there to see how far what was learned carries; they are no part of this comparison."""
    first = min(records, key=lambda record: record["index"], default=None)
    return [] if first is None else [one for one in records if one.get("data_source") == first.get("data_source")]


def change_table(run: RunRecords) -> str:
    """The changes as lines of text; empty when there is nothing to compare."""
    changes = changes_of(run)
    if not changes:
        return ""
    steps = run.validation_steps
    number = max(change.after.num_values for change in changes)
    width = max(len(MEASURES[change.measure]) for change in changes)
    lines = [
        f"held-out questions ({number}), step {steps[0]} -> step {steps[-1]}, 95 % interval of the paired difference:"
    ]
    for change in changes:
        verdict = "" if not change.difference.excludes_zero else "  better" if change.difference.mean > 0 else "  worse"
        lines.append(
            f"  {MEASURES[change.measure]:{width}}  {change.before.mean:.3f} -> {change.after.mean:.3f}   "
            f"{change.difference.text(signed=True)}{verdict}"
        )
    return "\n".join(lines)
