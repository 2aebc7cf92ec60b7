"""The pictures of a run's report. Each function draws one figure from records; None where a run did not measure it."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..runs.console import PHASES, UPDATES
from ..runs.reader import RunRecords

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


def make_panels(titles: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side, by their titles."""
    width, height = _PANEL_INCHES
    figure = Figure(figsize=(width * len(titles), height), layout="constrained", dpi=120)
    panels = list(figure.subplots(1, len(titles), squeeze=False).flat)
    for panel, title in zip(panels, titles, strict=True):
        panel.set_title(title)
    return figure, panels


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
    panel.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    panel.set_ylabel(ylabel)
    if share:
        panel.set_ylim(0, 1)
    if panel.get_legend_handles_labels()[0]:
        panel.legend(loc="best")


def learning(run: RunRecords) -> Figure | None:
    """Rewards of both policies, and what the Code LLM's programs do on hidden tests."""
    figure, (rewards, accuracy) = make_panels(["Rewards in training", "Programs that pass every hidden test"])
    _line(rewards, _trained(run, "code/reward"), "Code LLM", COLORS[0])
    _line(rewards, _trained(run, "test/reward"), "Test LLM", COLORS[1])
    _line(accuracy, _trained(run, "code/pass@1"), "training questions", COLORS[7])
    _line(accuracy, _trained(run, "code/pass@1_after_repair"), "the same, repaired", COLORS[4])
    _markers(accuracy, _metric(run, "val/code/pass@1"), "held out, temperature 1", COLORS[0])
    _markers(accuracy, _metric(run, "val/code/greedy_pass@1"), "held out, greedy", COLORS[2])
    _finish(rewards, ylabel="mean reward")
    _finish(accuracy, ylabel="share of programs")
    return figure


def testing(run: RunRecords) -> Figure | None:
    """The Test LLM: in training against its partner, and on incorrect programs that never change."""
    if not _trained(run, "test/valid"):
        return None
    figure, (training, on_buggy) = make_panels(["Test LLM against its partner", "Test LLM on recorded buggy programs"])
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
    figure, (size, flow, replays) = make_panels(["Cases in the Mistake Book", "Cases a step", "Replays that pass"])
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
    figure, (panel,) = make_panels(["Seconds a step"])
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
