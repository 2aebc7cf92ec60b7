"""An experiment's arms side by side: means and intervals over seeds, differences between arms, tables."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from code_a1_recipe.stats.estimates import Estimate, mean_estimate, paired_difference
from code_a1_recipe.stats.tables import Table, counted, table_with_head

from .results import ALL_MEASURES, STEP_PARTS, RunResult

HEADLINE_MEASURES = ("pass@1", "greedy", "reward_false_positive_rate", "false_negative_rate")
"""Of the Code LLM; those that arms are compared by."""
_STARRED = "* marks intervals that exclude zero, each taken alone: of many cells some do so by chance."
Place = tuple[str, str, int]
"""What a row shows: its label, an arm and a step."""


@dataclass(frozen=True)
class ExperimentSummary:
    """Finished runs by arm and seed."""

    runs: Mapping[str, Mapping[int, RunResult]]

    @property
    def leader(self) -> str:
        """The first arm: the others are compared with it."""
        return next(iter(self.runs))

    def end(self, arm: str) -> int:
        """The arm's last step."""
        return max(run.steps for run in self.runs[arm].values())

    def side_by_side(self) -> list[Place]:
        """One row an arm: at the leader's last step, or at its own end where it has no validation at that step."""
        common = self.end(self.leader)
        return [
            (arm, arm, common) if any(run.at(common) for run in runs.values()) else self._own_end(arm)
            for arm, runs in self.runs.items()
        ]

    def places(self) -> list[Place]:
        """The rows of tables: the arms side by side, then the ends of those that went on."""
        rows = self.side_by_side()
        return rows + [self._own_end(arm) for _, arm, step in rows if step != self.end(arm)]

    def _own_end(self, arm: str) -> Place:
        return f"{arm}, {counted(self.end(arm), 'step')}", arm, self.end(arm)

    def values(self, arm: str, measure: str, step: int) -> dict[int, float]:
        """Of the runs that took the measure, by seed."""
        found = {seed: run.at(step).get(measure) for seed, run in self.runs[arm].items()}
        return {seed: value for seed, value in found.items() if value is not None}

    def interval(self, arm: str, measure: str, *, step: int | None = None) -> Estimate | None:
        """Over the arm's seeds, by default at its end; None where no run took the measure."""
        values = self.values(arm, measure, self.end(arm) if step is None else step)
        return mean_estimate(list(values.values())) if values else None

    def seconds(self, arm: str, step: int) -> float | None:
        """Of training up to a validation, mean over seeds."""
        found = [one.seconds for run in self.runs[arm].values() for one in run.validations if one.step == step]
        return statistics.fmean(found) if found else None

    def base(self, measure: str, arm: str | None = None) -> Estimate | None:
        """At step 0, before any training, over the runs of an arm, by default the first."""
        return self.interval(arm or self.leader, measure, step=0)

    def bases(self) -> dict[str, str]:
        """A name for each pair of models that arms began with, and the first of these arms."""
        found: dict[tuple[str, ...], str] = {}
        for arm, runs in self.runs.items():
            found.setdefault(next(iter(runs.values())).models, arm)
        first, *others = found.values()
        return {"base": first, **{f"base of {arm}": arm for arm in others}}

    def measures(self) -> list[str]:
        """Those that some run took, in the order of tables."""
        taken = {name for runs in self.runs.values() for run in runs.values() for name in run.final}
        return [name for name in ALL_MEASURES if name in taken] + sorted(taken - ALL_MEASURES.keys())


def headline_table(summary: ExperimentSummary, measures: Sequence[str] = ()) -> Table:
    """Arm, seeds, seconds of training, then each measure as ``mean ± half width`` over seeds; the bases first.

    Args:
        measures: these columns; all that were taken if empty.
    """
    measures = measures or summary.measures()
    rows = [["arm", "seeds", "seconds", *measures]]
    for name, arm in summary.bases().items():
        base = [summary.base(measure, arm) for measure in measures]
        if any(base):
            rows.append([name, str(len(summary.runs[arm])), "0", *[one.plus_minus() if one else "" for one in base]])
    for label, arm, step in summary.places():
        intervals = [summary.interval(arm, name, step=step) for name in measures]
        seconds = summary.seconds(arm, step)
        cells = [one.plus_minus() if one else "" for one in intervals]
        rows.append([label, str(len(summary.runs[arm])), "" if seconds is None else f"{seconds:.0f}", *cells])
    return table_with_head(
        rows,
        title=f"Arms after {counted(summary.end(summary.leader), 'step')}",
        note="Means over seeds with 95 % intervals (Student's t); seconds are those of training alone.",
    )


