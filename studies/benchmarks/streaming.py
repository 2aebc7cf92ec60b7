"""Streaming episodes beside the two-phase barrier (``episode.barrier=true``): step by step in turns, in one run.

    python examples/benchmarks/streaming.py [--folder outputs/streaming] [--steps 42] [--sizes base questions_16 ...]

Trains the preset `cpu` at learning rate 0, so that all steps are alike, with the barrier in every second step: a
machine that is slower for a minute is so for both. Prints, for each size, median seconds and the median ratio of
neighbouring steps with a 95 % bootstrap interval. The first two steps are left out (caches).

Nothing else may run on the machine. Takes about four minutes for each size on two cores. The runs stay in FOLDER:
``python -m examples.timeline FOLDER/base_barrier`` and ``FOLDER/base_streaming`` show one step of each, and
``python -m examples.simulator --check FOLDER/*_barrier FOLDER/*_streaming --cores 2`` holds the simulator against all
of them.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.training.lifecycle.launch import configure_logging, prepare_environment, train

WARM_UP = 2
SETTINGS = (
    "episode.barrier=true",
    "actor_rollout_ref.actor.optim.lr=0",
    "policies.code.actor.optim.lr=0",
    "policies.test.actor.optim.lr=0",
    "trainer.save_freq=-1",
    "trainer.test_freq=-1",
    "trainer.val_before_train=false",
)
SIZES = {
    "base": (),
    "questions_16": ("data.train_batch_size=16",),
    "candidates_8": ("episode.num_candidates=8",),
    "suites_16": ("episode.num_suites=16",),
}


def one_run(folder: Path, size: str, steps: int) -> None:
    """Train in this process; odd steps wait at the barrier."""
    configure_logging()
    overrides = (*SETTINGS, *SIZES[size], f"trainer.total_training_steps={steps}", f"run_dir={folder / size}")
    config = read_config("cpu", list(overrides))
    prepare_environment(config)
    import code_a1_recipe.training.episode_actors as episode_worker  # imports verl, which reads the run's environment

    class WorkerInTurns(episode_worker.EpisodeWorker):
        async def train(self, task: Any) -> Any:
            self._runners[False]._gate = self._gate if task.step % 2 else None
            return await super().train(task)

    episode_worker.EpisodeWorker = WorkerInTurns  # type: ignore[misc]
    train(config)


def ratio_of(over: list[float], under: list[float]) -> tuple[float, float, float]:
    """Median of the ratios of pairs, and the ends of its 95 % bootstrap interval."""
    ratios = np.array(over) / np.array(under)
    samples = np.random.default_rng(0).choice(ratios, size=(10_000, len(ratios)))
    low, high = np.quantile(np.median(samples, axis=1), [0.025, 0.975])
    return float(np.median(ratios)), float(low), float(high)


def split(run: Path) -> None:
    """Make run folders ``<size>_barrier`` and ``<size>_streaming`` of a run's odd and even steps."""
    whole = RunRecords.open(run)
    for odd, name in ((1, "barrier"), (0, "streaming")):
        part = RunFolder(run.with_name(f"{run.name}_{name}"))
        shutil.rmtree(part.root, ignore_errors=True)
        part.rollouts.mkdir(parents=True)
        config = whole.config | {"episode": whole.config["episode"] | {"barrier": bool(odd)}}
        part.resolved_config.write_text(yaml.safe_dump(config))
        for row in whole.metrics:
            if row["step"] % 2 == odd:
                part.append_metrics(row["step"], row)
        for step in whole.training_steps:
            if step % 2 == odd:
                part.rollout_file(step, validation=False).hardlink_to(whole.paths.rollout_file(step, validation=False))


def compare(folder: Path, size: str) -> None:
    """Print the lines of one size."""
    kept = [row for row in RunRecords.open(folder / size).metrics if row["step"] > WARM_UP]
    for name in ("step", "episodes"):
        barrier, streaming = ([row[f"timing_s/{name}"] for row in kept if row["step"] % 2 == odd] for odd in (1, 0))
        pairs = min(len(barrier), len(streaming))
        ratio, low, high = ratio_of(barrier[:pairs], streaming[:pairs])
        print(
            f"{size:14s} {name:9s} barrier {statistics.median(barrier):6.2f} s, streaming "
            f"{statistics.median(streaming):6.2f} s, ratio {ratio:.2f} ({low:.2f} to {high:.2f}, {pairs} pairs)",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("outputs/streaming"), help="runs there are not made again")
    parser.add_argument("--steps", type=int, default=42, help="of each run; the first two are left out")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--one", choices=SIZES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.folder.absolute()
    if options.one:
        one_run(folder, options.one, options.steps)
        return
    folder.mkdir(parents=True, exist_ok=True)
    for size in options.sizes:
        if not (folder / size / "metrics.jsonl").exists():
            command = [sys.executable, __file__, "--folder", str(folder), "--one", size, "--steps", str(options.steps)]
            with (folder / f"{size}.log").open("w") as log:
                subprocess.run(command, check=True, stdout=log, stderr=log)
        split(folder / size)
        compare(folder, size)


if __name__ == "__main__":
    main()
