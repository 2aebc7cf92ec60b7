"""Streaming episodes beside the two-phase barrier (``episode.barrier=true``): step by step in turns, in one run.

    python -m studies.streaming [--folder outputs/streaming] [--steps 42] [--sizes base --sizes questions_16 ...]

Trains the preset `cpu` at learning rate 0, so that all steps are alike, with the barrier in every second step: a
machine that is slower for a minute is so for both. Prints, for each size, median seconds and the median ratio of
neighbouring steps with a 95 % bootstrap interval. The first two steps are left out (caches).

Nothing else may run on the machine. Takes about four minutes for each size on two cores.
"""

import statistics
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.training.lifecycle.launch import prepare_environment, train
from studies.command_line import run_study, study_app

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
app = study_app()


@app.command(hidden=True)
def train_in_turns(folder: Path, size: str, steps: int) -> None:
    """Train in this process; odd steps wait at the barrier."""
    overrides = [*SETTINGS, *SIZES[size], f"trainer.total_training_steps={steps}", f"run_dir={folder / size}"]
    config = read_config("cpu", overrides)
    prepare_environment(config)
    import code_a1_recipe.training.episode_actors as episode_actors  # imports verl, which reads the run's environment

    class WorkerInTurns(episode_actors.EpisodeWorker):
        async def train(self, task: Any, connections: bytes) -> Any:
            self._connect(connections)
            self._runners[False]._gate = self._gate if task.step % 2 else None
            return await super().train(task, connections)

    episode_actors.EpisodeWorker = WorkerInTurns  # type: ignore[misc]
    train(config)


@app.command()
def compare(
    folder: Annotated[Path, typer.Option(help="runs there are not made again")] = Path("outputs/streaming"),
    steps: Annotated[int, typer.Option(help="of each run; the first two are left out")] = 42,
    sizes: Annotated[list[str] | None, typer.Option(help=f"{', '.join(SIZES)}; repeatable, all by default")] = None,
) -> None:
    """Compare the barrier with streaming."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for size in sizes or SIZES:
        if not (folder / size / "metrics.jsonl").exists():
            words = ["train-in-turns", str(folder), size, str(steps)]
            with (folder / f"{size}.log").open("w") as log:
                subprocess.run([sys.executable, "-m", "studies.streaming", *words], check=True, stdout=log, stderr=log)
        rows = [row for row in RunRecords.open(folder / size).metrics if row["step"] > WARM_UP]
        for part in ("step", "episodes"):
            typer.echo(f"{size:14s} {part:9s} {comparison(rows, f'timing_s/{part}')}")


def comparison(rows: list[dict[str, Any]], metric: str) -> str:
    """Medians of both ways, and the median ratio of neighbouring steps with its 95 % bootstrap interval."""
    barrier = [row[metric] for row in rows if row["step"] % 2]
    streaming = [row[metric] for row in rows if not row["step"] % 2]
    num_pairs = min(len(barrier), len(streaming))
    ratios = np.array(barrier[:num_pairs]) / np.array(streaming[:num_pairs])
    samples = np.random.default_rng(0).choice(ratios, size=(10_000, num_pairs))
    low, high = np.quantile(np.median(samples, axis=1), [0.025, 0.975])
    return (
        f"barrier {statistics.median(barrier):6.2f} s, streaming {statistics.median(streaming):6.2f} s, "
        f"ratio {np.median(ratios):.2f} ({low:.2f} to {high:.2f}, {num_pairs} pairs)"
    )


def main() -> int:
    """Run ``compare`` where no other command is named; returns the exit status."""
    words = sys.argv[1:]
    is_named = words[:1] == ["train-in-turns"]
    return run_study(app, words if is_named else ["compare", *words], name="streaming")


if __name__ == "__main__":
    sys.exit(main())
