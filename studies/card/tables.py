"""The tables and the figure of the experiment, drawn from its results file alone."""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes

from code_a1_recipe.stats.estimates import Estimate, paired_difference
from code_a1_recipe.stats.tables import Table, table_with_head
from code_a1_recipe.tools.report.figures import COLORS, STYLE, make_panels

from .plan import FIRST, LATER, NUM_FIRST, Slice, pair_of, planned
from .rows import RunRows, mean_by_question, read_rows

CLAIMS = {
    "pass@1": "(a) Code LLM, pass@1",
    "valid": "(b) Test LLM, validity",
    "detection_rate": "(b) Test LLM, detection rate",
    "mul": "(b) Test LLM, Mul",
}
"""Measure -> its row in the table of claims."""
PANELS = {
    "code/pass@1": "Code LLM: programs that pass all hidden tests",
    "test/valid": "Test LLM: validity of suites",
    "test/broke_candidate_rate": "Test LLM: suites that break their program",
    "timing_s/step": "seconds a step",
}
"""Metric -> title of its panel."""
SMOOTHED_STEPS = 5


def write_tables(results: Path, seeds: Sequence[int]) -> str:
    """Return all tables as Markdown, and draw the figure beside the results file.

    Raises:
        InputError: the results file is damaged.
    """
    runs = read_rows(results)
    tables = [claims_table(runs, seeds), benchmark_table(runs), runs_table(runs)]
    if any(run.steps for run in runs):
        draw_curves(runs, results.with_name("curves.svg"))
    return "\n".join(table.markdown() for table in tables if table.rows) or "no run yet\n"


def pairs_of(
    runs: Sequence[RunRows], seeds: Sequence[int], arms: tuple[str, str]
) -> dict[Slice, tuple[RunRows, RunRows]]:
    """Find the complete pairs of two arms: slice -> its two runs, in the order of ``arms``."""
    pairs = {wanted: pair_of(runs, wanted) for wanted in planned(seeds) if wanted.arms == arms}
    return {wanted: pair for wanted, pair in pairs.items() if pair is not None}


def claims_table(runs: Sequence[RunRows], seeds: Sequence[int]) -> Table:
    """Make the table of both claims, for the pairs of ``FIRST`` and of ``LATER``.

    Values are means over questions of means over seeds. The interval is Student's t over questions.
    """
    rows = [["arms", "measure", "before", "first arm", "second arm", "difference", "pairs", "answer"]]
    for arms in (FIRST, LATER):
        pairs = pairs_of(runs, seeds, arms)
        for measure, label in CLAIMS.items():
            cells = _claim(list(pairs.values()), measure)
            if cells:
                rows.append([f"{arms[0]} minus {arms[1]}", label, *cells])
    return table_with_head(
        rows,
        title="Claims",
        note="Before: step 0; each arm: the last step. Differences are over complete pairs, paired by question, with "
        f"95 % intervals over questions. An answer needs {NUM_FIRST} pairs: yes if the interval is above 0, else no.",
    )


def _claim(pairs: Sequence[tuple[RunRows, RunRows]], measure: str) -> list[str]:
    """Make the cells of a claim; empty if no pair has the measure."""
    after: list[list[dict[str, float]]] = [[], []]
    before = []
    for pair in pairs:
        lasts = [run.measure(measure, max(run.validations, default=0)) for run in pair]
        if not all(lasts):
            continue
        for values, last in zip(after, lasts, strict=True):
            values.append(last)
        before.append(mean_by_question(run.measure(measure, 0) for run in pair if run.measure(measure, 0)))
    if not before:
        return []
    first, second = (mean_by_question(values) for values in after)
    difference = paired_difference(first, second)
    cells = [_mean(mean_by_question(values)) for values in (before, *after)]
    return [*cells, difference.plus_minus(signed=True), str(len(before)), _answer(difference, len(before))]


def _answer(difference: Estimate, num_pairs: int) -> str:
    if num_pairs < NUM_FIRST:
        return "not yet"
    return "yes" if difference.excludes_zero and difference.value > 0 else "no"


def _mean(values: Mapping[str, float]) -> str:
    return f"{statistics.fmean(values.values()):.3f}" if values else "?"


def benchmark_table(runs: Sequence[RunRows]) -> Table:
    """Make the table of public benchmarks: means over the complete runs of each arm."""
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for benchmark in run.benchmarks.values():
            for name, value in benchmark.figures.items():
                figures[run.started.arm][f"{benchmark.name}: {name}"].append(value)
    names = list(dict.fromkeys(name for of_arm in figures.values() for name in of_arm))
    rows = [["benchmark", *(f"{arm} ({max(map(len, of_arm.values()))})" for arm, of_arm in figures.items())]]
    for name in names:
        values = [of_arm.get(name) for of_arm in figures.values()]
        rows.append([name, *(f"{statistics.fmean(found):.3f}" if found else "" for found in values)])
    return table_with_head(
        rows, title="Benchmarks at the end", note="Means over runs; the number of runs stands in brackets."
    )


def runs_table(runs: Sequence[RunRows]) -> Table:
    """Make the table of all runs, the cut ones too."""
    rows = [
        [
            "arm",
            "seed",
            "state",
            "minutes",
            "s a step",
            "KL / clip fraction of the Code LLM",
            "machine",
            "commit",
            "date",
        ]
    ]
    for run in runs:
        started = run.started
        seconds = [step.metrics["timing_s/step"] for step in run.steps.values()]
        last = run.steps[max(run.steps)].metrics if run.steps else {}
        rows.append(
            [
                started.arm,
                str(started.seed),
                run.state,
                f"{run.ended.minutes:.1f}" if run.ended else "?",
                f"{statistics.median(seconds):.1f}" if seconds else "?",
                f"{last.get('code/actor/ppo_kl', math.nan):.1e} / {last.get('code/actor/pg_clipfrac', math.nan):.1e}",
                started.machine,
                started.commit,
                started.time,
            ]
        )
    return table_with_head(rows, title="Runs", note="The seconds are the median of the run's steps.")


def draw_curves(runs: Sequence[RunRows], picture: Path) -> None:
    """Draw training metrics by step, one line a run: means over five steps; cut runs are dashed."""
    arms = list(dict.fromkeys(run.started.arm for run in runs))
    with mpl.rc_context({**STYLE, "svg.fonttype": "none", "svg.hashsalt": "card"}):
        figure, panels = make_panels(list(PANELS.values()))
        for panel, metric in zip(panels, PANELS, strict=True):
            for run in runs:
                _draw(panel, run, metric, COLORS[arms.index(run.started.arm)])
            panel.set_xlabel("step")
        handles = [mpl.lines.Line2D([], [], color=COLORS[number], label=arm) for number, arm in enumerate(arms)]
        panels[0].legend(handles=handles, loc="best")
        figure.savefig(picture, metadata={"Date": None})


def _draw(panel: Axes, run: RunRows, metric: str, color: str) -> None:
    values = {number: row.metrics[metric] for number, row in sorted(run.steps.items()) if metric in row.metrics}
    steps, found = list(values), list(values.values())
    smooth = [statistics.fmean(found[max(0, at - SMOOTHED_STEPS + 1) : at + 1]) for at in range(len(found))]
    panel.plot(steps, smooth, color=color, linestyle="-" if run.is_complete else "--", linewidth=1.5, alpha=0.8)
