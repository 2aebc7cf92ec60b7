"""An experiment's arms side by side: means and intervals over seeds, differences between arms, tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .intervals import Interval, interval_of, paired_difference
from .results import ALL_MEASURES, STEP_PARTS, RunResult

Rows = list[list[str]]
"""A table; the first row is its head."""


@dataclass(frozen=True)
class ExperimentSummary:
    """Finished runs by arm and seed."""

    runs: Mapping[str, Mapping[int, RunResult]]

    def interval(self, arm: str, measure: str) -> Interval | None:
        """Over the arm's seeds; None where no run took the measure."""
        values = [run.final[measure] for run in self.runs[arm].values() if measure in run.final]
        return interval_of(values) if values else None

    def difference(self, arm: str, other: str, measure: str) -> Interval | None:
        """``arm - other`` paired by seed."""
        one, two = (
            {seed: run.final[measure] for seed, run in self.runs[name].items() if measure in run.final}
            for name in (arm, other)
        )
        return paired_difference(one, two) if one.keys() & two.keys() else None

    def base(self, measure: str, arm: str | None = None) -> Interval | None:
        """At step 0, before any training, over the runs of an arm, by default the first."""
        runs = next(iter(self.runs.values())) if arm is None else self.runs[arm]
        values = [run.at(0)[measure] for run in runs.values() if measure in run.at(0)]
        return interval_of(values) if values else None

    def bases(self) -> dict[str, str]:
        """A name for each untrained pair of models, and the first arm that began with it."""
        found: dict[tuple[str, ...], str] = {}
        for arm, runs in self.runs.items():
            found.setdefault(next(iter(runs.values())).models, arm)
        first, *others = found.values()
        return {"base": first, **{f"base of {arm}": arm for arm in others}}

    def measures(self) -> list[str]:
        """Those that some run took, in the order of tables."""
        taken = {name for runs in self.runs.values() for run in runs.values() for name in run.final}
        return [name for name in ALL_MEASURES if name in taken] + sorted(taken - ALL_MEASURES.keys())


def headline_rows(summary: ExperimentSummary, measures: Sequence[str] = ()) -> Rows:
    """Arm, seeds, steps, then each measure as ``mean ± half width`` over seeds; the untrained models first.

    Args:
        measures: these columns; all that were taken if empty.
    """
    measures = measures or summary.measures()
    rows = [["arm", "seeds", "steps", *measures]]
    for name, arm in summary.bases().items():
        base = [summary.base(measure, arm) for measure in measures]
        if any(base):
            rows.append([name, str(len(summary.runs[arm])), "0", *[one.text() if one else "" for one in base]])
    for arm, runs in summary.runs.items():
        intervals = [summary.interval(arm, name) for name in measures]
        steps = sorted({run.steps for run in runs.values()})
        cells = [one.text() if one else "" for one in intervals]
        rows.append([arm, str(len(runs)), "/".join(map(str, steps)), *cells])
    return rows


def difference_rows(summary: ExperimentSummary, *, arm: str) -> Rows:
    """``arm`` minus the base and each other arm, paired by seed; ``*`` where the interval excludes zero."""
    measures = summary.measures()
    rows = [[f"{arm} minus", *measures]]
    own = summary.runs[arm]
    befores = [
        {seed: run.at(0)[name] for seed, run in own.items() if name in run.at(0) and name in run.final}
        for name in measures
    ]
    if any(befores):
        afters = [{seed: run.final[name] for seed, run in own.items() if name in run.final} for name in measures]
        found = [
            paired_difference(after, before) if before else None for after, before in zip(afters, befores, strict=True)
        ]
        rows.append(["base", *[_difference_text(one) for one in found]])
    for other in summary.runs:
        if other != arm:
            rows.append([other, *[_difference_text(summary.difference(arm, other, name)) for name in measures]])
    return rows


def equal_rows(summary: ExperimentSummary, *, arm: str, measure: str = "pass@1") -> Rows:
    """Every arm at ``arm``'s last step and after as many seconds of training as ``arm`` took, seed by seed.

    With what ``arm`` has more of; ``*`` where the interval excludes zero; "" where the other one trained for less.
    """
    rows = [[f"{measure} of", "at equal steps", f"{arm} minus it", "at equal seconds", f"{arm} minus it"]]
    leaders = {seed: run for seed, run in summary.runs[arm].items() if measure in run.final}
    own = {seed: run.final[measure] for seed, run in leaders.items()}
    for other, runs in summary.runs.items():
        by_step, by_seconds = {}, {}
        for seed in leaders.keys() & runs.keys():
            end = leaders[seed].validations[-1]
            if measure in runs[seed].at(end.step):
                by_step[seed] = runs[seed].at(end.step)[measure]
            if (value := runs[seed].after(end.seconds, measure)) is not None:
                by_seconds[seed] = value
        rows.append([other, *_beside(own, by_step, other == arm), *_beside(own, by_seconds, other == arm)])
    return rows


def _beside(own: Mapping[int, float], others: Mapping[int, float], is_same: bool) -> list[str]:
    if not others:
        return ["", ""]
    ahead = "" if is_same else _difference_text(paired_difference(own, others))
    missing = "" if len(others) == len(own) else f" ({len(others)} of {len(own)} seeds)"
    return [interval_of(list(others.values())).text() + missing, ahead]


def time_rows(summary: ExperimentSummary) -> Rows:
    """Mean seconds a step by part, and a run's whole minutes; means over seeds."""
    runs = [run for by_seed in summary.runs.values() for run in by_seed.values()]
    parts = [part for part in STEP_PARTS if any(part in run.parts for run in runs)]
    rows = [["seconds a step", *parts, "step", "minutes a run"]]
    for arm, by_seed in summary.runs.items():
        cells = []
        for part in parts:
            found = [run.parts[part] for run in by_seed.values() if part in run.parts]
            cells.append(f"{interval_of(found).mean:.2f}" if found else "")
        totals = [sum(run.parts.values()) for run in by_seed.values()]
        walls = [run.wall_seconds / 60 for run in by_seed.values() if run.wall_seconds is not None]
        wall = f"{interval_of(walls).mean:.1f}" if walls else ""
        rows.append([arm, *cells, f"{interval_of(totals).mean:.2f}", wall])
    return rows


def _difference_text(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return interval.text(signed=True) + (" *" if interval.excludes_zero else "")


def text_table(rows: Rows) -> str:
    """Aligned columns; the first row is the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """The same in Markdown."""
    cells = [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in rows]
    head, *body = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([head, f"|{' --- |' * len(rows[0])}", *body])
