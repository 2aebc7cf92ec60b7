"""The pictures of an experiment's report: its arms side by side, and on the way."""

import statistics
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from code_a1_recipe.analysis.figures import COLORS, make_panels
from code_a1_recipe.stats.estimates import mean_estimate

from .results import RunResult
from .summary import ExperimentSummary

_LINES = ("-", "--", "-.", ":")


def arm_bars(summary: ExperimentSummary, measures: Sequence[str], *, same_scale: bool = False) -> Figure:
    """Means over seeds with 95 % intervals, each arm at the first arm's last step; a line below says what is what.

    Arms that did not take the first measure are left out; a diamond stands for the end of an arm that went on.

    Args:
        same_scale: one x axis for all panels.
    """
    figure, panels = _grid_of_panels([_TITLES.get(name, name) for name in measures])
    common = summary.end(summary.leader)
    shown = [row for row in summary.side_by_side() if summary.values(row[1], measures[0], row[2])]
    arms = list(summary.runs)
    for panel, measure in zip(panels, measures, strict=True):
        for row, (_, arm, step) in enumerate(shown):
            _bar(panel, summary, row, (arm, measure, step), COLORS[arms.index(arm) % len(COLORS)])
        panel.set_yticks(range(len(shown)), [label for label, _, _ in shown])
        panel.invert_yaxis()
        panel.set_xlim(0, min(panel.get_xlim()[1], 1.02))  # all of them are shares; few seeds have wider intervals
    if same_scale:
        limit = max(panel.get_xlim()[1] for panel in panels)
        for panel in panels:
            panel.set_xlim(0, limit)
    columns = _panels_a_row(len(measures))
    figure.set_size_inches(3.8 * columns + 0.8, (0.42 * len(shown) + 1.3) * -(-len(measures) // columns) + 0.3)
    figure.supxlabel(_key(summary, measures, common), fontsize=9)
    return figure


def _panels_a_row(number: int) -> int:
    return 2 if number == 4 else min(number, 3)


def _grid_of_panels(titles: Sequence[str]) -> tuple[Figure, list[Axes]]:
    columns = _panels_a_row(len(titles))
    figure = Figure(layout="constrained", dpi=120)
    panels = list(figure.subplots(-(-len(titles) // columns), columns, squeeze=False).flat)
    for spare in panels[len(titles) :]:
        spare.set_axis_off()
    for panel, title in zip(panels, titles, strict=False):
        panel.set_title(title)
    return figure, panels[: len(titles)]


def _bar(panel: Axes, summary: ExperimentSummary, row: int, what: tuple[str, str, int], color: str) -> None:
    arm, measure, step = what
    values = list(summary.values(arm, measure, step).values())
    if not values:
        return
    interval = mean_estimate(values)
    panel.barh(row, interval.value, color=color, alpha=0.75, height=0.65)
    if len(values) > 1:
        panel.errorbar(interval.value, row, xerr=interval.half_width, color="black", capsize=3, linewidth=1)
    panel.plot(values, [row] * len(values), "o", color="black", markersize=3, alpha=0.6)
    if not any(values):
        panel.annotate("0", (0, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    if (base := summary.base(measure, arm)) is not None:
        panel.plot([base.value] * 2, [row - 0.42, row + 0.42], color="black", linestyle="--", linewidth=1.2)
    if summary.end(arm) > step and (later := summary.interval(arm, measure)) is not None:
        panel.plot(later.value, row, "D", color=color, markerfacecolor="white", markeredgewidth=1.6, markersize=7)


def _key(summary: ExperimentSummary, measures: Sequence[str], common: int) -> str:
    words = [f"bar: mean after {common} steps", "whisker: 95 % interval over seeds", "dots: seeds"]
    if any(summary.base(measure, arm) for arm in summary.runs for measure in measures):
        words.append("dashed: before training")
    later = {
        summary.end(arm)
        for arm in summary.runs
        if summary.end(arm) > common and summary.values(arm, measures[0], common)
    }
    if later:
        words.append(f"diamond: after {' or '.join(map(str, sorted(later)))} steps")
    return "; ".join(words)


def arm_curves(summary: ExperimentSummary, *, by_seconds: bool) -> Figure:
    """Held-out pass@1 of every arm, means and 95 % intervals over seeds, by step or by seconds of training.

    Where arms went on after the first arm's end, the left panel ends there.
    """
    common = summary.end(summary.leader)
    limit = summary.seconds(summary.leader, common) if by_seconds else common
    goes_on = any(summary.end(arm) > common for arm in summary.runs)
    title = "Held-out pass@1"
    figure, panels = make_panels(
        [f"{title}, as far as {summary.leader} went", "to every arm's end"] if goes_on else [title]
    )
    dodge = 0.0 if by_seconds else common / 110
    for panel in panels:
        for place, (arm, runs) in reversed(list(enumerate(summary.runs.items()))):
            _curve(panel, place, runs, by_seconds, arm, dodge * (place - (len(summary.runs) - 1) / 2))
        panel.set_xlabel("seconds of training, mean over seeds" if by_seconds else "step")
    panels[0].set_ylabel("pass@1, temperature 1")
    if goes_on and limit is not None:
        panels[0].set_xlim(-0.05 * limit, 1.05 * limit)
        panels[1].sharey(panels[0])
    handles, labels = panels[-1].get_legend_handles_labels()
    if handles:
        panels[-1].legend(handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.set_size_inches(4.6 * len(panels) + 1.8, max(4.2, 0.2 * len(handles) + 0.6))
    return figure


def _curve(panel: Axes, place: int, runs: Mapping[int, RunResult], by_seconds: bool, label: str, shift: float) -> None:
    points = [_curve_point(list(runs.values()), step, by_seconds) for step in _common_steps(runs)]
    if not points:
        return
    xs, means, halves = zip(*points, strict=True)
    panel.errorbar(
        [x + shift for x in xs],  # so that intervals of arms that agree can be told apart
        means,
        yerr=halves,
        capsize=2.5,
        elinewidth=1,
        marker="o",
        markersize=4,
        linewidth=2.4 if place == 0 else 1.5,
        linestyle=_LINES[place % len(_LINES)],
        color=COLORS[place % len(COLORS)],
        label=label,
    )


def _common_steps(runs: Mapping[int, RunResult]) -> list[int]:
    steps = [{found.step for found in run.validations if "pass@1" in found.measures} for run in runs.values()]
    return sorted(set.intersection(*steps)) if steps else []


def _curve_point(runs: Sequence[RunResult], step: int, by_seconds: bool) -> tuple[float, float, float]:
    interval = mean_estimate([run.at(step)["pass@1"] for run in runs])
    x = float(step)
    if by_seconds:
        x = statistics.fmean(found.seconds for run in runs for found in run.validations if found.step == step)
    return x, interval.value, interval.half_width if len(runs) > 1 else 0.0


_TITLES = {
    "pass@1": "pass@1, temperature 1",
    "greedy": "pass@1, greedy",
    "reward_false_positive_rate": "reward false positives",
    "false_negative_rate": "false negatives of the tests",
    "false_negative_rate_without_replay": "the same without replays",
    "valid": "validity",
    "kill_per_case": "kills per valid case",
    "product": "validity x kill rate",
    "detection_rate": "suites that detect the bug",
    "distinct_call_rate": "distinct calls (training)",
    "forgotten": "questions forgotten",
    "fails_next_visit": "fails at the next visit",
    "fails_same_visit": "fails at the same visit",
}
