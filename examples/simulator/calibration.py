"""Rates from measured runs: those with which the simulated steps come closest to the measured ones.

Every recorded step is simulated with its own programs, suites and lengths. Rates of servers, client and judge are
fitted by least squares on when programs were written, tested and judged; updates by least squares on their seconds;
the rest are medians. Only rates are fitted, the same for all runs; nothing is fitted to a single run.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from .blocks import SimulationError
from .rates import Rates, rates_from, read_rates
from .recorded import MeasuredRun, MeasuredStep
from .simulator import POLICIES, StepPrediction, simulate_episodes, simulate_step

Vector = npt.NDArray[np.float64]

# Magnitudes on a CPU: where a fit starts, and where a rate stays that no measured step tells anything about.
_CPU_SERVER = {
    "iteration_seconds": 5e-3,
    "request_seconds": 1e-4,
    "context_token_seconds": 1e-7,
    "prefill_token_seconds": 1e-5,
    "admission_seconds": 1e-3,
    "demand": 1.0,
    "kv_tokens": 10**9,  # tiny models: no limit
    "cache_block_tokens": 128,  # vLLM's default on a CPU
}
_CPU_CLIENT = {"send_seconds": 1e-3, "receive_seconds": 5e-4, "question_seconds": 1e-2}
_CPU_JUDGE = {"question_seconds": 1e-2, "program_seconds": 1e-2, "case_seconds": 5e-4}
_GPU_START = "paper_1.5b"

FITTED = (
    *(
        f"{policy}.server.{name}"
        for policy in POLICIES
        for name, value in _CPU_SERVER.items()
        if isinstance(value, float)
    ),
    *(f"client.{name}" for name in _CPU_CLIENT),
    *(f"judge.{name}" for name in _CPU_JUDGE),
)
"""Keys that are fitted on the times of events, as in a rates file."""

# Steps of one run that a fit of events looks at, the most ordinary ones: each costs a simulation for every change of a
# rate, and more of them repeat what these say.
_STEPS_OF_A_RUN = 3
# Weight of the pull towards the start, in shares of a step's episodes for a rate that doubles.
_PULL = 0.01
# Residuals beyond this share of a step's episodes count less: single steps are disturbed by what else a machine does.
_OUTLIER = 0.05
# Relative changes of a rate for difference quotients, one fit after another: simulated times jump where requests meet
# another iteration, so wide differences find the way and narrow ones the end of it.
_DIFFERENCES = (0.3, 0.05)
# What a fit may multiply the start by.
_FACTORS = (1e-3, 1e3)


def calibrate(runs: Sequence[MeasuredRun], *, cores: float | None = None) -> Rates:
    """The rates of the machine that the runs were made on.

    Args:
        runs: at least one; all on the same kind of machine with the same two models.
        cores: of the host; this machine's by default.

    Raises:
        SimulationError: there are no runs, or they were made on different kinds of devices.
    """
    if not runs:
        raise SimulationError("calibration needs at least one run")
    devices = {run.config["trainer"]["device"] for run in runs}
    if len(devices) > 1:
        raise SimulationError(f"runs to calibrate on must share a kind of device, got {', '.join(sorted(devices))}")
    raw = _start(runs, on_cpu=devices == {"cpu"}, cores=cores or os.cpu_count() or 1)
    _set_medians(raw, runs)
    for policy in POLICIES:
        raw[policy]["update"] = _fit_update(runs, policy)
    return _fit_events(raw, [(run, step) for run in runs for step in ordinary(run.steps, _STEPS_OF_A_RUN)])


def predict(rates: Rates, run: MeasuredRun) -> list[StepPrediction]:
    """Each measured step as the simulator sees it; the update of a policy that did not update costs nothing."""
    own = of_run(rates, run)
    return [simulate_step(own, step.work, layout=run.layout, mode=run.mode, updated=step.updates) for step in run.steps]


def of_run(rates: Rates, run: MeasuredRun) -> Rates:
    """With what the run's configuration states: limits of the servers, numbers of episode workers and judges.

    Raises:
        SimulationError: the configuration lacks one of them.
    """
    try:
        shared, sandbox = run.config["actor_rollout_ref"]["rollout"], run.config["sandbox"]
        limits = {policy: shared | (run.config["policies"][policy].get("rollout") or {}) for policy in POLICIES}
        servers = {
            policy: replace(
                getattr(rates, policy).server,
                max_num_seqs=limits[policy]["max_num_seqs"],
                max_num_batched_tokens=limits[policy]["max_num_batched_tokens"],
            )
            for policy in POLICIES
        }
        workers, programs = sandbox["num_workers"], sandbox["programs_per_worker"]
        return replace(
            rates,
            code=replace(rates.code, server=servers["code"]),
            test=replace(rates.test, server=servers["test"]),
            client=replace(rates.client, workers=run.config["episode"]["num_workers"]),
            judge=replace(rates.judge, workers=workers, programs_per_worker=programs),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise SimulationError(
            f"the configuration of {run.name} cannot be used: {type(error).__name__}: {error}"
        ) from error


def ordinary(steps: Sequence[MeasuredStep], number: int) -> list[MeasuredStep]:
    """At most ``number`` of them, those whose episodes took nearest to the median."""
    median = statistics.median(step.episodes for step in steps)
    return sorted(steps, key=lambda step: abs(step.episodes - median))[:number]


def _start(runs: Sequence[MeasuredRun], *, on_cpu: bool, cores: float) -> dict[str, Any]:
    """Plain rates before anything is fitted: magnitudes, and what the runs' configuration states."""
    first = runs[0]
    raw: dict[str, Any] = rates_from(read_rates(_GPU_START)).plain()
    raw["basis"] = "measured"
    raw["source"] = f"fitted to {', '.join(run.name for run in runs)}"
    raw["machine"] = raw["machine"] | {"gpus": first.layout.gpus, "host_cores": float(cores), "servers_on_host": on_cpu}
    if on_cpu:
        for policy in POLICIES:
            raw[policy]["server"] |= _CPU_SERVER
        raw["client"] |= _CPU_CLIENT
        raw["judge"] |= _CPU_JUDGE
    raw["workload"] |= _shape(first)
    return of_run(rates_from(raw), first).plain()


