"""Draws the figures of a run's report from the run's metrics."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...runs.console import PHASES
from ...runs.reader import RunRecords

# Okabe and Ito's palette: readers with any kind of colour vision can tell the colours apart.
COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#7F7F7F",
    "#000000",
    "#9E5D00",
    "#332288",
)
STYLE: Any = {
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
"""Parameters of matplotlib for every figure."""
_SMOOTHED_STEPS = 5
_PANEL_INCHES = (5.2, 3.4)
_HELD_OUT = "val/"
Rows = Sequence[Mapping[str, Any]]
"""The metrics of a run, one row for each step."""


@dataclass(frozen=True)
class Panel:
    """One coordinate system with metrics over the steps of a run."""

    title: str
    lines: Mapping[str, str]
    """Metric -> label of its line. Lines of validation metrics (``val/...``) have markers."""
    ylabel: str = "share"
    """Label of the y axis. An axis with the label "share" or "mean reward" ends at 1."""


RUN_FIGURES: dict[str, tuple[str, tuple[Panel, ...]]] = {
    "learning": (
        "Both policies' rewards, and the programs' true quality",
        (
            Panel(
                "Rewards in training",
                {"code/reward": "Code LLM", "test/reward": "Test LLM"},
                ylabel="mean reward",
            ),
            Panel(
                "Programs that pass every hidden test",
                {
                    "code/pass@1": "training questions",
                    "code/case_pass_rate": "cases of the Test LLM that pass",
                    "val/code/pass@1": "held out, temperature 1",
                    "val/code/greedy_pass@1": "held out, greedy",
                },
            ),
        ),
    ),
    "testing": (
        "The Test LLM",
        (
            Panel(
                "Test LLM against its partner",
                {
                    "test/valid": "validity",
                    "test/broke_candidate_rate": "suites that break the program",
                    "test/adv": "adversarial term",
                    "test/distinct_call_rate": "pairs of cases that differ",
                },
            ),
            Panel(
                "Test LLM on recorded buggy programs",
                {
                    "val/test/buggy_programs_valid": "validity",
                    "val/test/buggy_programs_kill": "suites that break it",
                    "val/test/buggy_programs_detection_rate": "suites that detect the bug",
                },
            ),
        ),
    ),
    "mistake_book": (
        "The Mistake Book",
        (
            Panel(
                "Cases in the Mistake Book",
                {"book/cases": "cases", "book/added": "added in a step", "book/removed": "removed in a step"},
                ylabel="cases",
            ),
            Panel("Replays that pass", {"book/replay_pass_rate": "of replayed cases"}),
        ),
    ),
    "time": (
        "Time",
        (
            Panel(
                "Seconds a step",
                {
                    "timing_s/step": "whole step",
                    "timing_s/episodes": "sampling and judging",
                    **{f"timing_s/{name}": words for name, words in PHASES.items()},
                    "timing_s/testing": "validation",
                },
                ylabel="seconds",
            ),
        ),
    ),
    "lost": (
        "Lost programs, suites and cases",
        (
            Panel(
                "Lost",
                {
                    "judge/outage_rate": "programs that the sandbox could not run",
                    "judge/timeout_rate": "cases that timed out",
                    "code/extraction_failure_rate": "responses without a program",
                    "test/extraction_failure_rate": "responses without a suite",
                },
            ),
        ),
    ),
}
"""Name -> caption and panels, in the order of the page."""


def make_panels(titles: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """Make a figure with one panel for each title, side by side."""
    width, height = _PANEL_INCHES
    figure = Figure(figsize=(width * len(titles), height), layout="constrained", dpi=120)
    axes = list(figure.subplots(1, len(titles), squeeze=False).flat)
    for panel, title in zip(axes, titles, strict=True):
        panel.set_title(title)
    return figure, axes


def draw_panels(run: RunRecords, panels: Sequence[Panel]) -> Figure | None:
    """Draw one figure of a run. Returns None if the run has no values of the panels' metrics, or only zeros."""
    points = {}
    has_values = False
    for panel in panels:
        for name in panel.lines:
            points[name] = points_of(run.metrics, name)
            has_values |= any(value for _, value in points[name])
    if not has_values:
        return None
    figure, all_axes = make_panels([panel.title for panel in panels])
    for panel, axes in zip(panels, all_axes, strict=True):
        for color, (name, label) in zip(COLORS, panel.lines.items(), strict=False):
            if not points[name]:
                continue
            steps, values = zip(*points[name], strict=True)
            if name.startswith(_HELD_OUT):
                axes.plot(steps, values, color=color, label=label, marker="o", linestyle="--", markersize=5)
                continue
            if len(steps) > _SMOOTHED_STEPS:  # draw the values faintly, and their running mean over them
                axes.plot(steps, values, color=color, alpha=0.25, linewidth=1)
                ends = range(1, len(values) + 1)
                values = tuple(statistics.fmean(values[max(0, end - _SMOOTHED_STEPS) : end]) for end in ends)
            marker = "o" if len(steps) == 1 else ""  # a line through one point would be invisible
            axes.plot(steps, values, color=color, label=label, linewidth=1.8, marker=marker)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set(xlabel="step", ylabel=panel.ylabel)
        axes.set_ylim(0, 1 if panel.ylabel in ("share", "mean reward") else None)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="best")
    return figure


def points_of(rows: Rows, name: str) -> list[tuple[float, float]]:
    """List the points (step, value) of a metric. Training metrics begin at step 1, validation metrics at step 0."""
    first_step = 0 if name.startswith(_HELD_OUT) else 1
    points = []
    for row in rows:
        step, value = row["step"], row.get(name)
        if step >= first_step and isinstance(value, int | float):
            points.append((step, value))
    return points
