"""The line that a user reads after each step, and the shares of the step's time."""

from collections.abc import Mapping

# Timers of a step in the order in which they run, each with its word in the line.
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
"""Timers of the phases after the episodes, in this order, each with its description."""
UPDATES = ("update_code", "update_test")
"""Timers that start at the same time if each policy has its own GPUs. All others follow one another."""

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
    metrics: Mapping[str, float], timing: Mapping[str, float], *, num_devices: int, updates_at_once: bool
) -> dict[str, float]:
    """Compute each part's share of a step's time in [0, 1], and the throughputs in tokens per second and device.

    Tokens are generated while episodes run, and trained while policies update. Parts that did not run are left out.

    Args:
        metrics: the step's, with ``perf/generated_tokens`` and both policies' ``perf/total_num_tokens``.
        timing: seconds by timer, with the whole step under ``step``.
        num_devices: GPUs of the run; logical ones on a CPU.
        updates_at_once: both policies update at the same time. Then the shares sum to more than 1, since
            ``time_frac/other`` is what the longer update leaves.
    """
    shares = {f"time_frac/{name}": timing[name] / timing["step"] for name in _PARTS if name in timing}
    updates = [timing.get(name, 0.0) for name in UPDATES]
    update_seconds = max(updates) if updates_at_once else sum(updates)
    twice = (sum(updates) - update_seconds) / timing["step"]
    shares["time_frac/other"] = max(0.0, 1.0 - sum(shares.values()) + twice)
    trained = sum(metrics.get(f"{name}/perf/total_num_tokens", 0.0) for name in ("code", "test"))
    generated = metrics.get("perf/generated_tokens", 0.0)
    phases = {"generate": (generated, timing.get("episodes", 0.0)), "train": (trained, update_seconds)}
    for phase, (tokens, seconds) in phases.items():
        if seconds:
            shares[f"perf/{phase}_throughput"] = tokens / (seconds * num_devices)
    return shares


def step_line(step: int, total_steps: int, metrics: Mapping[str, float], *, prefix: str = "") -> str:
    """Write the line of a step: rewards, validity, adversarial rate, book size, time shares.

    Args:
        step: number of the step.
        total_steps: steps of the run.
        metrics: the step's. A column without its metric is left out.
        prefix: beginning of the metrics' names, ``val/`` for a validation.
    """
    head = f"step {step}/{total_steps}" if not prefix else f"step {step} {prefix.strip('/')}"
    columns = [f"{word} {metrics[prefix + name]:{form}}" for word, name, form in _COLUMNS if prefix + name in metrics]
    if "timing_s/step" in metrics:
        shares = [
            f"{word} {metrics[f'time_frac/{name}']:.0%}"
            for name, word in _PARTS.items()
            if f"time_frac/{name}" in metrics
        ]
        columns.append(f"{metrics['timing_s/step']:.1f}s ({', '.join(shares)})")
    if speeds := [f"{metrics[name]:.0f}" for name in _THROUGHPUTS if name in metrics]:
        waiting = metrics.get("time_frac/exposed_judging", 0.0)
        columns.append(f"{' and '.join(speeds)} tokens/s, {waiting:.0%} judging alone")
    return " | ".join([head, *columns])
