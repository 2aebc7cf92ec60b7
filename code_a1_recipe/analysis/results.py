"""What a finished run comes to, small enough to keep when its folder is gone."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from .measures import MEASURES, distinct_share, forgetting, measures_of, reward_errors
from .records import Record, RecordsError, RunRecords

RESULTS_FILE = "results.json"
PRODUCT, DISTINCT, FOOLED, MISSED, SECONDS = "product", "distinct", "fooled", "missed", "seconds_per_step"
FORGOTTEN, BY_CHANCE = "forgotten", "forgotten_by_chance"
ALL_MEASURES: dict[str, str] = {
    **MEASURES,
    PRODUCT: "Test LLM, validity times kill rate (the paper's Mul)",
    DISTINCT: "Test LLM, distinct calls among those of all suites for one program, in the last ten steps of training",
    FOOLED: "programs with full reward that fail a hidden test, in the last ten steps of training; lower is better",
    MISSED: "programs that fail a hidden test and have full reward, in those steps; lower is better",
    FORGOTTEN: "training questions once solved and failed at their last visit; lower is better",
    BY_CHANCE: "the same if the visits had come in any order: what looks like forgetting by sampling alone",
    SECONDS: "median seconds a step; lower is better",
}
STEP_PARTS = ("episodes", "update_code", "update_test", "update_weights", "save_checkpoint", "other")
"""Of a step's wall time; ``timing_s/<part>`` in the metrics."""
_LAST_STEPS = 10
_OF_OTHER_SOURCES = ("pass@1", "greedy")
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    step: int
    seconds: float
    """Wall seconds of training before it; other validations are left out."""
    measures: Mapping[str, float]
    """Over held-out questions, but for ``DISTINCT``, ``FOOLED`` and ``MISSED``: the ten steps of training before it."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One finished run."""

    validations: tuple[Validation, ...]
    steps: int = 0
    models: tuple[str, ...] = ()
    """Where the policies began: the paths of their models."""
    training: Mapping[str, float] = field(default_factory=dict)
    """``DISTINCT`` to ``SECONDS``; those that it did not measure are left out."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Mean seconds a step by part, for the parts of ``STEP_PARTS``."""
    wall_seconds: float | None = None
    """Of the whole process, start and validations included."""

    @cached_property
    def final(self) -> dict[str, float]:
        """Every measure at the end of the run, by name."""
        last = dict(self.validations[-1].measures) if self.validations else {}
        return last | dict(self.training)

    def at(self, step: int) -> Mapping[str, float]:
        """The measures of one validation; empty where there was none at that step."""
        return next((found.measures for found in self.validations if found.step == step), {})

    def after(self, seconds: float, measure: str) -> float | None:
        """The measure once training has taken so many seconds, on straight lines between validations.

        None where the run was not validated that late, or did not take the measure.
        """
        points = [(found.seconds, found.measures.get(measure)) for found in self.validations]
        for (before, low), (then, high) in pairwise(points):
            if before <= seconds <= then and low is not None and high is not None:
                share = (seconds - before) / (then - before) if then > before else 1.0
                return low + share * (high - low)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Finished runs of an experiment."""

    runs: Mapping[str, Mapping[int, RunResult]]
    """By arm and seed; arms in the order of the experiment's file."""
    commands: tuple[str, ...] = ()
    """Of the first run of each arm, with the versions that it ran on."""