def _shape(run: MeasuredRun) -> dict[str, Any]:
    """The workload block of a run: its sizes and the lengths it saw."""
    config, programs = run.config, [program for step in run.steps for program in step.work.programs]
    suites = [suite for program in programs for suite in program.suites]
    cap = config["data"]["max_response_length"]
    beside = [s.prompt_tokens - p.written.prompt_tokens - p.written.response_tokens for p in programs for s in p.suites]
    prompts = [program.written.prompt_tokens for program in programs]
    return {
        "questions": config["data"]["train_batch_size"],
        **{name: config["episode"][name] for name in ("num_candidates", "num_suites", "cases_per_suite")},
        "update_n": config["selection"]["update_n"],
        "mini_batch_groups": config["actor_rollout_ref"]["actor"]["ppo_mini_batch_size"],
        "question_tokens": _lognormal(prompts, cap=config["data"]["max_prompt_length"]),
        "template_tokens": max(0, round(statistics.median(beside))) if beside else 0,
        "program_tokens": _lognormal([program.written.response_tokens for program in programs], cap=cap),
        "suite_tokens": _lognormal([suite.response_tokens for suite in suites] or [1], cap=cap),
    }


def _lognormal(lengths: Sequence[int], *, cap: int) -> dict[str, Any]:
    """Mean and sigma of responses that ended by themselves, and the share that the cap cut."""
    ended = [length for length in lengths if length < cap] or [cap]
    sigma = statistics.pstdev(math.log(length) for length in ended)
    share = 1 - len([length for length in lengths if length < cap]) / len(lengths)
    return {"mean": round(statistics.fmean(ended), 1), "sigma": round(sigma, 3), "cap": cap, "endless_frac": share}


def _set_medians(raw: dict[str, Any], runs: Sequence[MeasuredRun]) -> None:
    steps = [step for run in runs for step in run.steps]
    sync = statistics.median(step.sync for step in steps)
    for policy in POLICIES:
        # One timer covers both policies, one after the other; falling asleep has none, it is in ``step.other``.
        raw[policy] |= {"sync_seconds": sync / len(POLICIES), "sleep_seconds": 0.0}
    raw["step_seconds"] = statistics.median(step.other for step in steps)


