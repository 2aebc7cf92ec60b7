"""The line that is printed after each step, and each phase's share of the step's time."""

from collections.abc import Mapping

# Timers of a step in the order in which their phases run, each with its word in the printed line.
_PARTS = {
    "episodes": "episodes",
    "update_code": "code",
    "update_test": "test",
    "update_weights": "sync",
    "save_checkpoint": "save",
}
PHASES = {
    "update_code": "update of the Code LLM",
    "update_test": "update of the Test LLM",
    "save_checkpoint": "checkpoint",
    "update_weights": "weights to the servers",
}
"""Timers of the phases after the episodes, in the order in which reports show them, each with its description."""
UPDATES = ("update_code", "update_test")
"""Timers of the updates. The updates start at the same time if each policy has its own GPUs. All other phases run one
after another."""

_THROUGHPUTS = ("perf/generate_throughput", "perf/train_throughput")
_COLUMNS = (
    ("code", "code/reward", ".3f"),
    ("pass@1", "code/pass@1", ".3f"),
    ("test", "test/reward", ".3f"),
    ("valid", "test/valid", ".2f"),
    ("adv", "test/adv", ".2f"),
    ("book", "book/cases", ".0f"),
    ("outages", "judge/outages", ".0f"),
)


def time_metrics(
    metrics: Mapping[str, float],
    timing: Mapping[str, float],
    *,
    num_devices: int,
    updates_at_once: bool,
) -> dict[str, float]:
    """Compute each phase's share of a step's time in [0, 1], and throughputs in tokens per second and device.

    Tokens are generated while episodes run, and trained while policies update. Phases that did not run are left out.

    Args:
        metrics: metrics of the step, with ``perf/generated_tokens`` and each policy's ``perf/total_num_tokens``.
        timing: seconds by timer; the timer ``step`` measures the whole step.
        num_devices: number of the run's GPUs, or of its logical GPUs on a CPU.
        updates_at_once: True if both policies update at the same time. With True, the shares sum to more than 1,
            because both updates have a share of the same time.
    """
    whole_step = timing["step"]
    shares = {f"time_frac/{name}": timing[name] / whole_step for name in _PARTS if name in timing}
    updates = [timing.get(name, 0.0) for name in UPDATES]
    update_seconds = max(updates) if updates_at_once else sum(updates)
    counted_twice = (sum(updates) - update_seconds) / whole_step
    unused = 1.0 - sum(shares.values()) + counted_twice
    shares["time_frac/other"] = max(0.0, unused)
    generated = metrics.get("perf/generated_tokens", 0.0)
    trained = sum(metrics.get(f"{policy}/perf/total_num_tokens", 0.0) for policy in ("code", "test"))
    if episode_seconds := timing.get("episodes", 0.0):
        shares["perf/generate_throughput"] = generated / (episode_seconds * num_devices)
    if update_seconds:
        shares["perf/train_throughput"] = trained / (update_seconds * num_devices)
    return shares


def step_line(step: int, total_steps: int, metrics: Mapping[str, float], *, prefix: str = "") -> str:
    """Write the line of a step: rewards, rate of valid tests, adversarial term, size of the book, shares of time.

    Args:
        step: number of the step.
        total_steps: number of the run's steps.
        metrics: metrics of the step. A column whose metric is missing is left out.
        prefix: beginning of the metrics' names. The prefix is ``val/`` for a validation, else empty.
    """
    columns = [f"step {step} {prefix.strip('/')}" if prefix else f"step {step}/{total_steps}"]
    for word, name, form in _COLUMNS:
        if (value := metrics.get(prefix + name)) is not None:
            columns.append(f"{word} {value:{form}}")
    if "timing_s/step" in metrics:
        shares = []
        for name, word in _PARTS.items():
            if (share := metrics.get(f"time_frac/{name}")) is not None:
                shares.append(f"{word} {share:.0%}")
        columns.append(f"{metrics['timing_s/step']:.1f}s ({', '.join(shares)})")
    if speeds := [f"{metrics[name]:.0f}" for name in _THROUGHPUTS if name in metrics]:
        waiting = metrics.get("time_frac/exposed_judging", 0.0)
        columns.append(f"{' and '.join(speeds)} tokens/s, {waiting:.0%} judging alone")
    return " | ".join(columns)
