"""What ran when in one training step, of one run or of two."""

import statistics
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from code_a1_recipe.algorithm.spans import Span, union
from code_a1_recipe.analysis.figures import COLORS
from code_a1_recipe.runs.console import PHASES, UPDATES

from .busy_spans import running
from .step_times import QuestionSpans, StepTimes

# Axes: A activities (Code LLM, Test LLM, judge), Q questions of a step, T slices of time.

_ACTIVITIES = ("Code LLM writes", "Test LLM writes", "programs at the judge")
_ACTIVITY_COLORS = (COLORS[0], COLORS[1], COLORS[2])
_PHASE_COLORS = {
    "update_code": (*to_rgb(COLORS[0]), 0.35),  # of their policy, paler
    "update_test": (*to_rgb(COLORS[1]), 0.35),
    "save_checkpoint": (*to_rgb(COLORS[6]), 0.8),
    "update_weights": (*to_rgb(COLORS[4]), 0.8),
}
_LABELLED_SHARE = 0.09
"""Of the time axis: a phase's bar at least this wide has its name in it."""
_LABEL_LETTERS = 13
"""A line of such a name."""
_WIDTH_INCHES = 11.0
_CURVES_INCHES = 1.7
_ROW_INCHES = 0.26
_ROWS_INCHES = (1.6, 4.2)
"""Least and greatest height of the questions' rows."""
_LEGEND_INCHES = 0.9
# Up to this many rows are high enough to be divided; more are mixed colours of one line each.
_MOST_DIVIDED_ROWS = 64
_ROW_LINES, _GAP_LINES = 12, 3
"""Lines of the image for a row, divisible by one, two and three activities, and for the gap below it."""
_SLICES = 2400
"""Of the time axis: about two for each pixel."""
_MOST_CHANGES = 4000
"""Curves with more steps than this are drawn as means over slices of time."""


