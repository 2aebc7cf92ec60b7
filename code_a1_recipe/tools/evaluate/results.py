"""An evaluation's values by question, on disk; every table and comparison is made from them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...files import write_whole
from ...stats.estimates import Array, Estimate, bootstrap, ratio_of_sums
from ...stats.tables import Table, table_of

RESULTS = "results.json"
LOST = "lost to an outage"
"""The end of a count's name that says for how many responses the sandbox gave no verdict."""
MIN_QUESTIONS = 20
"""Questions below which no difference is called settled: the bootstrap of a handful is too narrow."""
Pair = tuple[float, float]
PartsByQuestion = dict[str, dict[str, Pair]]
"""Metric -> question -> (numerator, denominator)."""


@dataclass(frozen=True, kw_only=True)
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
    """The settings of sampling and judging."""
    source_of: Mapping[str, str]
    """Data source of each question."""
    parts: Mapping[str, Mapping[str, Pair]]
    """Metric -> question -> (numerator, denominator). A question may be missing from a metric."""
    products: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    """Questions and samples left out, with the reasons, and other totals."""

    def save(self, folder: Path) -> None:
        """Write ``results.json``, all at once."""
        write_whole(folder / RESULTS, json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Results":
        """Raises InputError where ``folder`` holds none."""
        path = folder / RESULTS
        try:
            return cls(**json.loads(path.read_bytes()))
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
        names: list[str | None] = list(dict.fromkeys(self.source_of.values()))
        return [*names, None] if len(names) > 1 else names

    @property
    def metrics(self) -> list[str]:
        """Names of all metrics, products last."""
        return [*self.parts, *self.products]

    def questions(self, metric: str, source: str | None = None) -> list[str]:
        """Questions that have the metric (of a product: both factors), of one data source or of all."""
        first, *others = (self.parts.get(factor, {}) for factor in self.products.get(metric, (metric,)))
        names = [name for name in first if source in (None, self.source_of[name])]
        return [name for name in names if all(name in other for other in others)]

    def columns(self, metric: str, questions: Sequence[str]) -> list[tuple[float, ...]]:
        """Numerators and denominators over ``questions``: two lists, of a product four."""
        columns: list[tuple[float, ...]] = []
        for factor in self.products.get(metric, (metric,)):
            columns += zip(*(self.parts[factor][name] for name in questions), strict=True)
        return columns

    def estimate(self, metric: str, questions: Sequence[str]) -> Estimate:
        """The figure with its interval; NaN where no question counts."""
        return bootstrap(*self.columns(metric, questions), statistic=product_of_ratios)


def product_of_ratios(*columns: Array) -> Any:
    """``sum(columns[0]) / sum(columns[1])``, in a product times the ratio of the next two.

    In a product a ratio that no question counts for is 0: Mul of tests of which no function passes the baseline.
    """
    ratio = ratio_of_sums(columns[0], columns[1])
    if len(columns) == 2:
        return ratio
    other = ratio_of_sums(columns[2], columns[3])
    return np.nan_to_num(ratio) * np.nan_to_num(other)


def results_table(results: Results) -> Table:
    """One row for each metric, one column for each data source, and for all where there are several."""
    rows = []
    samples = results.settings.get("samples", 1)
    for metric in results.metrics:
        is_average = metric == "pass@1" and samples > 1
        row = {"metric": f"pass@1 (avg@{samples})" if is_average else metric}
        for source in results.sources:
            number = sum(source in (None, name) for name in results.source_of.values())
            questions = results.questions(metric, source)
            cell = results.estimate(metric, questions).text()
            if 0 < len(questions) < number:
                cell += f" of {len(questions)}"
            row[f"{source or 'all'} ({number})"] = cell
        rows.append(row)
    note = "Percent; in brackets the 95 % bootstrap interval over questions, [?] where too few count for one."
    counts = [f"{name}: {value}" for name, value in results.counts.items()]
    if counts:
        note += f" {'; '.join(counts)}."
    return table_of(results.label, rows, note=note)


def comparison_table(first: Results, second: Results) -> Table:
    """Both figures and their paired difference, second minus first, over the questions that count on both sides.

    A product keeps all questions that both have: its factors count different ones by definition.

    Raises:
        InputError: of different kinds, or without a common question and metric.
    """
    if first.kind != second.kind:
        raise InputError(f"an evaluation of a {first.kind} LLM and one of a {second.kind} LLM cannot be compared")
    label = second.label if second.label != first.label else f"{second.label} (second)"
    rows = []
    for metric in first.metrics:
        for source in first.sources:
            shared = _shared(metric, source, first, second)
            if not shared:
                continue
            change = bootstrap(*second.columns(metric, shared), *first.columns(metric, shared), statistic=_difference)
            settled = "yes" if change.excludes_zero else "no"
            row = {
                "metric": metric,
                "questions of": f"{source or 'all'} ({len(shared)})",
                first.label: first.estimate(metric, shared).text(),
                label: second.estimate(metric, shared).text(),
                "difference": change.text(signed=True),
                "settled": settled if len(shared) >= MIN_QUESTIONS else "too few",
            }
            rows.append(row)
    if not rows:
        raise InputError("the two evaluations share no question and metric; compare evaluations of the same file")
    note = (
        "Percent; 95 % intervals by paired bootstrap over questions. Settled: of at least "
        f"{MIN_QUESTIONS} questions, and the interval excludes zero."
    )
    before, after = first.settings, second.settings
    names = sorted({*before, *after} - {"model"})
    differing = [name for name in names if before.get(name) != after.get(name)]
    if differing:
        note += f" Not the same in both: {', '.join(differing)}."
    return table_of(f"{label} against {first.label}", rows, note=note)


def _difference(*columns: Array) -> Any:
    """The statistic of the first half of the columns minus that of the second."""
    half = len(columns) // 2
    return product_of_ratios(*columns[:half]) - product_of_ratios(*columns[half:])


def _shared(metric: str, source: str | None, first: Results, second: Results) -> list[str]:
    """Questions of ``first`` that have the metric on both sides, and count for it unless it is a product."""
    known = set(second.questions(metric))
    shared = [name for name in first.questions(metric, source) if name in known]
    if metric in first.products:
        return shared
    return [name for name in shared if first.parts[metric][name][1] and second.parts[metric][name][1]]
