"""The pictures of reports. Each function draws one figure from records; None where a run did not measure it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .intervals import interval_of
from .records import RunRecords
from .results import RunResult
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
    return [(row["step"], row[name]) for row in run.metrics if row.get(name) is not None]


def _trained(run: RunRecords, name: str) -> list[Point]:
    return [(step, value) for step, value in _metric(run, name) if step > 0]


def _line(panel: Axes, points: Sequence[Point], label: str, color: str) -> None:
    """Every step, faint, under its running mean."""
    if not points:
        return
    if len(points) > _SMOOTHED_STEPS:
        panel.plot(*zip(*points, strict=True), color=color, alpha=0.25, linewidth=1)
        points = _smoothed(points)
    panel.plot(*zip(*points, strict=True), color=color, label=label, linewidth=1.8)


def _markers(panel: Axes, points: Sequence[Point], label: str, color: str) -> None:
    if points:
        panel.plot(*zip(*points, strict=True), color=color, label=label, marker="o", linestyle="--", markersize=5)


def _finish(panel: Axes, *, ylabel: str, xlabel: str = "step", share: bool = True) -> None:
    panel.set_xlabel(xlabel)
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
    """The Test LLM: in training against its partner, and on wrong programs that never change."""
    if not _trained(run, "test/valid"):
        return None
    figure, (training, probes) = _panels(["Test LLM against its partner", "Test LLM on recorded wrong programs"])
    _line(training, _trained(run, "test/valid"), "validity", COLORS[0])
    _line(training, _trained(run, "test/broke_candidate_share"), "suites that break the program", COLORS[1])
    _line(training, _trained(run, "test/adv"), "adversarial term", COLORS[4])
    _line(training, _trained(run, "test/distinct_share"), "distinct calls for one program", COLORS[6])
    _markers(probes, _metric(run, "val/test/probe_valid"), "validity", COLORS[0])
    _markers(probes, _metric(run, "val/test/probe_kill"), "suites that break it", COLORS[1])
    _markers(probes, _metric(run, "val/test/probe_caught"), "by a right claim", COLORS[2])
    _finish(training, ylabel="share")
    _finish(probes, ylabel="share")
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
    _finish(size, ylabel="cases", share=False)
    _finish(flow, ylabel="cases", share=False)
    replays.set_xlabel("step")
    replays.set_ylabel("share of replayed cases")
    replays.set_ylim(0, 1)
    size.set_ylim(bottom=0)
    flow.set_ylim(bottom=0)
    return figure


_TIME_PARTS = {
    "episodes": "sampling and judging",
    "update_code": "update of the Code LLM",
    "update_test": "update of the Test LLM",
    "update_weights": "weights to the servers",
    "save_checkpoint": "checkpoints",
    "other": "other",
}


def time(run: RunRecords) -> Figure | None:
    """Where the seconds of a step go."""
    rows = [row for row in run.metrics if row.get("timing_s/step") is not None and "time_share/other" in row]
    if not rows:
        return None
    figure, (panel,) = _panels(["Seconds a step"])
    steps = [row["step"] for row in rows]
    parts = {
        words: [(row.get(f"time_share/{name}") or 0.0) * row["timing_s/step"] for row in rows]
        for name, words in _TIME_PARTS.items()
    }
    shown = {words: values for words, values in parts.items() if any(values)}
    panel.stackplot(steps, list(shown.values()), labels=list(shown), colors=COLORS, alpha=0.85)
    panel.set_xlabel("step")
    panel.set_ylabel("seconds")
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


def arm_bars(summary: ExperimentSummary, measures: Sequence[str]) -> Figure:
    """Final means over seeds with 95 % intervals; a dot for each seed, a dashed line for the first arm's base.

    Arms that took none of the measures are left out; where arms end after different steps, their labels say so.
    """
    figure, panels = _panels([_short(name) for name in measures])
    shown = [(place, arm) for place, arm in enumerate(summary.runs) if any(summary.interval(arm, m) for m in measures)]
    ends = {arm: max(run.steps for run in summary.runs[arm].values()) for _, arm in shown}
    labels = [arm if len(set(ends.values())) == 1 else f"{arm}, {ends[arm]} steps" for _, arm in shown]
    for panel, measure in zip(panels, measures, strict=True):
        for row, (place, arm) in enumerate(shown):
            values = [run.final[measure] for run in summary.runs[arm].values() if measure in run.final]
            if not values:
                continue
            interval = interval_of(values)
            color = COLORS[place % len(COLORS)]
            panel.barh(row, interval.mean, color=color, alpha=0.75, height=0.65)
            if len(values) > 1:
                panel.errorbar(interval.mean, row, xerr=interval.half_width, color="black", capsize=3, linewidth=1)
            panel.plot(values, [row] * len(values), "o", color="black", markersize=3, alpha=0.6)
        base = summary.base(measure)
        if base is not None:
            panel.axvline(base.mean, color="black", linestyle="--", linewidth=1)
        panel.set_yticks(range(len(shown)), labels)
        panel.invert_yaxis()
        panel.set_xlim(left=0)
    columns = _panels_a_row(len(measures))
    figure.set_size_inches(3.8 * columns + 0.8, (0.42 * len(shown) + 1.3) * -(-len(measures) // columns))
    return figure


def arm_curves(summary: ExperimentSummary, *, by_seconds: bool) -> Figure:
    """Held-out pass@1 of every arm, mean over seeds with its 95 % band, by step or by seconds of training."""
    figure, (panel,) = _panels(["Held-out pass@1 by wall-clock" if by_seconds else "Held-out pass@1 by step"])
    for place, (arm, runs) in enumerate(summary.runs.items()):
        points = [_curve_point(list(runs.values()), step, by_seconds) for step in _common_steps(runs)]
        if not points:
            continue
        xs, means, halves = zip(*points, strict=True)
        color = COLORS[place % len(COLORS)]
        panel.plot(xs, means, marker="o", markersize=4, color=color, label=arm, linewidth=1.8)
        low, high = ([mean + sign * half for mean, half in zip(means, halves, strict=True)] for sign in (-1, 1))
        panel.fill_between(xs, low, high, color=color, alpha=0.12, linewidth=0)
    panel.set_xlabel("seconds of training (validation left out)" if by_seconds else "step")
    panel.set_ylabel("pass@1, temperature 1")
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.set_size_inches(7.6, 4.2)
    return figure


def _common_steps(runs: Mapping[int, RunResult]) -> list[int]:
    steps = [{found.step for found in run.validations if "pass@1" in found.measures} for run in runs.values()]
    return sorted(set.intersection(*steps)) if steps else []


def _curve_point(runs: Sequence[RunResult], step: int, by_seconds: bool) -> tuple[float, float, float]:
    interval = interval_of([run.at(step)["pass@1"] for run in runs])
    x = float(step)
    if by_seconds:
        x = statistics.fmean(found.seconds for run in runs for found in run.validations if found.step == step)
    return x, interval.mean, interval.half_width if len(runs) > 1 else 0.0


_TITLES = {
    "pass@1": "pass@1, temperature 1",
    "greedy": "pass@1, greedy",
    "fooled": "undeserved full rewards",
    "missed": "wrong but fully rewarded",
    "valid": "validity",
    "kill_per_case": "kills per case",
    "product": "validity x kill rate",
    "caught": "kills by a right claim",
    "distinct": "distinct calls for one program",
    "forgotten": "forgotten",
    "forgotten_by_chance": "the same by chance of sampling",
}


def _short(measure: str) -> str:
    return _TITLES.get(measure, measure)