def draw_timelines(steps: Mapping[str, StepTimes]) -> Figure:
    """One or two steps below one another on the same scales, by the name of their run.

    Each has a panel with the number of requests and programs under way, and one with a row for each question. A row is
    divided among what goes on at the same time; above 64 questions it shows the mixture of their colours.
    """
    names = list(steps)
    heights = [height for name in names for height in (_CURVES_INCHES, _rows_inches(len(steps[name].questions)))]
    figure = Figure(figsize=(_WIDTH_INCHES, sum(heights) + _LEGEND_INCHES), layout="constrained", dpi=120)
    panels = figure.subplots(len(heights), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    end = max(_end(times) for times in steps.values())
    for number, (name, times) in enumerate(steps.items()):
        curves, rows = panels[2 * number], panels[2 * number + 1]
        title = f"{name}, step {times.step}: {times.seconds:.2f} seconds"
        curves.set_title(title, parse_math=False)  # a dollar sign in a folder's name is no formula
        _draw_curves(curves, times)
        _draw_rows(rows, times)
        for panel in (curves, rows):
            _draw_phases(panel, times)
        _label_phases(rows, times, end)
    panels[-1].set_xlim(0, end * 1.005)
    panels[-1].set_xlabel("seconds since the step's start")
    highest = max(curves.get_ylim()[1] for curves in panels[::2])
    for curves in panels[::2]:
        curves.set_ylim(0, highest)
    figure.align_ylabels(list(panels))
    _legend(figure, list(steps.values()))
    return figure


def _rows_inches(num_questions: int) -> float:
    least, greatest = _ROWS_INCHES
    return min(greatest, max(least, _ROW_INCHES * num_questions))


def _end(times: StepTimes) -> float:
    return max(times.seconds, times.phases_end)


def _draw_curves(panel: Axes, times: StepTimes) -> None:
    for spans, color in zip(times.spans.by_activity, _ACTIVITY_COLORS, strict=True):
        if not spans:
            continue
        xs, numbers = _curve(spans)
        panel.fill_between(xs, numbers, step="post", color=color, alpha=0.18, linewidth=0)
        panel.step(xs, numbers, where="post", color=color, linewidth=1.3)
    panel.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    panel.set_ylabel("running at once")


def _curve(spans: Sequence[Span]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times, and the number of spans that run from each on; means over slices where it changes too often to draw."""
    points = running(spans)
    if not points:  # nothing took a millisecond
        return np.zeros(1), np.zeros(1)
    xs, numbers = np.array([time for time, _ in points]), np.array([float(number) for _, number in points])
    if len(points) > _MOST_CHANGES:
        edges = np.linspace(xs[0], xs[-1], _SLICES + 1)
        area = np.concatenate([[0.0], np.cumsum(numbers[:-1] * np.diff(xs))])  # under the curve until each time
        means = np.diff(np.interp(edges, xs, area)) / np.diff(edges)
        xs, numbers = edges, np.append(means, 0.0)
    return np.concatenate([[xs[0]], xs]), np.concatenate([[0.0], numbers])


def _draw_rows(panel: Axes, times: StepTimes) -> None:
    places = list(times.questions)
    end = max([times.episode_seconds, *(end for spans in times.spans.by_activity for _, end in spans)])
    active_AQT = _activity(list(times.questions.values()), end)
    image = _divided_rows(active_AQT) if len(places) <= _MOST_DIVIDED_ROWS else _mixed_rows(active_AQT)
    bottom = len(places) - 0.5
    panel.imshow(image, extent=(0, end, bottom, -0.5), aspect="auto", zorder=2)
    panel.set_ylim(bottom, -0.5)
    panel.grid(visible=False, axis="y")
    panel.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    panel.yaxis.set_major_formatter(
        FuncFormatter(lambda y, _: str(places[round(y)]) if 0 <= round(y) < len(places) else "")
    )
    panel.set_ylabel("question")


def _activity(questions: Sequence[QuestionSpans], end: float) -> NDArray[np.bool_]:
    """[A, Q, T]: whether an activity goes on for a question in a slice of the time from 0 to ``end`` seconds.

    The shortest span is one slice, so that none is lost.
    """
    active_AQT = np.zeros((len(_ACTIVITIES), len(questions), _SLICES), dtype=bool)
    slices_a_second = _SLICES / end if end > 0 else 0.0
    for q, question in enumerate(questions):
        for a, spans in enumerate(question.by_activity):
            for start, stop in union(spans):
                first = min(_SLICES - 1, max(0, round(start * slices_a_second)))
                active_AQT[a, q, first : max(first + 1, round(stop * slices_a_second))] = True
    return active_AQT


def _divided_rows(active_AQT: NDArray[np.bool_]) -> NDArray[np.float32]:
    """[lines, T, RGBA]: rows whose height is shared by the activities that go on, from the Code LLM at the top down."""
    _, num_questions, num_slices = active_AQT.shape
    number_QT = active_AQT.sum(axis=0)
    rank_AQT = active_AQT.cumsum(axis=0) - 1
    image = np.zeros((num_questions, _ROW_LINES + _GAP_LINES, num_slices, 4), dtype=np.float32)
    for line in range(_ROW_LINES):
        shown_QT = line * number_QT // _ROW_LINES
        for color, active_QT, rank_QT in zip(_ACTIVITY_COLORS, active_AQT, rank_AQT, strict=True):
            image[:, _GAP_LINES // 2 + line][active_QT & (rank_QT == shown_QT)] = (*to_rgb(color), 1.0)
    return image.reshape(-1, num_slices, 4)


def _mixed_rows(active_AQT: NDArray[np.bool_]) -> NDArray[np.float32]:
    """[Q, T, RGBA]: the mean colour of the activities that go on."""
    colors_AC = np.array([(*to_rgb(color), 1.0) for color in _ACTIVITY_COLORS], dtype=np.float32)
    number_QT = np.maximum(1, active_AQT.sum(axis=0)).astype(np.float32)
    mixed: NDArray[np.float32] = np.einsum("aqt,ac->qtc", active_AQT.astype(np.float32), colors_AC)
    mixed /= number_QT[..., np.newaxis]
    return mixed


def _mixed(colors: Sequence[str]) -> tuple[float, float, float]:
    red, green, blue = (statistics.fmean(parts) for parts in zip(*map(to_rgb, colors), strict=True))
    return red, green, blue


def _phase_heights(times: StepTimes) -> dict[str, Span]:
    """Bottom and top of each phase's bar, in shares of the panel's height: two updates at once divide it."""
    heights = dict.fromkeys(times.phases, (0.0, 1.0))
    if times.updates_at_once and all(name in times.phases for name in UPDATES):
        upper, lower = UPDATES
        heights |= {upper: (0.5, 1.0), lower: (0.0, 0.5)}
    return heights


def _draw_phases(panel: Axes, times: StepTimes) -> None:
    heights = _phase_heights(times)
    for name, (start, end) in times.phase_spans.items():
        bottom, top = heights[name]
        panel.axvspan(start, end, ymin=bottom, ymax=top, facecolor=_PHASE_COLORS[name], linewidth=0)
    panel.axvline(times.seconds, color=COLORS[7], linewidth=1, linestyle=":")


def _label_phases(panel: Axes, times: StepTimes, whole: float) -> None:
    heights = _phase_heights(times)
    for name, (start, end) in times.phase_spans.items():
        if end - start >= _LABELLED_SHARE * whole:
            words = f"{textwrap.fill(PHASES[name], _LABEL_LETTERS)}\n{end - start:.2f} s"
            x, y, transform = (start + end) / 2, statistics.fmean(heights[name]), panel.get_xaxis_transform()
            panel.text(x, y, words, transform=transform, ha="center", va="center", fontsize=9)


def _legend(figure: Figure, steps: Sequence[StepTimes]) -> None:
    handles: list[Patch | Line2D] = [
        Patch(color=color, label=label) for color, label in zip(_ACTIVITY_COLORS, _ACTIVITIES, strict=True)
    ]
    if any(len(times.questions) > _MOST_DIVIDED_ROWS for times in steps):
        handles.insert(2, Patch(color=_mixed(_ACTIVITY_COLORS[:2]), label="both LLMs write"))
    for name, words in PHASES.items():
        if any(name in times.phases for times in steps):
            handles.append(Patch(facecolor=_PHASE_COLORS[name], label=words))
    handles.append(Line2D([], [], color=COLORS[7], linewidth=1, linestyle=":", label="end of the step"))
    figure.legend(handles=handles, loc="outside lower center", ncols=-(-len(handles) // 2))