def _fit_update(runs: Sequence[MeasuredRun], policy: str) -> dict[str, float]:
    """Least squares with rates of at least 0 on relative errors, large ones damped."""
    features, seconds = [], []
    for run in runs:
        gpus = run.layout.gpus_of(policy)
        for step in run.steps:
            trained = step.work.trained(policy)
            if policy in step.updates and trained:
                tokens = sum(one.prompt_tokens + one.response_tokens for one in trained)
                features.append([1, step.work.mini_batches(policy), len(trained) / gpus, tokens / gpus])
                seconds.append(step.updates[policy])
    names = ("fixed_seconds", "mini_batch_seconds", "row_seconds", "token_seconds")
    if not seconds:
        return dict.fromkeys(names, 0.0)
    table, measured = np.array(features, dtype=float), np.array(seconds)
    scale = statistics.fmean(seconds) / table.mean(axis=0)

    def errors(shares: Vector) -> Vector:
        fitted: Vector = (table @ (shares * scale) - measured) / measured
        return np.concatenate([fitted, _PULL * shares])

    found = least_squares(errors, np.full(len(names), 0.25), bounds=(0, np.inf), loss="soft_l1", f_scale=_OUTLIER)
    return {name: float(value) for name, value in zip(names, found.x * scale, strict=True)}


def _fit_events(raw: Mapping[str, Any], steps: Sequence[tuple[MeasuredRun, MeasuredStep]]) -> Rates:
    start = np.array([_get(raw, key) for key in FITTED])
    measured = [_landmarks_of(step) for _, step in steps]

    def errors(factors: Vector) -> Vector:
        rates = _with(raw, factors * start)
        parts = [
            (_simulated_landmarks(rates, run, step) - landmarks) / landmarks[-1] * weights
            for (run, step), (landmarks, weights) in zip(steps, measured, strict=True)
        ]
        return np.concatenate([*parts, _PULL * (factors - 1)])

    factors = np.ones(len(FITTED))
    for difference in _DIFFERENCES:
        found = least_squares(
            errors,
            factors,
            bounds=_FACTORS,
            diff_step=difference,
            loss="soft_l1",
            f_scale=_OUTLIER,
            xtol=1e-3,
            ftol=1e-3,
        )
        factors = found.x
    return _with(raw, factors * start)


def _landmarks_of(step: MeasuredStep) -> tuple[Vector, Vector]:
    """Times of a step's events, its end last, and their weights: each kind of event counts as much as the end."""
    kinds = [step.written, step.tested, step.judged, (step.episodes,)]
    weights = [np.full(len(times), 1 / math.sqrt(max(1, len(times)))) for times in kinds]
    return np.concatenate([np.asarray(times) for times in kinds]), np.concatenate(weights) / math.sqrt(len(kinds))


def _simulated_landmarks(rates: Rates, run: MeasuredRun, step: MeasuredStep) -> Vector:
    times = simulate_episodes(of_run(rates, run), step.work, layout=run.layout, mode=run.mode)
    programs = [(q, c, program) for q, row in enumerate(step.work.questions) for c, program in enumerate(row)]
    return np.array(
        [
            *[times.written[q][c] for q, c, _ in programs],
            *[times.tested[q][c] for q, c, program in programs if program.suites],
            *[times.judged[q][c] for q, c, program in programs if program.judged is not None],
            times.seconds,
        ]
    )


def _get(raw: Mapping[str, Any], key: str) -> float:
    block: Any = raw
    for name in key.split("."):
        block = block[name]
    return float(block)


def _with(raw: Mapping[str, Any], values: Vector) -> Rates:
    """The rates with these in place of ``FITTED``."""
    rates = rates_from(raw)
    changes: dict[str, dict[str, Any]] = {}
    for key, value in zip(FITTED, values, strict=True):
        block, _, name = key.rpartition(".")
        changes.setdefault(block, {})[name] = float(value)
    policies = {
        name: replace(policy, server=replace(policy.server, **changes[f"{name}.server"]))
        for name, policy in (("code", rates.code), ("test", rates.test))
    }
    return replace(
        rates,
        code=policies["code"],
        test=policies["test"],
        client=replace(rates.client, **changes["client"]),
        judge=replace(rates.judge, **changes["judge"]),
    )
