"""Compares the arms of an experiment: means and intervals over seeds, differences between arms, tables."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from code_a1_recipe.stats.estimates import Estimate, mean_estimate, paired_difference
from code_a1_recipe.stats.tables import Table, counted, table_with_head

from .results import ALL_MEASURES, STEP_PARTS, RunResult

HEADLINE_MEASURES = ("pass@1", "greedy", "reward_false_positive_rate", "false_negative_rate")
"""Measures of the Code LLM that the tables of equal steps and equal seconds compare."""
STARRED = "* marks intervals that exclude zero. Each interval is computed alone, so among many, some do so by chance."
BySeed = Mapping[int, float]


class Row(NamedTuple):
    """An arm at a step, as a row of a table."""

    label: str
    arm: str
    step: int


@dataclass(frozen=True)
class ExperimentSummary:
    """Finished runs by arm and seed."""

    runs: Mapping[str, Mapping[int, RunResult]]

    @property
    def leader(self) -> str:
        """The first arm, with which all other arms are compared."""
        return next(iter(self.runs))

    def end(self, arm: str) -> int:
        """Return the last step of an arm."""
        return max(run.steps for run in self.runs[arm].values())

    def rows(self) -> list[Row]:
        """List the rows of tables: all arms at the leader's last step, then longer arms at their own last step.

        If an arm has no validation at the leader's last step, the arm has only a row at its own last step.
        """
        common = self.end(self.leader)
        rows, later = [], []
        for arm, runs in self.runs.items():
            own_end = Row(f"{arm}, {counted(self.end(arm), 'step')}", arm, self.end(arm))
            if any(run.at(common) for run in runs.values()):
                rows.append(Row(arm, arm, common))
                if own_end.step != common:
                    later.append(own_end)
            else:
                rows.append(own_end)
        return rows + later

    def values(self, arm: str, measure: str, step: int) -> dict[int, float]:
        """Return the values of a measure: seed -> value. Runs without the measure are left out."""
        measured = {}
        for seed, run in self.runs[arm].items():
            measures = run.at(step)
            if measure in measures:
                measured[seed] = measures[measure]
        return measured

    def interval(self, arm: str, measure: str, *, step: int | None = None) -> Estimate | None:
        """Estimate the mean over an arm's seeds, by default at the arm's last step; None if no run has the measure."""
        values = self.values(arm, measure, self.end(arm) if step is None else step)
        return mean_estimate(list(values.values())) if values else None

    def lead(self, arm: str, other: str, measure: str, *, step: int) -> Estimate:
        """Estimate the difference ``arm`` minus ``other`` at a step, paired by seed."""
        mine = self.values(arm, measure, step)
        return paired_difference(mine, self.values(other, measure, step))

    def seconds(self, arm: str, step: int) -> float | None:
        """Return the seconds of training before a validation, as a mean over seeds."""
        seconds = []
        for run in self.runs[arm].values():
            for validation in run.validations:
                if validation.step == step:
                    seconds.append(validation.seconds)
        return _mean(seconds)

    def bases(self) -> list[Row]:
        """Return one row at step 0 for each pair of models from which arms started."""
        first_arms: dict[tuple[str, ...], str] = {}
        for arm, runs in self.runs.items():
            first_run = next(iter(runs.values()))
            first_arms.setdefault(first_run.models, arm)
        first, *others = first_arms.values()
        return [Row("base", first, 0), *(Row(f"base of {arm}", arm, 0) for arm in others)]

    def measures(self) -> list[str]:
        """List the measures that at least one run has, in the order in which tables show them."""
        taken = set()
        for runs in self.runs.values():
            taken.update(*(run.final for run in runs.values()))
        known = [name for name in ALL_MEASURES if name in taken]
        return known + sorted(taken.difference(known))


def headline_table(summary: ExperimentSummary, measures: Sequence[str] = ()) -> Table:
    """Make the table of all arms: seeds, seconds of training, and each measure as ``mean ± half width`` over seeds.

    The base models come first.

    Args:
        summary: the runs.
        measures: names of the measures; empty for all.
    """
    measures = measures or summary.measures()
    table = [["arm", "seeds", "seconds", *measures]]
    bases = summary.bases()
    for row in [*bases, *summary.rows()]:
        intervals = [summary.interval(row.arm, measure, step=row.step) for measure in measures]
        seconds = 0.0 if row in bases else summary.seconds(row.arm, row.step)
        if any(intervals) or row not in bases:
            cells = [interval.plus_minus() if interval else "" for interval in intervals]
            table.append([row.label, str(len(summary.runs[row.arm])), _number(seconds, 0), *cells])
    return table_with_head(
        table,
        title=f"Arms after {counted(summary.end(summary.leader), 'step')}",
        note="Means over seeds with 95 % intervals (Student's t); the seconds do not include validation.",
    )


def difference_table(summary: ExperimentSummary) -> Table:
    """Make the table of differences: the first arm minus its base and minus each other arm, paired by seed."""
    measures, leader = summary.measures(), summary.leader
    end = summary.end(leader)
    table = [[f"{leader} minus", *measures]]
    for row in [Row("base", leader, 0), *summary.rows()]:
        cells = []
        for measure in measures:
            own = summary.values(leader, measure, end)
            cells.append(_difference(own, summary.values(row.arm, measure, row.step)))
        if any(cells) and row.label != leader:
            table.append([row.label, *cells])
    return table_with_head(
        table,
        title=f"{leader} against the others",
        note=f"Differences after {counted(end, 'step')}, paired by seed. {STARRED} All seeds begin with the same "
        "models and use the same held-out questions. So the intervals cover only the chance of training and sampling.",
    )


def equal_table(summary: ExperimentSummary, *measures: str) -> Table:
    """Make the table that compares every arm with the first arm, at equal steps and after equal seconds of training.

    Equal steps are the last step of the first arm. Equal seconds are the time at which the earlier of two compared runs
    ends; the measure of the longer run is interpolated between validations. The last column has the equal seconds, as a
    mean over seeds.
    """
    leader = summary.leader
    ahead = f"{leader} minus it"
    table = [["measure", "arm", "at equal steps", ahead, "at equal seconds", ahead, "seconds"]]
    for measure in measures:
        table += _equal_rows(summary, measure)
    return table_with_head(
        table,
        title="At equal steps and at equal wall-clock",
        note=f"Equal steps: at the last step of {leader}. Equal seconds: when the earlier of the two runs has ended; "
        f"the measure of the other run is interpolated between its validations. Paired by seed. {STARRED}",
    )


def _equal_rows(summary: ExperimentSummary, measure: str) -> Iterator[list[str]]:
    leader = summary.leader
    leaders = {seed: run for seed, run in summary.runs[leader].items() if measure in run.final}
    own = {seed: run.final[measure] for seed, run in leaders.items()}
    for arm, runs in summary.runs.items():
        measured = summary.values(arm, measure, summary.end(leader))
        by_step = {seed: measured[seed] for seed in measured if seed in own}
        ends = {}
        for seed, run in leaders.items():
            if seed in runs:
                ends[seed] = min(run.seconds, runs[seed].seconds)
        leads = _after(leaders, ends, measure)
        others = _after(runs, ends, measure)
        if leads.keys() != others.keys():
            leads, others = {}, {}  # a seed lacks validations around this time, so means would be unfair
        cells = []
        for mine, theirs in ((own, by_step), (leads, others)):
            missing = f" ({len(theirs)} of {len(own)} seeds)" if len(theirs) < len(own) else ""
            mean = mean_estimate(list(theirs.values())).plus_minus() + missing if theirs else ""
            cells += [mean, "" if arm == leader else _difference(mine, theirs)]
        seconds = _mean([ends[seed] for seed in others])
        yield [measure, arm, *cells, _number(seconds, 0)]


def _after(runs: Mapping[int, RunResult], seconds: BySeed, measure: str) -> dict[int, float]:
    values = {}
    for seed, when in seconds.items():
        value = runs[seed].after(when, measure)
        if value is not None:
            values[seed] = value
    return values


def _difference(one: BySeed, other: BySeed) -> str:
    if one.keys() & other.keys():
        difference = paired_difference(one, other)
        return difference.plus_minus(signed=True) + " *" * difference.excludes_zero
    return ""


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def time_table(summary: ExperimentSummary) -> Table:
    """Make the table of times: mean seconds of each part of a step, and minutes of a run, as means over seeds."""
    used: set[str] = set()
    for runs in summary.runs.values():
        used.update(*(run.parts for run in runs.values()))
    parts = [part for part in STEP_PARTS if part in used]
    table = [["seconds a step", *parts, "step", "minutes a run"]]
    for arm, by_seed in summary.runs.items():
        runs_of_arm = by_seed.values()
        cells = []
        for part in parts:
            seconds = _mean([run.parts[part] for run in runs_of_arm if part in run.parts])
            cells.append(_number(seconds, 2))
        step = _mean([sum(run.parts.values()) for run in runs_of_arm])
        minutes = _mean([run.wall_seconds / 60 for run in runs_of_arm if run.wall_seconds is not None])
        table.append([arm, *cells, _number(step, 2), _number(minutes, 1)])
    note = "Means over steps and seeds; the minutes of a run include its start and its validations."
    return table_with_head(table, title="Time", note=note)


def tables_of(summary: ExperimentSummary) -> list[Table]:
    """Make every table of an experiment."""
    taken = summary.measures()
    meanings = tuple((name, ALL_MEASURES[name]) for name in taken if name in ALL_MEASURES)
    compared = [measure for measure in HEADLINE_MEASURES if measure in taken]
    return [
        headline_table(summary),
        difference_table(summary),
        equal_table(summary, *compared),
        time_table(summary),
        Table(title="Meaning of the columns", columns=("column", "meaning"), rows=meanings),
    ]
