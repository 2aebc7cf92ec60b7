"""Measures the runs of an experiment, and stores the results in a small file that can be kept without the runs."""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import msgspec

from code_a1_recipe.errors import InputError
from code_a1_recipe.files import portable, write_whole
from code_a1_recipe.runs.console import PHASES, UPDATES
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.runs.rollout_record import RolloutRecord
from code_a1_recipe.tools.report.measures import MEASURES, by_source, measures_of
from code_a1_recipe.tools.report.report import command_of

from .grid import EXPERIMENT_FILE, FINISHED, Experiment
from .measures import SPLIT_MEASURES, TRAINING_MEASURES, split_kills, training_measures
from .recorded import Kinds, detection_rates, read_kinds

RESULTS_FILE = "results.json"
ALL_MEASURES: dict[str, str] = {
    **MEASURES,
    **SPLIT_MEASURES,
    "narrow_detected": "Test LLM, recorded narrow programs that a case of their suites breaks",
    "wide_detected": "Test LLM, recorded wide programs that a case of their suites breaks",
    "loaded_rate": "Code LLM, held-out programs that were extracted and loaded",
    "expected_correct_rate": "Test LLM, cases for held-out programs whose expected output is correct",
    "broke_candidate_rate": "Test LLM, suites for held-out programs with a valid case that the program fails",
    "product": "Test LLM, validity times kill rate of suites (after the paper's Mul, a product of two rates)",
    **TRAINING_MEASURES,
    "seconds_per_step": "median seconds of a step; lower is better",
}
"""Name -> label of all measures, in the order of the tables."""
STEP_PARTS = ("episodes", *PHASES, "other")
"""Parts of a step's wall time. Their metrics are named ``time_frac/<part>``."""
FROM_METRICS = {
    "loaded_rate": "val/code/loaded_rate",
    "expected_correct_rate": "val/test/expected_correct_rate",
    "broke_candidate_rate": "val/test/broke_candidate_rate",
}
"""Measure -> name of the validation metric that has its value."""
LAST_STEPS = 10
"""Number of last training steps on which rewards and suites are measured."""
FORMAT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The measures of one validation."""

    step: int
    seconds: float
    """Wall seconds of training before this validation, without the time of other validations."""
    measures: Mapping[str, float]
    """Measures on held-out questions, and ``TRAINING_MEASURES`` of the training before this validation."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One finished run."""

    validations: tuple[Validation, ...]
    steps: int
    models: tuple[str, ...]
    """Paths of the models from which the policies started."""
    training: Mapping[str, float]
    """``TRAINING_MEASURES`` and ``seconds_per_step``; measures without data are left out."""
    parts: Mapping[str, float]
    """Part in ``STEP_PARTS`` -> mean seconds of the part in a step."""
    wall_seconds: float | None
    """Time of the whole process, including its start and validations."""

    @cached_property
    def final(self) -> dict[str, float]:
        """All measures at the end of the run. Measures on held-out questions need a validation at the last step."""
        measures = {}
        if self.validations and self.validations[-1].step >= self.steps:
            measures = dict(self.validations[-1].measures)
        return measures | dict(self.training)

    def at(self, step: int) -> Mapping[str, float]:
        """Return the measures of the validation at a step; empty without a validation at this step."""
        if step == self.steps > 0:
            return self.final
        for validation in self.validations:
            if validation.step == step:
                return validation.measures
        return {}

    @property
    def seconds(self) -> float:
        """Seconds of training up to the last validation."""
        return self.validations[-1].seconds if self.validations else 0.0

    def after(self, seconds: float, measure: str) -> float | None:
        """Interpolate a measure linearly between validations, at the given seconds of training.

        The result is None if the last validation was earlier, or if the run lacks the measure.
        """
        points = [(validation.seconds, validation.measures.get(measure)) for validation in self.validations]
        for (before, low), (then, high) in pairwise(points):
            if before <= seconds <= then and low is not None and high is not None:
                share = (seconds - before) / (then - before) if then > before else 1.0
                return low + share * (high - low)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Finished runs of an experiment, in the form of ``RESULTS_FILE``."""

    format: int = FORMAT
    commands: tuple[str, ...] = ()
    """For each arm, the command of its first run and the versions of the packages."""
    runs: Mapping[str, Mapping[int, RunResult]]
    """Arm -> seed -> result. The arms are in the order of the experiment's file."""


