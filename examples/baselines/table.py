"""What one tester reached, as a small file, and the table of several."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from code_a1_recipe.data.reader import read_rows
from code_a1_recipe.errors import InputError
from code_a1_recipe.evaluation.results import Results
from code_a1_recipe.files import write_whole
from code_a1_recipe.stats.estimates import bootstrap, ratio_of_sums
from code_a1_recipe.stats.tables import Table, table_of

METRICS = {
    "pass@5": "correct asserts",
    "line_cov@5": "lines",
    "branch_cov@5": "branches",
    "mut_right_only@5": "mutants killed",
}
"""Metrics of `code-a1 eval test` that the table shows, with its words."""
DETECTED = {"by_calls": "by its calls", "by_attack": "by attack"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One tester on the three subsets."""

    tester: str
    cpu_seconds: float | None
    """Of one suite, the mean; None where nothing was counted."""
    functions: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    """Metric -> function -> numerator and denominator."""
    detected: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Subset -> rows of ``detect.Detection``."""


def make_record(
    tester: str, *, evaluated: Path | None, detected: Sequence[Path], written: Sequence[Path], cpu_seconds: float | None
) -> Record:
    """Collect what the commands wrote.

    Args:
        tester: its name in the table.
        evaluated: --output of ``code-a1 eval test``.
        detected: outputs of ``detect``, each named after its subset.
        written: outputs of ``write``, whose seconds count.
        cpu_seconds: of a suite, where there is no such file.

    Raises:
        InputError: a file is not what it should be.
    """
    parts = Results.load(evaluated).parts if evaluated else {}
    rows = [row for path in written for row in read_rows(path)]
    used = [float(row["cpu_seconds"]) / len(row["responses"]) for row in rows if row.get("cpu_seconds")]
    return Record(
        tester=tester,
        cpu_seconds=round(sum(used) / len(used), 2) if used else cpu_seconds,
        functions={name: parts[name] for name in METRICS if name in parts},
        detected={path.stem: _read(path, "rows") for path in detected},
    )


def save(record: Record, path: Path) -> None:
    """Write it, a function or program a line."""
    write_whole(path, json.dumps(asdict(record), indent=None).replace('}, {"question"', '},\n {"question"') + "\n")


def load(path: Path) -> Record:
    """Raises InputError where the file is no record."""
    return Record(**{name: _read(path, name) for name in ("tester", "cpu_seconds", "functions", "detected")})


def _read(path: Path, name: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))[name]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} must be JSON with {name!r}, got {type(error).__name__}: {error}; name a file that "
            "`python -m examples.baselines` wrote"
        ) from error


def table_of_records(records: Sequence[Record]) -> Table:
    """One row a tester; percent with the 95 % bootstrap interval over functions or programs."""
    rows = []
    for one in records:
        row = {"tester": one.tester, "CPU s": "" if one.cpu_seconds is None else f"{one.cpu_seconds:.1f}"}
        for metric, label in METRICS.items():
            if pairs := list(one.functions.get(metric, {}).values()):
                columns = [[float(pair[place]) for pair in pairs] for place in (0, 1)]
                row[f"{label} ({len(pairs)})"] = bootstrap(*columns, statistic=ratio_of_sums).text()
        for subset, found in one.detected.items():
            for name, label in DETECTED.items():
                if all(program[name] is not None for program in found):
                    values = [float(program[name]) for program in found]
                    row[f"{subset} {label} ({len(found)})"] = bootstrap(values).text()
        rows.append(row)
    return table_of("", rows)
