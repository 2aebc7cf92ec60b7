"""One training run under random SIGKILLs, and what its folder proves afterwards. Takes about an hour on two cores.

    python tests/e2e/kill_soak.py --folder /tmp/soak --kills 30 [--undisturbed FOLDER]

The run is the preset `cpu`. Whenever a kill ends the job, the same command is given again; it resumes by itself. With
``--undisturbed`` (a run with the same seed that nothing was done to; made if it is missing) the final states of both
are compared bit by bit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from processes import command_of, descendants, is_alive, matching  # beside this file
from proofs import order_problems, questions_of, records_of, replayed_book, state_differences

from code_a1_recipe.algorithm.mistake_book import MistakeBook

REPOSITORY = Path(__file__).parents[2]

STEPS, STEPS_AN_EPOCH = 40, 16
SETTINGS = (f"trainer.total_training_steps={STEPS}", "trainer.save_freq=1", "trainer.max_actor_ckpt_to_keep=2")

_REST_SECONDS = 1200.0
"""That a run may take after its last kill."""

# What a process is recognised by in its command line.
KINDS = {
    "driver": "-m code_a1_recipe cpu",
    "Ray head (gcs_server and raylet)": "gcs_server",
    "episode worker": "ray::EpisodeWorker",
    "policy worker": "ray::WorkerDict",
    "vLLM server": "ray::PolicyHttpServer",
    "judge": "ray::JudgeWorker",
    "fork server": "fork_server_main",
    "queue storage": "ray::SimpleStorageUnit",
}


@dataclass
class Soak:
    folder: Path
    kills: int
    chance: random.Random
    killed: Counter = field(default_factory=Counter)
    family: set[int] = field(default_factory=set)
    ends: list[str] = field(default_factory=list)

    def command(self) -> list[str]:
        return [sys.executable, "-m", "code_a1_recipe", "cpu", f"run_dir={self.folder}", *SETTINGS]

    def run(self) -> None:
        """Start, kill, start again, until the run has ended by itself."""
        start = 0
        while True:
            start += 1
            log = self.folder.with_name(f"{self.folder.name}_{start:02d}.log")
            with log.open("w") as handle:
                process = subprocess.Popen(
                    self.command(), cwd=REPOSITORY, stdout=handle, stderr=subprocess.STDOUT, start_new_session=True
                )
                self.disturb(process, log)
                try:
                    status = process.wait(_REST_SECONDS)
                except subprocess.TimeoutExpired as error:
                    raise SystemExit(f"a start hangs, see {log}; its driver is process {process.pid}") from error
            say(f"start {start} ended with {status}: {last_line(log)}")
            self.ends.append(f"{status}: {last_line(log)}")
            self.wait_for_the_dead()
            if status == 0:
                return
            if status == 2 or "Traceback" in log.read_text():
                raise SystemExit(f"a start was refused or failed without a clear line, see {log}")

    def disturb(self, process: subprocess.Popen, log: Path) -> None:
        """Kill until the job ends or all kills are spent; half of the moments lie in a start, half among steps.

        Kills are spread over the whole run: one that is due by the number of finished steps comes at once.
        """
        while process.poll() is None and self.killed.total() < self.kills:
            due = (self.killed.total() + 1) * STEPS / (self.kills + 2)
            seconds = self.chance.uniform(0.0, 45.0)
            if self.chance.random() < 0.5:
                steps = log.read_text().count("| code ")
                while process.poll() is None and log.read_text().count("| code ") == steps:
                    time.sleep(0.1)
                seconds /= 15.0
            end = time.monotonic() + seconds
            while process.poll() is None and time.monotonic() < end and self.finished_steps() < due:
                time.sleep(0.1)
            self.kill_one(process.pid)

    def finished_steps(self) -> int:
        metrics = self.folder / "metrics.jsonl"
        return max(0, len(metrics.read_text().splitlines()) - 1) if metrics.exists() else 0  # less validation's row

    def kill_one(self, driver: int) -> None:
        self.family |= descendants(driver)
        living = {kind: pids for kind in KINDS if (pids := pids_of(kind, driver))}
        if not living:
            return
        kind = self.chance.choice(sorted(living))
        victims = living[kind] if kind.startswith("Ray head") else [self.chance.choice(living[kind])]
        if kind.startswith("Ray head"):
            victims += matching("raylet/raylet", driver)
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return
        self.killed[kind] += 1
        say(f"kill {self.killed.total()}: {kind}")

    def wait_for_the_dead(self) -> None:
        """The processes of a job whose driver is gone end by themselves; the next start must not need that."""
        end = time.monotonic() + 30
        while time.monotonic() < end and any(map(is_alive, self.family)):
            time.sleep(0.5)
        left = [pid for pid in self.family if is_alive(pid)]
        if left:
            commands = sorted({command_of(pid)[:120] for pid in left})
            say(f"{len(left)} processes of the job outlived it by 30 s: {commands}")
        self.family.clear()

    def problems(self) -> list[str]:
        """What is wrong with the folder that the run left."""
        found = order_problems(self.folder, steps=STEPS, steps_an_epoch=STEPS_AN_EPOCH)
        records = [records_of(self.folder, step) for step in range(1, STEPS + 1)]
        if MistakeBook.load(self.folder / "mistake_book.json") != replayed_book(records):
            found.append("the Mistake Book is not what the recorded verdicts say")
        rows = {row["step"]: row for row in map(json.loads, (self.folder / "metrics.jsonl").read_text().splitlines())}
        found += [f"step {step} was not validated" for step in (0, 20, 40) if "val/code/pass@1" not in rows[step]]
        if self.killed.total() < self.kills:
            found.append(f"the run ended after {self.killed.total()} of {self.kills} kills")
        return found


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text().replace("\r", "\n").splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("error:", "interrupted", "trained:"))]
    return (told or lines or [""])[-1][:300]


def pids_of(kind: str, driver: int) -> list[int]:
    return [driver] if kind == "driver" else matching(KINDS[kind], driver)


def undisturbed(folder: Path) -> None:
    if not (folder / "metrics.jsonl").exists():
        say(f"an undisturbed run in {folder}")
        command = [sys.executable, "-m", "code_a1_recipe", "cpu", f"run_dir={folder}", *SETTINGS]
        with folder.with_suffix(".log").open("w") as handle:
            subprocess.run(command, cwd=REPOSITORY, stdout=handle, stderr=subprocess.STDOUT, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="run folder of the disturbed run; must not exist")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1, help="of kinds and moments")
    parser.add_argument("--undisturbed", type=Path, help="run folder to compare the final state with")
    options = parser.parse_args()
    if options.folder.exists():
        parser.error(f"{options.folder} exists; name a folder that does not")
    options.folder.parent.mkdir(parents=True, exist_ok=True)
    if options.undisturbed:
        undisturbed(options.undisturbed)
    soak = Soak(folder=options.folder.absolute(), kills=options.kills, chance=random.Random(options.seed))
    soak.run()
    problems = soak.problems()
    outages = sum(bool(r.outage) for step in range(1, STEPS + 1) for r in records_of(soak.folder, step))
    say(f"kills: {dict(soak.killed)}; starts: {len(soak.ends)}; candidates lost to an outage: {outages}")
    if options.undisturbed:
        same = [questions_of(folder, s) for s in range(1, STEPS + 1) for folder in (soak.folder, options.undisturbed)]
        if same[::2] != same[1::2]:
            problems.append("the questions are not those of the undisturbed run")
        name = Path("checkpoints") / f"global_step_{STEPS}"
        differing = state_differences(options.undisturbed / name, soak.folder / name)
        say("the final state is that of the undisturbed run, bit by bit" if not differing else f"differs: {differing}")
    for problem in problems:
        say(f"PROBLEM: {problem}")
    if not problems:
        say("no question lost or repeated, every step there once, the book follows from the verdicts")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
