"""The results file of the experiment: JSON lines that are appended while runs go on, and the reader of these lines.

A run that was cut keeps its rows. It counts as complete only if its last row says so.
"""

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from code_a1_recipe.errors import InputError
from code_a1_recipe.files import write_whole
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.tools.report.measures import measures_of

STEP_METRICS = (
    "timing_s/step",
    "code/reward",
    "code/pass@1",
    "code/reward_false_positive_rate",
    "code/extraction_failure_rate",
    "code/truncated_rate",
    "test/reward",
    "test/valid",
    "test/adv",
    "test/broke_candidate_rate",
    "test/expected_correct_rate",
    "test/distinct_call_rate",
    "test/extraction_failure_rate",
    "book/cases",
    "book/replayed",
    "judge/outages",
    "time_frac/episodes",
    "time_frac/update_code",
    "time_frac/update_test",
    "time_frac/update_weights",
    "time_frac/exposed_judging",
    *(
        f"{policy}/{name}"
        for policy in ("code", "test")
        for name in (
            "actor/grad_norm",
            "actor/pg_clipfrac",
            "actor/ppo_kl",
            "actor/entropy",
            "actor/lr",
            "rollout_probs_diff_mean",
            "response_length/mean",
            "perf/max_memory_allocated_gb",
        )
    ),
)
"""Metrics that a step's row keeps, as far as the run has them."""
DIGITS = 5


class Started(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """The start of a run. ``run`` is its id, which all of its rows have."""

    run: str
    seed: int
    arm: str
    time: str
    commit: str
    machine: str
    questions: str
    """Fingerprint of the files of questions."""
    settings: tuple[str, ...]


class Step(msgspec.Struct, frozen=True, kw_only=True, tag="step"):
    run: str
    step: int
    metrics: dict[str, float]


class Validation(msgspec.Struct, frozen=True, kw_only=True, tag="validation"):
    """Measures of a validation by question: measure -> question id -> mean of the question's samples."""

    run: str
    step: int
    measures: dict[str, dict[str, float]]


class Benchmark(msgspec.Struct, frozen=True, kw_only=True, tag="benchmark"):
    """The figures of a public benchmark at the end of a run."""

    run: str
    name: str
    figures: dict[str, float]


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """The end of a run. ``why`` says what cut it; empty if it is complete."""

    run: str
    why: str
    minutes: float


Row = Started | Step | Validation | Benchmark | Ended


@dataclass
class RunRows:
    """All rows of one run."""

    started: Started
    steps: dict[int, Step] = field(default_factory=dict)
    validations: dict[int, Validation] = field(default_factory=dict)
    benchmarks: dict[str, Benchmark] = field(default_factory=dict)
    ended: Ended | None = None

    @property
    def is_complete(self) -> bool:
        return self.ended is not None and not self.ended.why

    @property
    def state(self) -> str:
        """ "complete", or "cut after step N" with the reason."""
        if self.is_complete:
            return "complete"
        why = f": {self.ended.why}" if self.ended else ""
        return f"cut after step {max(self.steps, default=0)}{why}"

    def measure(self, name: str, step: int) -> dict[str, float]:
        """Return a measure of the validation at ``step`` by question; empty without this validation.

        ``mul`` is validity times kill rate of a question's suites, after the paper's product of two rates.
        """
        validation = self.validations.get(step)
        if validation is None:
            return {}
        if name == "mul":
            valid, kill = validation.measures.get("valid", {}), validation.measures.get("kill", {})
            return {question: valid[question] * kill[question] for question in valid if question in kill}
        return validation.measures.get(name, {})


def read_rows(path: Path) -> list[RunRows]:
    """Read the runs of a results file in the order of their starts. A missing file has no runs.

    A last line without its end is left out, because the machine may have gone away while it was written.

    Raises:
        InputError: a line is no row, or belongs to a run that did not start.
    """
    runs: dict[str, RunRows] = {}
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Row)
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            break
        try:
            row: Row = decoder.decode(line)
            if isinstance(row, Started):
                runs[row.run] = RunRows(row)
            else:
                _add(runs[row.run], row)
        except (msgspec.MsgspecError, KeyError) as error:
            raise InputError(
                f"{path}, line {number} is no row of this experiment: {error!r}; restore the file"
            ) from error
    return list(runs.values())


def _add(run: RunRows, row: Step | Validation | Benchmark | Ended) -> None:
    match row:
        case Step():
            run.steps[row.step] = row
        case Validation():
            run.validations[row.step] = row
        case Benchmark():
            run.benchmarks[row.name] = row
        case Ended():
            run.ended = row


def append_rows(path: Path, rows: Iterable[Row]) -> None:
    """Append whole lines. A line that an earlier process left without its end is removed first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_bytes() if path.is_file() else b""
    if not before.endswith(b"\n") and before:
        write_whole(path, before[: before.rfind(b"\n") + 1])
    with path.open("ab") as file:
        file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)


class Recorder:
    """Turns what a run has written so far into rows, each once."""

    def __init__(self, run: str, folder: Path) -> None:
        self.run, self.folder = run, folder
        self._steps: set[int] = set()
        self._validations: set[int] = set()

    def new_rows(self) -> Iterator[Row]:
        """Yield the rows of the steps and validations that were finished since the last call."""
        try:
            records = RunRecords.open(self.folder)
        except InputError:
            return  # the run has not finished a step yet
        for row in records.metrics:
            step = row["step"]
            metrics = {name: round(row[name], DIGITS) for name in STEP_METRICS if name in row}
            if step > 0 and step not in self._steps and "timing_s/step" in metrics:
                self._steps.add(step)
                yield Step(run=self.run, step=step, metrics=metrics)
            # A validation's metrics are written after its records, so the file of records is whole.
            if step not in self._validations and any(name.startswith("val/") for name in row):
                self._validations.add(step)
                measures = measures_of(records.validation(step))
                yield Validation(run=self.run, step=step, measures=_rounded(measures))


def _rounded(measures: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {
        name: {question: round(value, DIGITS) for question, value in by_question.items()}
        for name, by_question in measures.items()
    }


def mean_by_question(runs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Average a measure over runs, question by question. Questions that a run lacks are left out."""
    values = list(runs)
    shared = set.intersection(*(set(run) for run in values)) if values else set()
    return {question: statistics.fmean(run[question] for run in values) for question in sorted(shared)}