def difference_table(summary: ExperimentSummary) -> Table:
    """The first arm minus the base and each other arm, paired by seed; ``*`` where the interval excludes zero."""
    measures, leader = summary.measures(), summary.leader
    end = summary.end(leader)
    rows = [[f"{leader} minus", *measures]]
    for label, arm, step in [("base", leader, 0), *summary.places()]:
        if label != leader:
            cells = [
                _difference_text(summary.values(leader, name, end), summary.values(arm, name, step))
                for name in measures
            ]
            if any(cells):
                rows.append([label, *cells])
    return table_with_head(
        rows,
        title=f"{leader} against the others",
        note=f"Differences after {counted(end, 'step')}, paired by seed. {_STARRED} Seeds share the models they start "
        "with and the held-out questions: the intervals cover the chance of training and sampling.",
    )


def equal_table(summary: ExperimentSummary, *measures: str) -> Table:
    """Every arm beside the first at its last step, and after equal seconds of training, by measure and seed by seed.

    Equal seconds: when the first of the two ends, with the other on straight lines between its validations; the last
    column says when, as a mean over seeds. ``*`` where the interval of the first arm's lead excludes zero.
    """
    leader = summary.leader
    ahead = f"{leader} minus it"
    return table_with_head(
        [
            ["measure", "arm", "at equal steps", ahead, "at equal seconds", ahead, "seconds"],
            *(row for measure in measures for row in _equal_rows(summary, measure)),
        ],
        title="At equal steps and at equal wall-clock",
        note=f"At the last step of {leader}, and after equal seconds of training: when the first of the two has "
        f"ended, with the other on straight lines between its validations. Paired by seed; {_STARRED}",
    )


def _equal_rows(summary: ExperimentSummary, measure: str) -> Iterator[list[str]]:
    leader = summary.leader
    leaders = {seed: run for seed, run in summary.runs[leader].items() if measure in run.final}
    own = {seed: run.final[measure] for seed, run in leaders.items()}
    for arm, runs in summary.runs.items():
        by_step = {
            seed: value for seed, value in summary.values(arm, measure, summary.end(leader)).items() if seed in own
        }
        ends = {seed: min(leaders[seed].seconds, runs[seed].seconds) for seed in leaders if seed in runs}
        leads = _after(leaders, ends, measure)
        others = _after(runs, ends, measure)
        if leads.keys() != others.keys():
            leads, others = {}, {}  # some seed has no two validations around that time: no fair mean
        when = _mean_text([ends[seed] for seed in others], digits=0)
        same = arm == leader
        cells = (*_beside(own, by_step, same, len(own)), *_beside(leads, others, same, len(own)))
        yield [measure, arm, *cells, when]


def _after(runs: Mapping[int, RunResult], seconds: Mapping[int, float], measure: str) -> dict[int, float]:
    found = {seed: runs[seed].after(when, measure) for seed, when in seconds.items()}
    return {seed: value for seed, value in found.items() if value is not None}


def _beside(own: Mapping[int, float], others: Mapping[int, float], is_same: bool, num_seeds: int) -> list[str]:
    if not others:
        return ["", ""]
    missing = "" if len(others) == num_seeds else f" ({len(others)} of {num_seeds} seeds)"
    text = mean_estimate(list(others.values())).plus_minus() + missing
    return [text, "" if is_same else _difference_text(own, others)]


def time_table(summary: ExperimentSummary) -> Table:
    """Mean seconds a step by part, and a run's whole minutes; means over seeds."""
    runs = [run for by_seed in summary.runs.values() for run in by_seed.values()]
    parts = [part for part in STEP_PARTS if any(part in run.parts for run in runs)]
    rows = [["seconds a step", *parts, "step", "minutes a run"]]
    for arm, by_seed in summary.runs.items():
        cells = [_mean_text([run.parts[part] for run in by_seed.values() if part in run.parts]) for part in parts]
        total = _mean_text([sum(run.parts.values()) for run in by_seed.values()])
        walls = [run.wall_seconds / 60 for run in by_seed.values() if run.wall_seconds is not None]
        rows.append([arm, *cells, total, _mean_text(walls, digits=1)])
    note = "Means over steps and seeds; a run's minutes are those of the whole process."
    return table_with_head(rows, title="Time", note=note)


def _mean_text(values: Sequence[float], *, digits: int = 2) -> str:
    return f"{statistics.fmean(values):.{digits}f}" if values else ""


def tables_of(summary: ExperimentSummary) -> list[Table]:
    """Every table of an experiment."""
    taken = summary.measures()
    meanings = [(name, ALL_MEASURES[name]) for name in taken if name in ALL_MEASURES]
    return [
        headline_table(summary),
        difference_table(summary),
        equal_table(summary, *(measure for measure in HEADLINE_MEASURES if measure in taken)),
        time_table(summary),
        Table(title="What the columns say", columns=("column", "meaning"), rows=tuple(meanings)),
    ]


def tables_text(summary: ExperimentSummary) -> str:
    """All of them as Markdown."""
    return "\n".join(table.markdown() for table in tables_of(summary))


def _difference_text(one: Mapping[int, float], other: Mapping[int, float]) -> str:
    return paired_difference(one, other).starred() if one.keys() & other.keys() else ""
