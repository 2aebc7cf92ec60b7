"""The results of an evaluation by question, and the tables that are made from them."""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
"""A count whose name ends with these words counts the responses that an outage left without a verdict."""
MIN_QUESTIONS = 20
"""Least number of questions for a settled difference. With fewer questions, bootstrap intervals are too narrow."""
Pair = tuple[float, float]
PartsByQuestion = dict[str, dict[str, Pair]]
"""Metric -> question -> (numerator, denominator)."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """The results of an evaluation of one model.

    Every metric is ``sum(numerators) / sum(denominators)`` over questions and lies in [0, 1]. If all denominators are
    1, the metric is the plain mean. ``products`` holds metrics that multiply two others, such as Mul = pass@5 * mut@5.
    """

    kind: str
    """"code" or "test"."""
    label: str
    """Name of the model in tables."""
    settings: Mapping[str, Any]
    """The settings of sampling and judging."""
    source_of: Mapping[str, str]
    """Data source of each question."""
    parts: Mapping[str, Mapping[str, Pair]]
    """Metric -> question -> (numerator, denominator). A metric may lack some questions."""
    products: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Metric -> the two metrics that it multiplies."""
    counts: Mapping[str, Any] = field(default_factory=dict)
    """Reason -> number of questions or samples left out; benchmark -> command that judges its programs."""

    def save(self, folder: Path) -> None:
        """Write ``results.json`` into the folder."""
        write_whole(folder / RESULTS, json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Results":
        """Read ``results.json`` of a folder. Raises InputError if the file is missing or damaged."""
        path = folder / RESULTS
        try:
            return cls(**json.loads(path.read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"{folder} holds no finished evaluation ({path.name}: {error}); name a folder that was the --output of "
                "`code-a1 eval code` or `code-a1 eval test`"
            ) from error

    @property
    def num_lost(self) -> int:
        """Number of responses that outages left without a verdict."""
        return sum(number for name, number in self.counts.items() if name.endswith(LOST))

    @property
    def groups(self) -> list[tuple[str, list[str]]]:
        """Data sources with their questions, and a last group "all" if there are several sources."""
        questions_of = defaultdict(list)
        for name, source in self.source_of.items():
            questions_of[source].append(name)
        groups = list(questions_of.items())
        if len(groups) > 1:
            groups.append(("all", list(self.source_of)))
        return groups

    @property
    def metrics(self) -> list[str]:
        """Names of all metrics, products last."""
        return [*self.parts, *self.products]

    def questions(self, metric: str, among: Iterable[str]) -> list[str]:
        """List the questions that have the metric. For a product, a question must have both factors."""
        for factor in self._factors(metric):
            measured = self.parts.get(factor, {})
            among = [name for name in among if name in measured]
        return list(among)

    def columns(self, metric: str, questions: Sequence[str]) -> list[tuple[float, ...]]:
        """Return a column of numerators and a column of denominators. A product has both columns for each factor."""
        columns: list[tuple[float, ...]] = []
        for factor in self._factors(metric):
            pairs = [self.parts[factor][name] for name in questions]
            columns += zip(*pairs, strict=True)
        return columns

    def estimate(self, metric: str, questions: Sequence[str]) -> Estimate:
        """Estimate the metric with its interval. The value is NaN if no question counts."""
        return bootstrap(*self.columns(metric, questions), statistic=product_of_ratios)

    def _factors(self, metric: str) -> tuple[str, ...]:
        return self.products.get(metric, (metric,))


def product_of_ratios(*columns: Array) -> Any:
    """Return ``sum(columns[0]) / sum(columns[1])``, for four columns times ``sum(columns[2]) / sum(columns[3])``.

    In a product, an undefined ratio counts as 0. So Mul is 0 if no function passes the baseline of ``mut@k``.
    """
    ratio = ratio_of_sums(*columns[:2])
    if len(columns) == 2:
        return ratio
    other = ratio_of_sums(*columns[2:])
    return np.nan_to_num(ratio) * np.nan_to_num(other)


def results_table(results: Results) -> Table:
    """Make a table with a row for each metric and a column for each of ``results.groups``."""
    rows = []
    samples = results.settings.get("samples", 1)
    for metric in results.metrics:
        row = {"metric": metric}
        if metric == "pass@1" and samples > 1:
            row["metric"] += f" (avg@{samples})"
        for source, questions in results.groups:
            counted = results.questions(metric, questions)
            cell = results.estimate(metric, counted).text()
            if 0 < len(counted) < len(questions):
                cell += f" of {len(counted)}"
            row[f"{source} ({len(questions)})"] = cell
        rows.append(row)
    note = "Percent, with 95 % bootstrap intervals over questions; [?]: too few questions for an interval."
    counts = [f"{name}: {value}" for name, value in results.counts.items()]
    if counts:
        note += f" {'; '.join(counts)}."
    return table_of(results.label, rows, note=note)


def comparison_table(first: Results, second: Results) -> Table:
    """Compare two evaluations on the questions that count in both. A difference is second minus first.

    The row of a product keeps all shared questions, because the two factors of a product count different questions.

    Raises:
        InputError: the evaluations are of different kinds, or share no question and metric.
    """
    if first.kind != second.kind:
        raise InputError(
            f"an evaluation of a {first.kind} LLM cannot be compared with one of a {second.kind} LLM; compare two of "
            "the same kind"
        )
    label = second.label if second.label != first.label else f"{second.label} (second)"
    rows = []
    for metric, (source, questions) in itertools.product(first.metrics, first.groups):
        shared = _shared(metric, questions, first, second)
        if shared:
            columns = second.columns(metric, shared) + first.columns(metric, shared)
            difference = bootstrap(*columns, statistic=_difference)
            settled = "yes" if difference.excludes_zero else "no"
            if len(shared) < MIN_QUESTIONS:
                settled = "too few"
            row = {
                "metric": metric,
                "questions of": f"{source} ({len(shared)})",
                first.label: first.estimate(metric, shared).text(),
                label: second.estimate(metric, shared).text(),
                "difference": difference.text(signed=True),
                "settled": settled,
            }
            rows.append(row)
    if not rows:
        raise InputError("the two evaluations share no question and metric; compare evaluations of the same file")
    note = (
        "Percent, with 95 % intervals by paired bootstrap over questions. A difference is settled if at least "
        f"{MIN_QUESTIONS} questions count and its interval excludes zero."
    )
    differing = []
    for name in sorted({*first.settings, *second.settings} - {"model"}):
        if first.settings.get(name) != second.settings.get(name):
            differing.append(name)
    if differing:
        note += f" Settings that differ: {', '.join(differing)}."
    return table_of(f"{label} against {first.label}", rows, note=note)


def _difference(*columns: Array) -> Any:
    """Compute the metric from each half of the columns, and return the first metric minus the second."""
    half = len(columns) // 2
    return product_of_ratios(*columns[:half]) - product_of_ratios(*columns[half:])


def _shared(metric: str, questions: Sequence[str], first: Results, second: Results) -> list[str]:
    """List the questions that have the metric in both evaluations.

    A question must also count in both evaluations, unless the metric is a product.
    """
    shared = second.questions(metric, first.questions(metric, questions))
    if metric in first.products:
        return shared
    counted = []
    for name in shared:
        (_, denominator), (_, other) = first.parts[metric][name], second.parts[metric][name]
        if denominator and other:
            counted.append(name)
    return counted
