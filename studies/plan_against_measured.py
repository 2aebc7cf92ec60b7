"""Compares the needs that `code-a1 plan` predicts with a run: memory by kind of process, /dev/shm, and a checkpoint.

    python -m studies.plan_against_measured [--run "cpu [key=value ...]"]... [--folder outputs/plan]

Each run trains two steps and saves once. Every half second, the study reads the proportional set size (PSS) of each
process of the run. The PSS divides shared memory among the processes, so that a sum counts no memory twice. The study
prints a table for each run, with the deviation of the plan in percent of the measured value. A machine must have the
memory of the row "memory, most at once". No other work may run on the machine. The numbers of `PROCESSES` in
`code_a1_recipe/training/plan/memory.py` were measured in this way, less the memory of the model.
"""

import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import psutil
import typer

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import CodeA1Error
from code_a1_recipe.stats.tables import Table, table_with_head
from code_a1_recipe.training.plan.check import Plan, plan_of
from code_a1_recipe.training.plan.machine import Machine
from code_a1_recipe.training.plan.needs import Place
from studies.command_line import run_study, study_app

RUNS = [
    "cpu",
    "cpu actor_rollout_ref.model.lora_rank=16",
    "cpu actor_rollout_ref.actor.use_kl_loss=false actor_rollout_ref.rollout.dtype=bfloat16",
    "cpu actor_rollout_ref.model.enable_gradient_checkpointing=true episode.num_workers=2",
]
TWO_STEPS = ("trainer.total_training_steps=2", "trainer.save_freq=2", "trainer.test_freq=-1")
SECONDS = 0.5
MIB = 1 << 20
KINDS = {
    "ray::TransferQueueController": "queue controller",
    "ray::SimpleStorageUnit": "queue storage",
    "ray::TransferQueueStorageUnit": "queue storage",
    "ray::GlobalRequestLoadBalancer": "load balancer",
    "ray::EpisodeWorker": "episode worker",
    "ray::JudgeWorker": "judge",
    "ray::WorkerDict": "worker",
    "ray::PolicyHttpServer": "server",
    "VLLM::": "server",
    "ray::": "Ray",
}
"""Beginning of a process's title -> name of the process in the plan. The first beginning that fits counts."""
app = study_app()


@dataclass(slots=True)
class Measured:
    """The largest numbers of bytes that were measured."""

    at_once: int = 0
    """Largest PSS of all processes together."""
    peaks: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Process id -> kind and largest PSS of the process."""
    shared: int = 0
    """Most bytes in /dev/shm."""

    def watch(self, driver: psutil.Process) -> None:
        """Measure a run's processes until the run ends."""
        before = shutil.disk_usage("/dev/shm").used
        while driver.is_running() and driver.status() != psutil.STATUS_ZOMBIE:
            total = 0
            for process in [driver, *driver.children(recursive=True)]:
                try:
                    kind = "driver" if process == driver else kind_of(" ".join(process.cmdline()))
                    size = process.memory_full_info().pss
                except psutil.Error:  # the process has just ended
                    continue
                total += size
                _, peak = self.peaks.get(process.pid, ("", 0))
                self.peaks[process.pid] = (kind, max(size, peak))
            self.at_once = max(self.at_once, total)
            self.shared = max(self.shared, shutil.disk_usage("/dev/shm").used - before)
            time.sleep(SECONDS)

    def of_kind(self, kind: str) -> int:
        """Return the sum of the peaks of all processes of a kind."""
        return sum(peak for found, peak in self.peaks.values() if found == kind)


def kind_of(title: str) -> str:
    """Return the plan's name for a process with this title."""
    for start, kind in KINDS.items():
        if title.startswith(start):
            return kind
    if "-P -s -B -X utf8" in title:
        return "program"
    return "Ray" if "/ray/" in title else "driver"


def planned_by_kind(plan: Plan) -> Counter[str]:
    """Add up the planned memory of the processes of each kind, all parts of a process included."""
    amounts = Counter[str]()
    for need in plan.needs:
        if need.place == Place.MEMORY:
            amounts[need.process.removeprefix("code ").removeprefix("test ")] += need.amount * need.count
    return amounts


def plan_table(run: str, plan: Plan, measured: Measured, checkpoint: int) -> Table:
    """Make the table of a run, in MiB."""
    at_once = {row.place: row.needed for row in plan.rows}
    kept = max(need.count for need in plan.needs if need.place == Place.DISK)
    figures = [(kind, planned, measured.of_kind(kind)) for kind, planned in planned_by_kind(plan).items()]
    figures.append(("memory, most at once", at_once[Place.MEMORY], measured.at_once))
    figures.append(("/dev/shm", at_once[Place.SHARED], measured.shared))
    figures.append(("one checkpoint", at_once[Place.DISK] // kept, checkpoint))
    table = [["MiB", "planned", "measured", "deviation"]]
    for name, planned, found in figures:
        deviation = f"{planned / found - 1:+.0%}" if found else ""
        table.append([name, f"{planned / MIB:.0f}", f"{found / MIB:.0f}", deviation])
    return table_with_head(table, title=run)


@app.command()
def plan_against_measured(
    run: Annotated[list[str], typer.Option(help="preset and settings in one text; repeatable")] = RUNS,
    folder: Annotated[Path, typer.Option()] = Path("outputs/plan"),
) -> None:
    """Train two steps of each run, and compare its memory with its plan."""
    for number, text in enumerate(run):
        place = folder / str(number)
        preset, *overrides = [*shlex.split(text), *TWO_STEPS, f"run_dir={place}"]
        config = read_config(preset, overrides)
        plan = plan_of(config, Machine.here(str(place), device=config.trainer.device))
        command = [sys.executable, "-m", "code_a1_recipe", "train", preset, *overrides]
        measured = Measured()
        with subprocess.Popen(command) as process:
            measured.watch(psutil.Process(process.pid))
        if process.returncode:
            raise CodeA1Error(f"the run ended with status {process.returncode}: {shlex.join(command)}")
        saved = (place / "checkpoints" / "global_step_2").rglob("*.pt")
        checkpoint = sum(path.stat().st_size for path in saved)
        typer.echo(plan_table(text, plan, measured, checkpoint).markdown())


if __name__ == "__main__":
    sys.exit(run_study(app, None, name="plan_against_measured"))
