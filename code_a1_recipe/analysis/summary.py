"""An experiment's arms side by side: final measures by seed, intervals over seeds, differences between arms."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from .intervals import Interval, interval_of, paired_difference
from .measures import MEASURES, fooled_share, forgotten_share, measures_of
from .records import Record, RunRecords

FOOLED, FORGOTTEN, SECONDS = "fooled", "forgotten", "seconds_per_step"
ALL_MEASURES: dict[str, str] = {
    **MEASURES,
    FOOLED: "undeserved: share of programs with full reward that fail a hidden test, last ten steps",
    FORGOTTEN: "forgotten: training questions once solved and failed at their last visit",
    SECONDS: "seconds a step",
}
_LAST_STEPS = 10
_OF_OTHER_SOURCES = ("pass@1", "greedy")


@dataclass(frozen=True)
class RunSummary:
    """What one finished run comes to."""

    run: RunRecords

    @cached_property
    def final(self) -> dict[str, float]:
        """Every measure at the end of the run, by name; those that it did not take are left out."""
        found = self.at(self.run.validation_steps[-1]) if self.run.validation_steps else {}
        return found | self._of_training

    def at(self, step: int) -> dict[str, float]:
        """Means over the held-out questions of a validation.

        Plain names are of the first ``data_source``; of others, ``pass@1 on <source>`` and ``greedy on <source>``.
        """
        by_source: dict[str, list[Record]] = {}
        for record in sorted(self.run.validation(step), key=lambda record: record["index"]):
            by_source.setdefault(record.get("data_source", ""), []).append(record)
        found: dict[str, float] = {}
        for number, (source, records) in enumerate(by_source.items()):
            for name, values in measures_of(records).items():
                if number == 0:
                    found[name] = statistics.fmean(values.values())
                elif name in _OF_OTHER_SOURCES:
                    found[f"{name} on {source}"] = statistics.fmean(values.values())
        return found

    @cached_property
    def _of_training(self) -> dict[str, float]:
        found = {SECONDS: statistics.median(self.seconds)} if self.seconds else {}
        records = [self.run.training(step) for step in self.run.training_steps]
        fooled, full = fooled_share([record for step in records[-_LAST_STEPS:] for record in step])
        if full:
            found[FOOLED] = fooled / full
        forgotten = forgotten_share(records)
        if forgotten is not None:
            found[FORGOTTEN] = forgotten
        return found

    @cached_property
    def seconds(self) -> list[float]:
        """Wall seconds of each training step, checkpoints included, validation left out."""
        return [row["timing_s/step"] for row in self.run.metrics if row.get("timing_s/step") is not None]

    def seconds_until(self, step: int) -> float:
        """Wall seconds of training up to and with ``step``."""
        rows = [row for row in self.run.metrics if 0 < row["step"] <= step]
        return sum(row.get("timing_s/step") or 0.0 for row in rows)

    @cached_property
    def validations(self) -> dict[int, dict[str, float]]:
        """``at`` every validation, by step."""
        return {step: self.at(step) for step in self.run.validation_steps}

    def after(self, seconds: float, measure: str) -> float | None:
        """The measure once training has taken so many seconds, on straight lines between validations.

        None where the run was not validated that late, or did not take the measure.
        """
        points = [(self.seconds_until(step), found.get(measure)) for step, found in self.validations.items()]
        for (before, low), (then, high) in pairwise(points):
            if before <= seconds <= then and low is not None and high is not None:
                share = (seconds - before) / (then - before) if then > before else 1.0
                return low + share * (high - low)
        return None


@dataclass(frozen=True)
class ExperimentSummary:
    """Finished runs by arm and seed."""

    runs: Mapping[str, Mapping[int, RunSummary]]

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

    def base(self, measure: str) -> Interval | None:
        """At step 0, before any training, over the runs of the first arm."""
        values = [found[measure] for found in self._before if measure in found]
        return interval_of(values) if values else None

    @cached_property
    def _before(self) -> list[dict[str, float]]:
        first = next(iter(self.runs.values()))
        return [run.at(0) for run in first.values() if 0 in run.run.validation_steps]

    def measures(self) -> list[str]:
        """Those that some run took, in the order of tables."""
        taken = {name for runs in self.runs.values() for run in runs.values() for name in run.final}
        return [name for name in ALL_MEASURES if name in taken] + sorted(taken - ALL_MEASURES.keys())


def headline_rows(summary: ExperimentSummary) -> list[list[str]]:
    """A table: arm, seeds, then each measure as ``mean ± half width`` over seeds; "base" first."""
    measures = summary.measures()
    rows = [["arm", "seeds", *measures]]
    base = [summary.base(name) for name in measures]
    if any(base):
        rows.append(["base", "", *[f"{one.mean:.3f}" if one else "" for one in base]])
    for arm, runs in summary.runs.items():
        intervals = [summary.interval(arm, name) for name in measures]
        rows.append([arm, str(len(runs)), *[one.text() if one else "" for one in intervals]])
    return rows


def difference_rows(summary: ExperimentSummary, *, arm: str) -> list[list[str]]:
    """``arm`` minus each other arm, paired by seed; ``*`` where the interval excludes zero."""
    measures = summary.measures()
    rows = [[f"{arm} minus", *measures]]
    for other in summary.runs:
        if other != arm:
            found = [summary.difference(arm, other, name) for name in measures]
            rows.append([other, *[_difference_text(one) for one in found]])
    return rows


def equal_rows(summary: ExperimentSummary, *, arm: str, measure: str = "pass@1") -> list[list[str]]:
    """Every arm at ``arm``'s last step and after as many seconds of training as ``arm`` took, seed by seed.

    With what ``arm`` is ahead by; ``*`` where the interval excludes zero; "" where the other one trained for less.
    """
    rows = [[f"{measure} of", "at equal steps", f"{arm} ahead by", "at equal seconds", f"{arm} ahead by"]]
    ends = {
        seed: (run.run.validation_steps[-1], run.seconds_until(run.run.validation_steps[-1]), run.final[measure])
        for seed, run in summary.runs[arm].items()
        if measure in run.final
    }
    for other, runs in summary.runs.items():
        by_step, by_seconds, own = {}, {}, {}
        for seed, run in runs.items():
            if seed not in ends:
                continue
            step, seconds, own[seed] = ends[seed]
            value = run.validations.get(step, {}).get(measure)
            if value is not None:
                by_step[seed] = value
            if (value := run.after(seconds, measure)) is not None:
                by_seconds[seed] = value
        rows.append([other, *_beside(own, by_step, other == arm), *_beside(own, by_seconds, other == arm)])
    return rows


def _beside(own: Mapping[int, float], others: Mapping[int, float], is_same: bool) -> list[str]:
    if not others:
        return ["", ""]
    ahead = "" if is_same else _difference_text(paired_difference(own, others))
    return [interval_of(list(others.values())).text(), ahead]


def results_of(summary: ExperimentSummary) -> dict[str, dict[str, dict[str, object]]]:
    """What tables and curves are made of, by arm and seed: small enough to keep when the runs are gone."""
    return {
        arm: {
            str(seed): {
                "final": run.final,
                "validations": {
                    str(step): {"seconds": round(run.seconds_until(step), 1), **found}
                    for step, found in run.validations.items()
                },
            }
            for seed, run in sorted(runs.items())
        }
        for arm, runs in summary.runs.items()
    }


def _difference_text(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return interval.text(signed=True) + (" *" if interval.excludes_zero else "")


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns; the first row is the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
