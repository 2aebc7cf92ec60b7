"""What a finished run comes to, small enough to keep when its folder is gone."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import msgspec

from code_a1_recipe.analysis.measures import MEASURES, by_source, measures_of
from code_a1_recipe.errors import InputError
from code_a1_recipe.files import portable, write_whole
from code_a1_recipe.runs.console import PHASES, UPDATES
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.runs.rollout_record import RolloutRecord

from .measures import SPLIT_MEASURES, TRAINING_MEASURES, split_kills, training_measures

RESULTS_FILE = "results.json"
ALL_MEASURES: dict[str, str] = {
    **MEASURES,
    **SPLIT_MEASURES,
    "loaded_rate": "Code LLM, held-out programs that were extracted and loaded",
    "expected_correct_rate": "Test LLM, cases for held-out programs whose expected value is right",
    "broke_candidate_rate": "Test LLM, suites for held-out programs with a valid case that the program fails",
    "product": "Test LLM, validity times kill rate of suites (after the paper's Mul, a product of two rates)",
    **TRAINING_MEASURES,
    "seconds_per_step": "median seconds a step; lower is better",
}
STEP_PARTS = ("episodes", *PHASES, "other")
"""Of a step's wall time; ``timing_s/<part>`` in the metrics. Of two updates at the same time the longer one counts."""
_FROM_METRICS = {
    "loaded_rate": "val/code/loaded_rate",
    "expected_correct_rate": "val/test/expected_correct_rate",
    "broke_candidate_rate": "val/test/broke_candidate_rate",
}
"""Measure -> the metric of the same validation, over the policies' own programs and suites."""
_LAST_STEPS = 10
_OF_OTHER_SOURCES = ("pass@1", "greedy")
_FORMAT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    step: int
    seconds: float
    """Wall seconds of training before it; other validations are left out."""
    measures: Mapping[str, float]
    """Over held-out questions, and ``TRAINING_MEASURES`` of the training before it."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One finished run."""

    validations: tuple[Validation, ...]
    steps: int
    models: tuple[str, ...]
    """Where the policies began: the paths of their models."""
    training: Mapping[str, float]
    """``TRAINING_MEASURES`` and ``seconds_per_step``; those that it did not measure are left out."""
    parts: Mapping[str, float]
    """Mean seconds a step by part, for the parts of ``STEP_PARTS``."""
    wall_seconds: float | None
    """Of the whole process, start and validations included."""

    @cached_property
    def final(self) -> dict[str, float]:
        """Every measure at the end of the run, by name; none of held-out questions if it was not validated then."""
        at_end = bool(self.validations) and self.validations[-1].step >= self.steps
        return (dict(self.validations[-1].measures) if at_end else {}) | dict(self.training)

    def at(self, step: int) -> Mapping[str, float]:
        """The measures of one validation; empty where there was none at that step."""
        if step == self.steps > 0:
            return self.final
        return next((found.measures for found in self.validations if found.step == step), {})

    @property
    def seconds(self) -> float:
        """Of training, up to the last validation."""
        return self.validations[-1].seconds if self.validations else 0.0

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
    """Finished runs of an experiment, as they stand in ``RESULTS_FILE``."""

    format: int = _FORMAT
    commands: tuple[str, ...] = ()
    """Of the first run of each arm, with the versions that it ran on."""
    runs: Mapping[str, Mapping[int, RunResult]]
    """By arm and seed; arms in the order of the experiment's file."""


def result_of(run: RunRecords, *, wall_seconds: float | None = None) -> RunResult:
    """Measure a run from its records.

    Raises:
        InputError: a file of it cannot be read.
    """
    steps = [row for row in run.metrics if row["step"] > 0 and row.get("timing_s/step") is not None]
    records = {step: run.training(step) for step in run.training_steps}
    metrics = {row["step"]: row for row in run.metrics}
    validations = tuple(
        Validation(
            step=step,
            seconds=round(sum(row["timing_s/step"] for row in steps if row["step"] <= step), 2),
            measures=_held_out(run.validation(step))
            | {name: row[key] for row in [metrics.get(step, {})] for name, key in _FROM_METRICS.items() if key in row}
            | training_measures(records, end=step, last=_LAST_STEPS),
        )
        for step in run.validation_steps
    )
    training = training_measures(records, end=max(records, default=0), last=_LAST_STEPS)
    if steps:
        training["seconds_per_step"] = statistics.median(row["timing_s/step"] for row in steps)
    parts = {
        part: round(statistics.fmean(row["timing_s/step"] * (row.get(f"time_frac/{part}") or 0.0) for row in steps), 4)
        for part in STEP_PARTS
        if any(row.get(f"time_frac/{part}") for row in steps)
    }
    if run.config.get("layout") == "separate" and all(name in parts for name in UPDATES):
        del parts[min(UPDATES, key=lambda name: parts[name])]
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


def _held_out(records: Sequence[RolloutRecord]) -> dict[str, float]:
    """Means over the held-out questions of a validation.

    Plain names are of the first ``data_source``; of others, ``pass@1 on <source>`` and ``greedy on <source>``.
    """
    found: dict[str, float] = {}
    for number, (source, of_source) in enumerate(by_source(records).items()):
        for name, values in (measures_of(of_source) | split_kills(of_source)).items():
            if number == 0:
                found[name] = statistics.fmean(values.values())
            elif name in _OF_OTHER_SOURCES:
                found[f"{name} on {source}"] = statistics.fmean(values.values())
    if "kill" in found:
        found["product"] = found["valid"] * found["kill"]
    return found


def save_results(results: Results, path: Path) -> None:
    """Write JSON that :func:`load_results` reads."""
    write_whole(path, json.dumps(asdict(results), indent=1, allow_nan=False) + "\n")


def load_results(path: Path) -> Results:
    """Read what :func:`save_results` wrote.

    Raises:
        InputError: it cannot be read, or is something else.
    """
    try:
        content = msgspec.json.decode(path.read_bytes())
        if content["format"] != _FORMAT:
            raise InputError(
                f"{path} has format {content['format']!r}, this version reads {_FORMAT}; make it again with "
                "`python -m examples.experiment report EXPERIMENT`"
            )
        results = msgspec.convert(content, Results, str_keys=True)
    except (OSError, msgspec.MsgspecError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} holds no results of an experiment: {error!r}") from error
    if not results.runs or not all(results.runs.values()):
        raise InputError(f"{path} must hold at least one run of each arm; an arm has none")
    return results