def measure_experiment(folder: Path) -> Results:
    """Measure the finished runs in an experiment's folder.

    Raises:
        InputError: no run is finished, or a file of a run cannot be read.
    """
    experiment = Experiment.load(folder / EXPERIMENT_FILE)
    runs: dict[str, dict[int, RunResult]] = {}
    commands = []
    for arm in experiment.arms:
        for seed in experiment.seeds:
            run_folder = folder / arm / f"seed{seed}"
            if not (run_folder / FINISHED).is_file():
                continue
            run = RunRecords.open(run_folder)
            if arm not in runs:
                commands.append(command_of(run))
            runs.setdefault(arm, {})[seed] = measure_run(run)
    if not runs:
        raise InputError(
            f"{folder} holds no finished run of an experiment (<arm>/seed<n>/{FINISHED}); "
            "`code-a1 report` makes the report of a single run"
        )
    return Results(runs=runs, commands=tuple(commands))


def measure_run(run: RunRecords) -> RunResult:
    """Measure a run from its records.

    Raises:
        InputError: a file of the run cannot be read.
    """
    steps = [row for row in run.metrics if row["step"] > 0 and row.get("timing_s/step") is not None]
    records = {step: run.training(step) for step in run.training_steps}
    metrics = {row["step"]: row for row in run.metrics}
    kinds = read_kinds(run)
    validations = []
    for step in run.validation_steps:
        row = metrics.get(step, {})
        measures = _held_out(run.validation(step), kinds)
        measures |= {name: row[key] for name, key in FROM_METRICS.items() if key in row}
        measures |= training_measures(records, end=step, last=LAST_STEPS)
        seconds = round(sum(row["timing_s/step"] for row in steps if row["step"] <= step), 2)
        validations.append(Validation(step=step, seconds=seconds, measures=measures))
    training = training_measures(records, end=max(records, default=0), last=LAST_STEPS)
    if steps:
        training["seconds_per_step"] = statistics.median(row["timing_s/step"] for row in steps)
    policies = sorted((run.config.get("policies") or {}).items())
    return RunResult(
        validations=tuple(validations),
        steps=max((row["step"] for row in steps), default=0),
        models=tuple(portable(str(policy["model"]["path"])) for _, policy in policies),
        training=training,
        parts=_seconds_by_part(steps, at_once=run.config.get("layout") == "separate"),
        wall_seconds=_wall_seconds(run.folder / FINISHED),
    )


def _seconds_by_part(steps: Sequence[Mapping[str, float]], *, at_once: bool) -> dict[str, float]:
    """Compute the mean seconds of each part of a step.

    If both updates run at the same time (``at_once``), only the longer update counts.
    """
    parts = {}
    for part in STEP_PARTS:
        seconds = []
        for row in steps:
            share = row.get(f"time_frac/{part}") or 0.0
            seconds.append(row["timing_s/step"] * share)
        if any(seconds):
            parts[part] = round(statistics.fmean(seconds), 4)
    if at_once and all(name in parts for name in UPDATES):
        del parts[min(UPDATES, key=lambda name: parts[name])]
    return parts


def _wall_seconds(finished: Path) -> float | None:
    if not finished.is_file():
        return None
    try:
        seconds = json.loads(finished.read_text(encoding="utf-8"))["wall_seconds"]
        return None if seconds is None or not math.isfinite(seconds) else float(seconds)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{finished} cannot be read: {error!r}; remove this file and repeat `run`") from error


def _held_out(records: Sequence[RolloutRecord], kinds: Kinds) -> dict[str, float]:
    """Compute the measures of a validation as means over its held-out questions.

    Names without the addition ``on <source>`` belong to the first ``data_source``. Other sources have only ``pass@1 on
    <source>`` and ``greedy on <source>``.
    """
    found: dict[str, float] = detection_rates(records, kinds)
    for number, (source, of_source) in enumerate(by_source(records).items()):
        for name, values in (measures_of(of_source) | split_kills(of_source)).items():
            if number == 0:
                found[name] = statistics.fmean(values.values())
            elif name in ("pass@1", "greedy"):
                found[f"{name} on {source}"] = statistics.fmean(values.values())
    if "kill" in found:
        found["product"] = found["valid"] * found["kill"]
    return found


def save_results(results: Results, path: Path) -> None:
    """Write the results as a JSON file."""
    write_whole(path, json.dumps(asdict(results), indent=1, allow_nan=False) + "\n")


def load_results(path: Path) -> Results:
    """Read a file of :func:`save_results`.

    Raises:
        InputError: the file cannot be read, or has other content.
    """
    try:
        results = msgspec.json.decode(path.read_bytes(), type=Results)
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise InputError(
            f"{path} holds no results of an experiment: {error}; name the folder of an experiment, or its results.json"
        ) from error
    if results.format != FORMAT or not results.runs or not all(results.runs.values()):
        raise InputError(
            f"{path} must hold runs of every arm in format {FORMAT}, got format {results.format!r} and "
            f"{len(results.runs)} arms; write the file anew with `python -m studies.experiment report EXPERIMENT`"
        )
    return results
