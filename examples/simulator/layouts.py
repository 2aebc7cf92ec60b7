"""Layouts and modes side by side, with the best split of the GPUs where the policies have their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .blocks import SimulationError, require
from .rates import Rates
from .simulator import BARRIER, MODES, Layout, StepPrediction, simulate_step
from .workload import StepWork, sample_step

LAYOUTS = ("colocated", "separate")
BASELINE = ("separate", BARRIER)
"""Layout and mode that the others are compared with: two pools and one phase after another, as the paper trains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Predictions for one number of GPUs."""

    predictions: tuple[StepPrediction, ...]
    baseline: StepPrediction | None
    """With ``BASELINE``, also where the table does not show it; None where one GPU allows no split."""

    def ratio(self, prediction: StepPrediction) -> float | None:
        """Steps per GPU-hour over the baseline's."""
        if self.baseline is None:
            return None
        return prediction.steps_per_gpu_hour / self.baseline.steps_per_gpu_hour


def compare(
    rates: Rates,
    *,
    gpus: int,
    layouts: Sequence[str] = LAYOUTS,
    modes: Sequence[str] = MODES,
    code_gpus: int | None = None,
) -> Comparison:
    """Simulate one drawn step in every layout and mode.

    Args:
        code_gpus: GPUs of the Code LLM where each policy has its own; None finds the best split.

    Raises:
        SimulationError: fewer GPUs than a layout needs, or a layout that the machine does not have.
    """
    on_host = rates.machine.servers_on_host
    if layouts == ("separate",) and (on_host or gpus < len(LAYOUTS)):
        reason = "the machine has no GPUs (machine.servers_on_host)" if on_host else f"got {gpus} GPU"
        raise SimulationError(f"layout separate needs a GPU for each policy; {reason}")
    if code_gpus is not None:
        rule = "left out where the machine has none (machine.servers_on_host)"
        require(not on_host, "the Code LLM's GPUs", rule, code_gpus)
        require(
            code_gpus < gpus, "the Code LLM's GPUs", f"fewer than all {gpus}, so that the Test LLM has one", code_gpus
        )
    can_split = gpus >= len(LAYOUTS) and not on_host
    work = sample_step(rates.workload)
    found = {
        (layout, mode): _prediction(rates, work, layout, mode, gpus=gpus, code_gpus=code_gpus)
        for layout in LAYOUTS
        for mode in MODES
        if (can_split or layout == "colocated")
        and ((layout in layouts and mode in modes) or (layout, mode) == BASELINE)
    }
    return Comparison(
        predictions=tuple(one for (layout, mode), one in found.items() if layout in layouts and mode in modes),
        baseline=found.get(BASELINE),
    )


def _prediction(
    rates: Rates, work: StepWork, layout: str, mode: str, *, gpus: int, code_gpus: int | None
) -> StepPrediction:
    if layout == "colocated":
        return simulate_step(rates, work, layout=Layout.colocated(gpus), mode=mode)

    def split(code: int) -> StepPrediction:
        return simulate_step(rates, work, layout=Layout.separate(code, gpus - code), mode=mode)

    return best_split(gpus, split) if code_gpus is None else split(code_gpus)


def best_split(gpus: int, predict: Callable[[int], StepPrediction]) -> StepPrediction:
    """The shortest step over the GPUs of the Code LLM, 1 to ``gpus - 1``.

    All of them up to 15 GPUs. With more, every eighth of them, then downhill from the best so far in ever smaller
    steps: more GPUs for one policy help until the other is the slower one, so one valley is expected.
    """
    distance = max(1, gpus // 8)
    found = {code: predict(code) for code in range(distance, gpus, distance)}
    while True:
        code = min(found, key=lambda one: (found[one].seconds, one))
        near = [one for one in (code - distance, code + distance) if 0 < one < gpus and one not in found]
        if near:
            found |= {one: predict(one) for one in near}
        elif distance == 1:
            return found[code]
        else:
            distance //= 2


def rows(comparison: Comparison) -> Iterator[list[str]]:
    """A table; the first row is its head."""
    yield [
        "layout",
        "mode",
        "GPUs",
        "seconds a step",
        "episodes",
        "updates",
        "sync",
        "other",
        "GPU idle in episodes",
        "steps per GPU-hour",
        f"to {' + '.join(BASELINE)}",
    ]
    for one in comparison.predictions:
        ratio = comparison.ratio(one)
        yield [
            one.layout.name,
            one.mode,
            one.layout.text(),
            *[f"{seconds:.1f}" for seconds in (one.seconds, one.episodes, one.updates, one.sync, one.other)],
            f"{one.idle_frac:.0%}",
            f"{one.steps_per_gpu_hour:.2f}",
            "" if ratio is None else f"{ratio:.2f}",
        ]