def result_of(run: RunRecords, *, wall_seconds: float | None = None) -> RunResult:
    """Measure a run from its records.

    Raises:
        RecordsError: a file of it cannot be read.
    """
    steps = [row for row in run.metrics if row["step"] > 0 and row.get("timing_s/step") is not None]
    records = {step: run.training(step) for step in run.training_steps}
    validations = tuple(
        Validation(
            step=step,
            seconds=round(sum(row["timing_s/step"] for row in steps if row["step"] <= step), 2),
            measures=_held_out(run.validation(step)) | _of_last_steps(records, step),
        )
        for step in run.validation_steps
    )
    training = _of_last_steps(records, max(records, default=0))
    if steps:
        training[SECONDS] = statistics.median(row["timing_s/step"] for row in steps)
    if (forgotten := forgetting(list(records.values()))) is not None:
        training |= {FORGOTTEN: forgotten.share, BY_CHANCE: forgotten.by_chance}
    parts = {
        part: round(statistics.fmean(row["timing_s/step"] * (row.get(f"time_share/{part}") or 0.0) for row in steps), 4)
        for part in STEP_PARTS
        if any(row.get(f"time_share/{part}") for row in steps)
    }
    return RunResult(
        validations=validations,
        steps=max((row["step"] for row in steps), default=0),
        models=tuple(
            portable(str(one["model"]["path"])) for _, one in sorted((run.config.get("policies") or {}).items())
        ),
        training=training,
        parts=parts,
        wall_seconds=wall_seconds,
    )


def _of_last_steps(records: Mapping[int, list[Record]], end: int) -> dict[str, float]:
    """What the ten steps of training up to ``end`` say."""
    last = [record for step, of_step in records.items() if end - _LAST_STEPS < step <= end for record in of_step]
    errors = reward_errors(last)
    found = {DISTINCT: distinct_share(last), FOOLED: errors.fooled, MISSED: errors.missed}
    return {name: value for name, value in found.items() if value is not None}


def _held_out(records: list[Record]) -> dict[str, float]:
    """Means over the held-out questions of a validation.

    Plain names are of the first ``data_source``; of others, ``pass@1 on <source>`` and ``greedy on <source>``.
    """
    by_source: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record["index"]):
        by_source.setdefault(record.get("data_source", ""), []).append(record)
    found: dict[str, float] = {}
    for number, (source, of_source) in enumerate(by_source.items()):
        for name, values in measures_of(of_source).items():
            if number == 0:
                found[name] = statistics.fmean(values.values())
            elif name in _OF_OTHER_SOURCES:
                found[f"{name} on {source}"] = statistics.fmean(values.values())
    if "kill" in found:
        found[PRODUCT] = found["valid"] * found["kill"]
    return found


def portable(text: str) -> str:
    """The text with the working folder left out and the home folder as ``~``: results are made to be passed on."""
    for folder, short in ((Path.cwd(), ""), (Path.home(), "~/")):
        if folder != Path(folder.anchor):
            text = text.replace(f"{folder}/", short)
    return text


def save_results(results: Results, path: Path) -> None:
    """Write JSON that :func:`load_results` reads."""
    content: dict[str, Any] = {
        "format": _FORMAT,
        "commands": list(results.commands),
        "runs": {
            arm: {str(seed): asdict(run) for seed, run in sorted(runs.items())} for arm, runs in results.runs.items()
        },
    }
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def load_results(path: Path) -> Results:
    """Read what :func:`save_results` wrote.

    Raises:
        RecordsError: it cannot be read, or is something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise RecordsError(f"{path} has format {content['format']!r}, this version reads {_FORMAT}")
        runs = {
            arm: {int(seed): _run_of(raw) for seed, raw in by_seed.items()} for arm, by_seed in content["runs"].items()
        }
        if not runs or not all(runs.values()):
            raise RecordsError(f"{path} must hold at least one run of each arm; an arm has none")
        return Results(runs=runs, commands=tuple(str(one) for one in content["commands"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, RecordsError):
            raise
        raise RecordsError(f"{path} holds no results of an experiment: {error!r}") from error


def _run_of(raw: Mapping[str, Any]) -> RunResult:
    validations = tuple(
        Validation(step=int(one["step"]), seconds=float(one["seconds"]), measures=_numbers(one["measures"]))
        for one in raw["validations"]
    )
    wall_seconds = raw["wall_seconds"]
    return RunResult(
        validations=validations,
        steps=int(raw["steps"]),
        models=tuple(str(one) for one in raw["models"]),
        training=_numbers(raw["training"]),
        parts=_numbers(raw["parts"]),
        wall_seconds=None if wall_seconds is None else float(wall_seconds),
    )


def _numbers(raw: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in raw.items()}
