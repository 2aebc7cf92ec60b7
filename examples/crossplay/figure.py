"""The picture of a cross-play: who wins against whom, and ratings over training."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from code_a1_recipe.analysis.figures import COLORS
from code_a1_recipe.stats.estimates import Array, Estimate

from .ratings import ANCHOR, PlayerRating, RatingTable

CODE_COLOR, TEST_COLOR = COLORS[0], COLORS[1]
_HEIGHT_INCHES = 3.9
_CELL_INCHES = (0.85, 0.62)
"""Width and height of a cell of the heat map, where there are many."""
_LEAST_MAP_INCHES = 4.6
_RATINGS_INCHES = 5.4
_LEAST_SPAN = 0.2
"""Of the colours, in win rate: noise between almost equal rates is not to look like a pattern."""
_PALEST = "#E9F1F8"
"""Of the heat map; white would look like no cell."""
_MOST_CELLS_WITH_INTERVALS = 36
_MOST_STEP_TICKS = 12


def draw_crossplay(steps: Sequence[str], rates: Sequence[Sequence[Estimate]], ratings: RatingTable) -> Figure:
    """A heat map of the Code LLM's win rates, and both policies' ratings with 95 % bands.

    Args:
        steps: of both policies, ascending.
        rates: ``[code step][test step]``.
        ratings: of the same steps.
    """
    width, height = _CELL_INCHES
    map_inches = max(_LEAST_MAP_INCHES, width * len(steps) + 2.0)
    figure_height = max(_HEIGHT_INCHES, height * len(steps) + 1.3)
    figure = Figure(figsize=(map_inches + _RATINGS_INCHES, figure_height), layout="constrained", dpi=120)
    left, right = figure.subplots(1, 2, width_ratios=(map_inches, _RATINGS_INCHES))
    _draw_map(figure, left, steps, rates)
    _draw_ratings(right, steps, ratings)
    return figure


def _draw_map(figure: Figure, panel: Axes, steps: Sequence[str], rates: Sequence[Sequence[Estimate]]) -> None:
    values = np.array([[cell.value for cell in row] for row in rates])
    low, high = _color_range(values)
    colors = LinearSegmentedColormap.from_list("wins", [_PALEST, CODE_COLOR]).with_extremes(bad="#DDDDDD")
    image = panel.imshow(values, cmap=colors, vmin=low, vmax=high, aspect="auto")
    for i, row in enumerate(rates):
        for j, cell in enumerate(row):
            is_dark = not math.isnan(cell.value) and (cell.value - low) / (high - low) > 0.6
            text = _cell_text(cell, with_interval=len(steps) ** 2 <= _MOST_CELLS_WITH_INTERVALS)
            panel.text(j, i, text, ha="center", va="center", fontsize=9, color="white" if is_dark else "black")
    panel.set_title("Matches that the Code LLM wins")
    panel.set_xticks(range(len(steps)), steps)
    panel.set_yticks(range(len(steps)), steps)
    panel.set_xlabel("step of the Test LLM")
    panel.set_ylabel("step of the Code LLM")
    panel.grid(visible=False)
    panel.tick_params(length=0)
    for spine in panel.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(image, ax=panel, shrink=0.9, pad=0.02)
    bar.ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    bar.outline.set_visible(False)


def _color_range(values: Array) -> tuple[float, float]:
    """From the least to the greatest rate, widened where they are close, within [0, 1]."""
    known = values[~np.isnan(values)]
    if not known.size:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    missing = max(0.0, _LEAST_SPAN - (high - low))
    low = min(max(0.0, low - missing / 2), 1.0 - _LEAST_SPAN)
    return low, min(1.0, max(high + missing / 2, low + _LEAST_SPAN))


def _cell_text(cell: Estimate, *, with_interval: bool) -> str:
    if math.isnan(cell.value):
        return "–"
    interval = f"\n{cell.low * 100:.0f} to {cell.high * 100:.0f}" if with_interval else ""
    return f"{cell.value:.0%}{interval}"


def _draw_ratings(panel: Axes, steps: Sequence[str], ratings: RatingTable) -> None:
    _draw_line(panel, steps, ratings.code, "Code LLM", CODE_COLOR, "-")
    _draw_line(panel, steps, ratings.test, "Test LLM", TEST_COLOR, "--")
    panel.set_title("Ratings (Bradley-Terry, 95 % bands)")
    panel.set_xlabel("step")
    panel.set_ylabel(f"Elo points (Code LLM step {steps[0]}: {ANCHOR:.0f})")
    if len(steps) <= _MOST_STEP_TICKS:
        panel.set_xticks([int(step) for step in steps])
    else:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.margins(y=0.12)
    panel.legend(loc="best")


def _draw_line(
    panel: Axes, steps: Sequence[str], players: Sequence[PlayerRating], label: str, color: str, style: str
) -> None:
    xs = [int(step) for step in steps]
    ratings = [player.rating for player in players]
    lows, values, highs = ([getattr(one, name) for one in ratings] for name in ("low", "value", "high"))
    if len(xs) == 1:  # one step makes no band
        panel.vlines(xs, lows, highs, color=color, linewidth=1.2)
    panel.fill_between(xs, lows, highs, color=color, alpha=0.18, linewidth=0)
    panel.plot(xs, values, style, color=color, label=label, marker="o", markersize=4.5, linewidth=1.8)
