"""The stored values of an evaluation by question, and the tables that are made from them."""

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
"""Ending of the names of counts of responses without a verdict."""
MIN_QUESTIONS = 20
"""Least number of questions for a settled difference: the bootstrap of fewer gives too narrow intervals."""
Pair = tuple[float, float]
PartsByQuestion = dict[str, dict[str, Pair]]
"""Metric -> question -> (numerator, denominator)."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """The results of an evaluation of one model.

    Every metric is ``sum(numerators) / sum(denominators)`` over questions and lies in [0, 1]. With denominators of 1
    that is the plain mean. A metric in ``products`` is the product of two others, such as Mul = pass@5 * mut@5.
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
    """Metric -> question -> (numerator, denominator). A question may be missing from a metric."""
    products: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    """How many questions and samples were left out for which reason, and other totals."""

    def save(self, folder: Path) -> None:
        """Write ``results.json`` into the folder."""
        write_whole(folder / RESULTS, json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Results":
        """Read ``results.json`` of a folder. Raises InputError if it is missing or damaged."""
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
        """Number of responses that have no verdict because of outages."""
        return sum(number for name, number in self.counts.items() if name.endswith(LOST))

    @property
    def groups(self) -> list[tuple[str, list[str]]]:
        """Data sources with their questions. If there are several, the group "all" follows."""
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
        """List the questions that have the metric. For a product they need both factors."""
        for factor in self._factors(metric):
            among = [name for name in among if name in self.parts.get(factor, ())]
        return list(among)

    def columns(self, metric: str, questions: Sequence[str]) -> list[tuple[float, ...]]:
        """Return the numerators and the denominators of ``questions``: two columns, or four for a product."""
        columns: list[tuple[float, ...]] = []
        for factor in self._factors(metric):
            columns += zip(*(self.parts[factor][name] for name in questions), strict=True)
        return columns

    def estimate(self, metric: str, questions: Sequence[str]) -> Estimate:
        """Estimate the metric with its interval; NaN if no question counts."""
        return bootstrap(*self.columns(metric, questions), statistic=product_of_ratios)

    def _factors(self, metric: str) -> tuple[str, ...]:
        return self.products.get(metric, (metric,))


def product_of_ratios(*columns: Array) -> Any:
    """Return ``sum(columns[0]) / sum(columns[1])``, for a product times the same ratio of the next two columns.

    In a product an undefined ratio counts as 0. So Mul is 0 if no function passes the baseline of ``mut@k``.
    """
    ratio = ratio_of_sums(columns[0], columns[1])
    if len(columns) == 2:
        return ratio
    other = ratio_of_sums(columns[2], columns[3])
    return np.nan_to_num(ratio) * np.nan_to_num(other)


def results_table(results: Results) -> Table:
    """Make a table with a row for each metric and a column for each data source, and for all if there are several."""
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
    note = "Percent; in brackets the 95 % bootstrap interval over questions, [?] where too few count for one."
    counts = [f"{name}: {value}" for name, value in results.counts.items()]
    if counts:
        note += f" {'; '.join(counts)}."
    return table_of(results.label, rows, note=note)


def comparison_table(first: Results, second: Results) -> Table:
    """Compare two evaluations on the questions that count in both. The paired difference is second minus first.

    A product keeps all questions that both evaluations have, because its factors count different questions.

    Raises:
        InputError: the evaluations are of different kinds, or share no question and metric.
    """
    if first.kind != second.kind:
        raise InputError(f"an evaluation of a {first.kind} LLM and one of a {second.kind} LLM cannot be compared")
    label = second.label if second.label != first.label else f"{second.label} (second)"
    rows = []
    for metric, (source, questions) in itertools.product(first.metrics, first.groups):
        shared = _shared(metric, questions, first, second)
        if shared:
            columns = (*second.columns(metric, shared), *first.columns(metric, shared))
            change = bootstrap(*columns, statistic=_difference)
            settled = "yes" if change.excludes_zero else "no"
            row = {
                "metric": metric,
                "questions of": f"{source} ({len(shared)})",
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
    """Subtract the statistic of the second half of the columns from the statistic of the first half."""
    half = len(columns) // 2
    return product_of_ratios(*columns[:half]) - product_of_ratios(*columns[half:])


def _shared(metric: str, questions: Sequence[str], first: Results, second: Results) -> list[str]:
    """List the questions that have the metric in both evaluations and, except for a product, count in both."""
    shared = second.questions(metric, first.questions(metric, questions))
    if metric in first.products:
        return shared
    return [name for name in shared if first.parts[metric][name][1] and second.parts[metric][name][1]]
