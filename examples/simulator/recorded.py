"""Measured steps of a run folder: what was asked for, and when what had happened."""

from __future__ import annotations

import hashlib
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from code_a1_recipe.errors import InputError
from code_a1_recipe.runs.reader import RunRecords, read_rollouts
from code_a1_recipe.runs.rollout_record import HiddenTestsRecord, RolloutRecord, SuiteRecord
from sandbox import SuiteVerdict

from .blocks import SimulationError
from .simulator import BARRIER, POLICIES, STREAMING, Layout
from .workload import Generation, Program, StepWork

FIRST_STEP = 2
"""Steps before it hold what happens once: processes warm up, caches fill."""
_CHECKPOINT = "timing_s/save_checkpoint"
"""The one timer inside verl's step that not every step has; validation follows the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """Seconds since the step's start, and durations."""

    work: StepWork
    written: tuple[float, ...]
    """Of each program, by question and number: its client has it."""
    tested: tuple[float, ...]
    """Of each program with suites: its last suite is there."""
    judged: tuple[float, ...]
    """Of each judged program."""
    episodes: float
    updates: Mapping[str, float]
    """By policy, of those that updated."""
    sync: float
    other: float
    """What no timer covers."""
    seconds: float
    """The whole step without its checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    name: str
    mode: str
    layout: Layout
    config: Mapping[str, Any]
    """``resolved_config.yaml``."""
    steps: tuple[MeasuredStep, ...]

    def median(self, part: str) -> float:
        """Of a duration over steps: "seconds" or "episodes"."""
        return statistics.median(float(getattr(step, part)) for step in self.steps)


def read_run(folder: Path, *, first_step: int = FIRST_STEP) -> MeasuredRun:
    """All steps of a run from ``first_step`` on.

    Steps with an outage, or whose rollouts lack times, are left out.

    Raises:
        SimulationError: the folder holds no run, or no step that can be used.
    """
    try:
        run = RunRecords.open(folder)
        config, layout = run.config, _layout(run.config)
        rows = {row["step"]: row for row in run.metrics}
        found = [
            _step(config, layout, rows[step], list(read_rollouts(run.paths.rollout_file(step, validation=False))))
            for step in sorted(rows)
            if step >= first_step and "timing_s/step" in rows[step]
        ]
        usable = tuple(step for step in found if step is not None)
        barrier = config["episode"].get("barrier", False)
    except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise SimulationError(f"{folder} cannot be read as a run folder: {type(error).__name__}: {error}") from error
    if not usable:
        raise SimulationError(
            f"{folder} has no step from {first_step} on with times in its rollouts; train a few steps more with this "
            "version of the recipe, or leave the run out"
        )
    return MeasuredRun(
        name=folder.name, mode=BARRIER if barrier else STREAMING, layout=layout, config=config, steps=usable
    )


def _layout(config: Mapping[str, Any]) -> Layout:
    if config.get("layout", "colocated") == "separate":
        return Layout.separate(*(_devices(config["pools"][policy]) for policy in POLICIES))
    return Layout.colocated(_devices(config["trainer"]))


def _devices(block: Mapping[str, Any]) -> int:
    return int(block["n_gpus_per_node"] * block["nnodes"])


def _step(
    config: Mapping[str, Any], layout: Layout, metrics: Mapping[str, Any], records: Sequence[RolloutRecord]
) -> MeasuredStep | None:
    programs = sorted(
        (record for record in records if record.kind == "sampled"), key=lambda record: (record.index, record.candidate)
    )
    written = [record.span[1] for record in programs if record.span is not None and not record.outage]
    if not programs or len(written) < len(programs):
        return None
    durations = {name: metrics.get(f"timing_s/update_{name}") for name in POLICIES}
    updates = {name: seconds for name, seconds in durations.items() if seconds is not None}
    episodes, sync = metrics["timing_s/episodes"], metrics.get("timing_s/update_weights") or 0.0
    seconds = metrics["timing_s/step"] - (metrics.get(_CHECKPOINT) or 0.0)
    return MeasuredStep(
        work=_work(config, programs),
        written=tuple(written),
        tested=tuple(max(suite.span[1] for suite in one.suites if suite.span) for one in programs if one.suites),
        judged=tuple(record.judge_span[1] for record in programs if record.judge_span),
        episodes=episodes,
        updates=updates,
        sync=sync,
        other=max(0.0, seconds - episodes - layout.joined(updates.values()) - sync),
        seconds=seconds,
    )


def _work(config: Mapping[str, Any], records: Sequence[RolloutRecord]) -> StepWork:
    by_question: dict[int, list[RolloutRecord]] = defaultdict(list)
    for record in records:
        by_question[record.index].append(record)
    return StepWork(
        questions=tuple(tuple(map(_program, programs)) for programs in by_question.values()),
        judges=tuple(judge_number(programs[0].question) for programs in by_question.values()),
        mini_batch_groups=config["actor_rollout_ref"]["actor"]["ppo_mini_batch_size"],
    )


def judge_number(question_id: str) -> int:
    """As ``judge_actors.JudgePool`` spreads questions over judges."""
    digest = hashlib.sha256(question_id.encode()).digest()
    return int.from_bytes(digest[:8], "big")


def _program(record: RolloutRecord) -> Program:
    # A duplicate is recorded with the hidden tests of the program it was judged as, and asked for neither.
    is_judged = record.judge_span is not None
    return Program(
        written=_generation(record),
        suites=tuple(map(_generation, record.suites)),
        judged=_num_judged(record) if is_judged else None,
        hidden=_num_cases(record.hidden_tests) if is_judged else None,
        pooled=_num_cases(record.pooled_tests),
        trains_test=record.selected,
    )


def _generation(record: RolloutRecord | SuiteRecord) -> Generation:
    return Generation(prompt_tokens=max(1, record.prompt_tokens), response_tokens=max(1, record.response_tokens))


def _num_judged(record: RolloutRecord) -> int:
    """Asserts that the program met in its verdict: suites, given tests and replays."""
    replayed = record.verdict.history if record.verdict is not None else ()
    blocks = [*(suite.verdict for suite in record.suites), record.given_tests]
    return len(replayed) + sum(_num_cases(block) or 0 for block in blocks)


def _num_cases(tests: SuiteVerdict | HiddenTestsRecord | None) -> int | None:
    """None where the program was not judged on these tests."""
    return None if tests is None else tests.num_valid
