"""Draws the figures of an experiment's report: the progress of its arms."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from code_a1_recipe.stats.estimates import mean_estimate
from code_a1_recipe.tools.report.figures import COLORS, make_panels

from .results import RunResult
from .summary import ExperimentSummary

LINES = ("-", "--", "-.", ":")
MEASURE = "pass@1"


def arm_curves(summary: ExperimentSummary, *, by_seconds: bool) -> Figure:
    """Draw held-out pass@1 of every arm against steps or seconds: means and 95 % intervals over seeds."""
    figure, (panel,) = make_panels(["Held-out pass@1"])
    for number, (arm, runs) in enumerate(summary.runs.items()):
        xs, means, halves = [], [], []
        for step in _common_steps(runs):
            values = summary.values(arm, MEASURE, step)
            mean = mean_estimate(list(values.values()))
            xs.append(summary.seconds(arm, step) if by_seconds else step)
            means.append(mean.value)
            halves.append(mean.half_width if len(values) > 1 else 0.0)
        panel.errorbar(
            xs,
            means,
            yerr=halves,
            label=arm,
            color=COLORS[number % len(COLORS)],
            linestyle=LINES[number % len(LINES)],
            marker="o",
            markersize=4,
            capsize=2.5,
        )
    panel.set_xlabel("seconds of training, mean over seeds" if by_seconds else "step")
    panel.set_ylabel("pass@1, temperature 1")
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.set_size_inches(7.5, 4.2)
    return figure


def _common_steps(runs: Mapping[int, RunResult]) -> list[int]:
    """List the steps at which every run has the measure."""
    steps_by_run = []
    for run in runs.values():
        steps_by_run.append({one.step for one in run.validations if MEASURE in one.measures})
    return sorted(set.intersection(*steps_by_run))
