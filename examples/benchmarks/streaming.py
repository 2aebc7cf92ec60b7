"""Streaming episodes beside the two-phase barrier (``episode.barrier=true``), on the same responses.

    python examples/benchmarks/streaming.py [--folder outputs/streaming] [--steps 16] [--turns 1]

Trains the preset `cpu` in several sizes, each size with streaming and with the barrier, by turns. The preset is
deterministic, and the barrier changes no response: step k of both runs is the same work, so steps are compared in
pairs. Prints, for each size, median seconds and the median ratio of the pairs with a 95 % bootstrap interval. The first
two steps of each run are left out (caches).

Nothing else may run on the machine. Takes about 25 minutes on two cores. The runs stay, for
``code-a1 timeline FOLDER/base_barrier_1 --compare FOLDER/base_streaming_1`` and
``code-a1 simulate --check FOLDER/*_1 --cores 2``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

WARM_UP = 2
SHARED = ("trainer.save_freq=-1", "trainer.test_freq=-1", "trainer.val_before_train=false")
SIZES = {
    "base": (),
    "questions_16": ("data.train_batch_size=16",),
    "candidates_8": ("episode.num_candidates=8",),
    "suites_16": ("episode.num_suites=16",),
}
MODES = {"streaming": "episode.barrier=false", "barrier": "episode.barrier=true"}


def seconds_of(folder: Path, settings: tuple[str, ...], steps: int) -> dict[str, list[float]]:
    """Seconds of steps and of their episodes, of a run that is made if it is not there."""
    metrics = folder / "metrics.jsonl"
    rows = metrics.read_text().splitlines() if metrics.exists() else []
    if len(rows) < steps:
        command = [sys.executable, "-m", "code_a1_recipe", "cpu", f"run_dir={folder}", "resume=never", *settings]
        with folder.with_suffix(".log").open("w") as log:
            subprocess.run(
                [*command, *SHARED, f"trainer.total_training_steps={steps}"], check=True, stdout=log, stderr=log
            )
        rows = metrics.read_text().splitlines()
    kept = [json.loads(row) for row in rows][WARM_UP:]
    return {name: [row[f"timing_s/{name}"] for row in kept] for name in ("step", "episodes")}


def ratio_of(over: list[float], under: list[float]) -> tuple[float, float, float]:
    """Median of the ratios of pairs, and the ends of its 95 % bootstrap interval."""
    ratios = np.array(over) / np.array(under)
    samples = np.random.default_rng(0).choice(ratios, size=(10_000, len(ratios)))
    low, high = np.quantile(np.median(samples, axis=1), [0.025, 0.975])
    return float(np.median(ratios)), float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("outputs/streaming"), help="reused where it is complete")
    parser.add_argument("--steps", type=int, default=16, help="of each run; the first two are left out")
    parser.add_argument("--turns", type=int, default=1, help="runs of each size and mode")
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for size, settings in SIZES.items():
        found: dict[str, dict[str, list[float]]] = {mode: {"step": [], "episodes": []} for mode in MODES}
        for turn in range(1, options.turns + 1):
            for mode, key in MODES.items():
                seconds = seconds_of(folder / f"{size}_{mode}_{turn}", (*settings, key), options.steps)
                for name, values in seconds.items():
                    found[mode][name] += values
        for name in ("step", "episodes"):
            with_barrier, streamed = found["barrier"][name], found["streaming"][name]
            ratio, low, high = ratio_of(with_barrier, streamed)
            print(
                f"{size:14s} {name:9s} barrier {statistics.median(with_barrier):6.2f} s, "
                f"streaming {statistics.median(streamed):6.2f} s, ratio {ratio:.2f} ({low:.2f} to {high:.2f}, "
                f"{len(streamed)} pairs)",
                flush=True,
            )


if __name__ == "__main__":
    main()
