"""Leave-one-run-out: each run's step predicted with rates from the other runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .blocks import SimulationError
from .calibration import calibrate, predict
from .recorded import MeasuredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Medians over a run's steps, in seconds."""

    run: MeasuredRun
    predicted_step: float
    predicted_episodes: float

    @property
    def step_error(self) -> float:
        """Relative: positive where the prediction is too slow."""
        return self.predicted_step / self.run.median("seconds") - 1

    @property
    def episodes_error(self) -> float:
        """The same of the episodes."""
        return self.predicted_episodes / self.run.median("episodes") - 1


def check(runs: Sequence[MeasuredRun], *, cores: float | None = None) -> Iterator[Checked]:
    """One after another, since each takes a calibration.

    The run that is predicted gives only its workload: programs, suites and their lengths.

    Raises:
        SimulationError: fewer than two runs.
    """
    if len(runs) < 2:
        raise SimulationError(f"a check needs at least 2 runs, one to predict and one to calibrate on; got {len(runs)}")
    for run in runs:
        predictions = predict(calibrate([other for other in runs if other is not run], cores=cores), run)
        yield Checked(
            run=run,
            predicted_step=statistics.median(one.seconds for one in predictions),
            predicted_episodes=statistics.median(one.episodes for one in predictions),
        )


def check_rows(checked: Sequence[Checked]) -> Iterator[list[str]]:
    """A table; the first row is its head."""
    yield ["run", "mode", "Q", "C", "S", "steps", *_columns("step"), *_columns("episodes")]
    for one in checked:
        config = one.run.config
        sizes = (config["data"]["train_batch_size"], *(config["episode"][f"num_{n}"] for n in ("candidates", "suites")))
        yield [
            one.run.name,
            one.run.mode,
            *map(str, sizes),
            str(len(one.run.steps)),
            *_cells(one.predicted_step, one.run.median("seconds"), one.step_error),
            *_cells(one.predicted_episodes, one.run.median("episodes"), one.episodes_error),
        ]


def summary(checked: Sequence[Checked]) -> str:
    """Mean and worst absolute error."""
    return "; ".join(
        f"{part}: mean absolute error {statistics.fmean(map(abs, errors)):.1%}, worst {max(map(abs, errors)):.1%}"
        for part, errors in (
            ("step", [one.step_error for one in checked]),
            ("episodes", [one.episodes_error for one in checked]),
        )
    )


def _columns(part: str) -> list[str]:
    return [f"{part} predicted", "measured", "error"]


def _cells(predicted: float, measured: float, error: float) -> list[str]:
    return [f"{predicted:.2f}", f"{measured:.2f}", f"{error:+.1%}"]
