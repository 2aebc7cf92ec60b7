"""What an evaluation found, on disk: per-question values, from which every table and comparison is made."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..files import write_whole
from ..stats.estimates import Array, Estimate, bootstrap, ratio_of_sums
from ..stats.tables import Table, table_of

RESULTS = "results.json"
LOST = "lost to an outage"
"""How the name of a count ends that says for how many responses the sandbox gave no verdict."""
MIN_QUESTIONS = 20
"""Questions below which no difference is called settled: the bootstrap of a handful is too narrow."""
Pair = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """One evaluation of one model.

    Every metric is ``sum(numerators) / sum(denominators)`` over questions, in [0, 1]; with denominators 1 that is the
    plain mean. Metrics of ``products`` are products of two others, such as Mul = pass@5 * mut@5.
    """

    kind: str
    """"code" or "test"."""
    label: str
    """The model, as tables show it."""
    settings: Mapping[str, Any]
    """What was sampled and judged, and how."""
    source_of: Mapping[str, str]
    """Data source of each question."""
    parts: Mapping[str, Mapping[str, Pair]]
    """Metric -> question -> (numerator, denominator). A question may be missing from a metric."""
    products: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    """What was left out and why, and other totals."""

    def save(self, folder: Path) -> None:
        """Write ``results.json``, all at once."""
        write_whole(folder / RESULTS, json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Results":
        """Raises InputError where ``folder`` holds none."""
        path = folder / RESULTS if folder.is_dir() else folder
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"{folder} holds no finished evaluation ({path.name}: {error}); name the --output of "
                "`code-a1 eval code` or `code-a1 eval test`"
            ) from error

    @property
    def num_lost(self) -> int:
        """Responses without a verdict, because of outages."""
        return sum(number for name, number in self.counts.items() if name.endswith(LOST))

    @property
    def sources(self) -> list[str | None]:
        """Data sources in order of first appearance, and None for all where there are several."""
        found = list(dict.fromkeys(self.source_of.values()))
        return [*found, *([None] if len(found) > 1 else [])]

    @property
    def metrics(self) -> list[str]:
        """Names of all metrics, products last."""
        return [*self.parts, *self.products]

    def questions(self, metric: str, source: str | None = None) -> list[str]:
        """Questions that have the metric (of a product: both factors), of one data source or of all."""
        first, *others = self.products.get(metric, (metric,))
        names = [name for name in self.parts[first] if all(name in self.parts[other] for other in others)]
        return [name for name in names if source is None or self.source_of[name] == source]

    def columns(self, metric: str, questions: Sequence[str]) -> list[list[float]]:
        """Numerators and denominators over ``questions``: two lists, of a product four."""
        factors = self.products.get(metric, (metric,))
        return [[self.parts[factor][name][place] for name in questions] for factor in factors for place in (0, 1)]

    def estimate(self, metric: str, questions: Sequence[str]) -> Estimate:
        """The figure with its interval; NaN where no question counts."""
        return bootstrap(*self.columns(metric, questions), statistic=product_of_ratios)


def product_of_ratios(*columns: Array) -> Any:
    """``sum(columns[0]) / sum(columns[1])``, times the ratio of the next two, and so on.

    In a product a ratio that no question counts for is 0: Mul of tests of which no function passes the baseline.
    """
    ratios = [ratio_of_sums(columns[place], columns[place + 1]) for place in range(0, len(columns), 2)]
    return ratios[0] if len(ratios) == 1 else math.prod(np.nan_to_num(ratio, nan=0.0) for ratio in ratios)


def results_table(results: Results) -> Table:
    """One row for each metric, one column for each data source, and for all where there are several."""
    rows = []
    for metric in results.metrics:
        row = {"metric": _metric_label(metric, results)}
        for source in results.sources:
            questions = results.questions(metric, source)
            number = sum(source is None or one == source for one in results.source_of.values())
            estimate = results.estimate(metric, questions) if questions else None
            counted = f" of {len(questions)}" if len(questions) < number else ""
            row[f"{source or 'all'} ({number})"] = f"{estimate.text()}{counted}" if estimate else "–"
        rows.append(row)
    note = "Percent; in brackets the 95 % bootstrap interval over questions, [?] where too few count for one."
    if results.counts:
        note += " " + "; ".join(f"{name}: {value}" for name, value in results.counts.items()) + "."
    return table_of(results.label, rows, note=note)


def _metric_label(metric: str, results: Results) -> str:
    """pass@1 of several samples goes by another name too."""
    samples = results.settings.get("samples", 1)
    return f"pass@1 (avg@{samples})" if metric == "pass@1" and results.kind == "code" and samples > 1 else metric


def comparison_table(first: Results, second: Results) -> Table:
    """Both figures and their paired difference, second minus first, over the questions that count on both sides.

    A product keeps all questions that both have: its factors count different ones by definition.

    Raises:
        InputError: of different kinds, or without a common question and metric.
    """
    if first.kind != second.kind:
        raise InputError(f"an evaluation of a {first.kind} LLM and one of a {second.kind} LLM cannot be compared")
    labels = [first.label, second.label if second.label != first.label else f"{second.label} (second)"]
    rows = []
    for metric in first.metrics:
        if metric not in second.metrics:
            continue
        known = set(second.questions(metric))
        for source in first.sources:
            shared = [name for name in first.questions(metric, source) if name in known]
            if metric in first.parts:
                shared = [name for name in shared if first.parts[metric][name][1] and second.parts[metric][name][1]]
            if shared:
                rows.append(_compared(metric, source or "all", shared, first, second, labels))
    if not rows:
        raise InputError("the two evaluations share no question and metric; compare evaluations of the same file")
    note = (
        "Percent; 95 % intervals by paired bootstrap over questions. Settled: of at least "
        f"{MIN_QUESTIONS} questions, and the interval excludes zero."
    )
    names = sorted({*first.settings, *second.settings} - {"model"})
    if differing := [name for name in names if first.settings.get(name) != second.settings.get(name)]:
        note += f" Not the same in both: {', '.join(differing)}."
    return table_of(f"{labels[1]} against {labels[0]}", rows, note=note)


def _compared(
    metric: str, source: str, shared: list[str], first: Results, second: Results, labels: list[str]
) -> dict[str, str]:
    before, after = first.columns(metric, shared), second.columns(metric, shared)

    def difference(*columns: Array) -> Any:
        return product_of_ratios(*columns[: len(after)]) - product_of_ratios(*columns[len(after) :])

    change = bootstrap(*after, *before, statistic=difference)
    settled = "yes" if change.excludes_zero else "no"
    return {
        "metric": metric,
        "questions of": f"{source} ({len(shared)})",
        labels[0]: first.estimate(metric, shared).text(),
        labels[1]: second.estimate(metric, shared).text(),
        "difference": change.text(signed=True),
        "settled": settled if len(shared) >= MIN_QUESTIONS else "too few",
    }
