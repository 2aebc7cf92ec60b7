"""The pictures of reports. Each function draws one figure from records; None where a run did not measure it."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..runs.console import PHASES, UPDATES
from ..runs.reader import RunRecords
from ..stats.estimates import mean_estimate
from .run_results import RunResult
from .summary import ExperimentSummary

# Okabe and Ito's palette, which readers of every colour vision can tell apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000", "#9E5D00", "#332288")
STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 9,
}
"""matplotlib's parameters while a figure is drawn."""
_SMOOTHED_STEPS = 5
_PANEL_INCHES = (5.2, 3.4)
_LINES = ("-", "--", "-.", ":")

Point = tuple[float, float]


def _panels_a_row(number: int) -> int:
    return 2 if number == 4 else min(number, 3)


def _panels(titles: Sequence[str]) -> tuple[Figure, list[Axes]]:
    width, height = _PANEL_INCHES
    columns = _panels_a_row(len(titles))
    rows = -(-len(titles) // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained", dpi=120)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in axes[len(titles) :]:
        spare.set_axis_off()
    for panel, title in zip(axes, titles, strict=False):
        panel.set_title(title)
    return figure, axes[: len(titles)]


def _smoothed(points: Sequence[Point]) -> list[Point]:
    """Running means over up to five steps."""
    values = [value for _, value in points]
    return [
        (x, statistics.fmean(values[max(0, number - _SMOOTHED_STEPS + 1) : number + 1]))
        for number, (x, _) in enumerate(points)
    ]


def _metric(run: RunRecords, name: str) -> list[Point]:
    return [(row["step"], row[name]) for row in run.metrics if isinstance(row.get(name), int | float)]


def _trained(run: RunRecords, name: str) -> list[Point]:
    return [(step, value) for step, value in _metric(run, name) if step > 0]


def _line(panel: Axes, points: Sequence[Point], label: str, color: str) -> None:
    """Every step, faint, under its running mean."""
    if not points:
        return
    if len(points) > _SMOOTHED_STEPS:
        panel.plot(*zip(*points, strict=True), color=color, alpha=0.25, linewidth=1)
        points = _smoothed(points)
    marker = "o" if len(points) == 1 else ""  # one point makes no line
    panel.plot(*zip(*points, strict=True), color=color, label=label, linewidth=1.8, marker=marker)


def _markers(panel: Axes, points: Sequence[Point], label: str, color: str) -> None:
    if points:
        panel.plot(*zip(*points, strict=True), color=color, label=label, marker="o", linestyle="--", markersize=5)


def _finish(panel: Axes, *, ylabel: str, share: bool = True) -> None:
    panel.set_xlabel("step")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.set_ylabel(ylabel)
    if share:
        panel.set_ylim(0, 1)
    if panel.get_legend_handles_labels()[0]:
        panel.legend(loc="best")


def learning(run: RunRecords) -> Figure | None:
    """Rewards of both policies, and what the Code LLM's programs do on hidden tests."""
    figure, (rewards, accuracy) = _panels(["Rewards in training", "Programs that pass every hidden test"])
    _line(rewards, _trained(run, "code/reward"), "Code LLM", COLORS[0])
    _line(rewards, _trained(run, "test/reward"), "Test LLM", COLORS[1])
    _line(accuracy, _trained(run, "code/pass@1"), "training questions", COLORS[7])
    _markers(accuracy, _metric(run, "val/code/pass@1"), "held out, temperature 1", COLORS[0])
    _markers(accuracy, _metric(run, "val/code/greedy_pass@1"), "held out, greedy", COLORS[2])
    _finish(rewards, ylabel="mean reward")
    _finish(accuracy, ylabel="share of programs")
    return figure


def testing(run: RunRecords) -> Figure | None:
    """The Test LLM: in training against its partner, and on incorrect programs that never change."""
    if not _trained(run, "test/valid"):
        return None
    figure, (training, on_buggy) = _panels(["Test LLM against its partner", "Test LLM on recorded buggy programs"])
    _line(training, _trained(run, "test/valid"), "validity", COLORS[0])
    _line(training, _trained(run, "test/broke_candidate_rate"), "suites that break the program", COLORS[1])
    _line(training, _trained(run, "test/adv"), "adversarial term", COLORS[4])
    _line(training, _trained(run, "test/distinct_call_rate"), "pairs of cases that differ", COLORS[6])
    _markers(on_buggy, _metric(run, "val/test/buggy_programs_valid"), "validity", COLORS[0])
    _markers(on_buggy, _metric(run, "val/test/buggy_programs_kill"), "suites that break it", COLORS[1])
    _markers(on_buggy, _metric(run, "val/test/buggy_programs_detection_rate"), "suites that detect the bug", COLORS[2])
    _finish(training, ylabel="share")
    _finish(on_buggy, ylabel="share")
    return figure


def mistake_book(run: RunRecords) -> Figure | None:
    """The Mistake Book: its size, what comes and goes, and how replays fare."""
    if not any(value for _, value in _trained(run, "book/cases")):
        return None
    figure, (size, flow, replays) = _panels(["Cases in the Mistake Book", "Cases a step", "Replays that pass"])
    _line(size, _trained(run, "book/cases"), "cases", COLORS[0])
    _line(flow, _trained(run, "book/added"), "added", COLORS[1])
    _line(flow, _trained(run, "book/removed"), "removed", COLORS[2])
    _line(replays, _trained(run, "book/replay_pass_rate"), "", COLORS[0])
    _finish(replays, ylabel="share of replayed cases")
    for panel in (size, flow):
        _finish(panel, ylabel="cases", share=False)
        panel.set_ylim(bottom=0)
    return figure


_TIME_PARTS = {"episodes": "sampling and judging", **PHASES, "other": "other"}


def seconds_by_part(rows: Sequence[Mapping[str, Any]], *, updates_at_once: bool) -> dict[str, list[float]]:
    """Seconds of each step by what they went to, which add up to the steps'.

    Args:
        rows: of metrics.jsonl, with ``timing_s/step`` and ``time_frac/...``.
        updates_at_once: of two updates that begin together the longer one counts.
    """
    parts = {
        words: [(row.get(f"time_frac/{name}") or 0.0) * row["timing_s/step"] for row in rows]
        for name, words in _TIME_PARTS.items()
    }
    if updates_at_once:
        updates = [parts.pop(_TIME_PARTS[name]) for name in UPDATES]
        parts = {"both updates, at the same time": [max(pair) for pair in zip(*updates, strict=True)], **parts}
    return parts


def time(run: RunRecords) -> Figure | None:
    """Where the seconds of a step go."""
    rows = [row for row in run.metrics if row.get("timing_s/step") is not None and "time_frac/other" in row]
    if not rows:
        return None
    figure, (panel,) = _panels(["Seconds a step"])
    steps = [row["step"] for row in rows]
    parts = seconds_by_part(rows, updates_at_once=run.config.get("layout") == "separate")
    shown = {words: values for words, values in parts.items() if any(values)}
    if len(steps) > 1:
        panel.stackplot(steps, list(shown.values()), labels=list(shown), colors=COLORS, alpha=0.85)
    else:
        below = 0.0
        for color, (words, (seconds, *_)) in zip(COLORS, shown.items(), strict=False):
            panel.bar(steps, seconds, bottom=below, width=0.5, label=words, color=color, alpha=0.85)
            below += seconds
        panel.set_xlim(steps[0] - 1, steps[0] + 1)
    _finish(panel, ylabel="seconds", share=False)
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.set_size_inches(7.6, 3.4)
    return figure


RUN_FIGURES: dict[str, tuple[str, Callable[[RunRecords], Figure | None]]] = {
    "learning": ("Both policies' rewards, and the programs' true quality", learning),
    "testing": ("The Test LLM", testing),
    "mistake_book": ("The Mistake Book", mistake_book),
    "time": ("Time", time),
}
"""Name -> caption and function, in the order of the page."""


# ------------------------------ arms side by side ------------------------------


def arm_bars(summary: ExperimentSummary, measures: Sequence[str], *, same_scale: bool = False) -> Figure:
    """Means over seeds with 95 % intervals, each arm at the first arm's last step; a line below says what is what.

    Arms that did not take the first measure are left out; a diamond stands for the end of an arm that went on.

    Args:
        same_scale: one x axis for all panels.
    """
    figure, panels = _panels([_TITLES.get(name, name) for name in measures])
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
    figure, panels = _panels(
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
