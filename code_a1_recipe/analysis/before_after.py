"""One run's held-out measures at its first and its last validation, paired by question."""

from dataclasses import dataclass

from ..runs.reader import RunRecords
from ..stats.estimates import Estimate, mean_estimate, paired_difference
from .measures import MEASURES, by_source, measures_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One measure before and after, over the same held-out questions."""

    measure: str
    before: Estimate
    after: Estimate
    difference: Estimate


def changes_of(run: RunRecords) -> list[Change]:
    """Each measure's change between the first and the last validation; empty with fewer than two."""
    steps = run.validation_steps
    if len(steps) < 2:
        return []
    # Other sources may be there to see how far what was learned carries; they are no part of this comparison.
    first, last = (
        measures_of(next(iter(by_source(run.validation(step)).values()), [])) for step in (steps[0], steps[-1])
    )
    return [
        Change(
            measure=name,
            before=mean_estimate(list(first[name].values())),
            after=mean_estimate(list(last[name].values())),
            difference=paired_difference(last[name], first[name]),
        )
        for name in MEASURES
        if name in first and name in last and first[name].keys() & last[name].keys()
    ]


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
        verdict = (
            "" if not change.difference.excludes_zero else "  better" if change.difference.value > 0 else "  worse"
        )
        lines.append(
            f"  {MEASURES[change.measure]:{width}}  {change.before.value:.3f} -> {change.after.value:.3f}   "
            f"{change.difference.plus_minus(signed=True)}{verdict}"
        )
    return "\n".join(lines)
