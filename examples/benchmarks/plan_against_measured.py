"""What `code-a1 plan` says beside what a run takes: memory by kind of process, /dev/shm, and a checkpoint.

    python examples/benchmarks/plan_against_measured.py [--run "cpu [key=value ...]"]... [--folder outputs/plan]

Each run trains two steps and saves once. Every half second the proportional set size (PSS: what processes share is
divided among them, so that a sum counts nothing twice) of each of its processes is read. Prints a table for each run,
and a last one of all runs, with the deviation of the plan in percent of what was measured; the most at once is what a
machine must have. Nothing else may run. These are also the numbers of `PROCESSES` in
`code_a1_recipe/training/plan/memory.py`: the column "one" less what the model takes.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.plan.check import Plan, plan_of
from code_a1_recipe.training.plan.machine import Machine
from code_a1_recipe.training.plan.needs import Place

RUNS = (
    "cpu",
    "cpu actor_rollout_ref.model.lora_rank=16",
    "cpu actor_rollout_ref.actor.use_kl_loss=false actor_rollout_ref.rollout.dtype=bfloat16",
    "cpu actor_rollout_ref.model.enable_gradient_checkpointing=true episode.num_workers=2",
)
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
"""How the titles of processes begin, and what the plan calls them; what comes first holds."""


@dataclass(slots=True)
class Measured:
    """Most bytes that were seen: of PSS in all at once, and of each process with its kind; in /dev/shm."""

    at_once: int = 0
    peaks: dict[int, tuple[str, int]] = field(default_factory=dict)
    shared: int = 0

    def of_kind(self, kind: str) -> int:
        """Sum of the peaks of a kind's processes."""
        return sum(peak for found, peak in self.peaks.values() if found == kind)


def kind_of(title: str, *, is_driver: bool) -> str:
    """What the plan calls a process."""
    if is_driver:
        return "driver"
    named = next((kind for start, kind in KINDS.items() if title.startswith(start)), "")
    return named or ("program" if "-P -s -B -X utf8" in title else "Ray" if "/ray/" in title else "driver")


def watch(driver: psutil.Process, measured: Measured) -> None:
    """Look at a run's processes until it ends."""
    before = shutil.disk_usage("/dev/shm").used
    while driver.is_running() and driver.status() != psutil.STATUS_ZOMBIE:
        total = 0
        for process in [driver, *driver.children(recursive=True)]:
            try:
                kind = kind_of(" ".join(process.cmdline()), is_driver=process == driver)
                size = process.memory_full_info().pss
            except psutil.Error:  # it has just ended
                continue
            total += size
            measured.peaks[process.pid] = (kind, max(size, measured.peaks.get(process.pid, ("", 0))[1]))
        measured.at_once = max(measured.at_once, total)
        measured.shared = max(measured.shared, shutil.disk_usage("/dev/shm").used - before)
        time.sleep(SECONDS)


def planned_by_kind(plan: Plan) -> dict[str, int]:
    """Memory that the processes of each kind take together when they take most, which is all of their parts."""
    amounts = Counter[str]()
    for need in plan.needs:
        if need.place == Place.MEMORY:
            amounts[need.process.removeprefix("code ").removeprefix("test ")] += need.amount * need.count
    return dict(amounts)


def lines(plan: Plan, measured: Measured, checkpoint: int) -> Iterator[str]:
    """The table of a run, in MiB."""
    at_once = {row.place: row.needed for row in plan.rows}
    kept = max(one.count for one in plan.needs if one.place == Place.DISK)
    rows = [(kind, planned, measured.of_kind(kind)) for kind, planned in planned_by_kind(plan).items()]
    rows += [
        ("memory, most at once", at_once[Place.MEMORY], measured.at_once),
        ("/dev/shm", at_once[Place.SHARED], measured.shared),
        ("one checkpoint", at_once[Place.DISK] // kept, checkpoint),
    ]
    yield "| | planned | measured | deviation |"
    yield "| --- | ---: | ---: | ---: |"
    for name, planned, found in rows:
        deviation = f"{planned / found - 1:+.0%}" if found else ""
        yield f"| {name} | {planned / MIB:.0f} | {found / MIB:.0f} | {deviation} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="append", help="preset and settings in one text; repeatable")
    parser.add_argument("--folder", type=Path, default=Path("outputs/plan"))
    options = parser.parse_args()
    together = ["| run | planned MiB | measured MiB | deviation |", "| --- | ---: | ---: | ---: |"]
    for number, text in enumerate(options.run or RUNS):
        folder = options.folder / str(number)
        preset, *overrides = [*shlex.split(text), *TWO_STEPS, f"run_dir={folder}"]
        config = read_config(preset, overrides)
        plan = plan_of(config, Machine.here(str(folder), device=config.trainer.device))
        command = [sys.executable, "-m", "code_a1_recipe", "train", preset, *overrides]
        measured = Measured()
        with subprocess.Popen(command) as run:
            watch(psutil.Process(run.pid), measured)
        if run.returncode:
            raise SystemExit(f"the run ended with status {run.returncode}: {shlex.join(command)}")
        saved = folder / "checkpoints" / "global_step_2"
        checkpoint = sum(path.stat().st_size for path in saved.rglob("*.pt"))
        print(f"\n{text}\n", *lines(plan, measured, checkpoint), sep="\n", flush=True)
        needed = next(row.needed for row in plan.rows if row.place == Place.MEMORY)
        together.append(
            f"| {text} | {needed / MIB:.0f} | {measured.at_once / MIB:.0f} | {needed / measured.at_once - 1:+.0%} |"
        )
    print("", *together, sep="\n")


if __name__ == "__main__":
    main()
