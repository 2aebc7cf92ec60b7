"""Six steps in one go beside three steps, a SIGTERM in the fourth, and the same command again: are the states the same?

    python tests/e2e/resume_equality.py --folder /tmp/equality

Preset `cpu`, with an epoch that ends at the stop. Takes about six minutes on two cores. Status 1 if anything differs.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

from proofs import questions_of, state_differences, steps_of  # beside this file

REPOSITORY = Path(__file__).parents[2]
STEPS, STOP_AFTER = 6, 3
ALSO: list[str] = []
"""Further settings, of the command line."""
SETTINGS = (f"trainer.total_training_steps={STEPS}", f"trainer.save_freq={STEPS}", "data.train_max_samples=24")


def start(folder: Path) -> tuple[subprocess.Popen, Path]:
    log = folder.with_suffix(".log")
    command = [sys.executable, "-m", "code_a1_recipe", "cpu", f"run_dir={folder}", *SETTINGS, *ALSO]
    with log.open("a") as handle:
        return subprocess.Popen(command, cwd=REPOSITORY, stdout=handle, stderr=subprocess.STDOUT), log


def finish(folder: Path) -> None:
    process, log = start(folder)
    if process.wait() != 0:
        raise SystemExit(f"the run in {folder} failed, see {log}")


def stop_in_the_middle(folder: Path) -> float:
    """SIGTERM half a second into the step after ``STOP_AFTER``; returns the seconds from there to its end."""
    process, log = start(folder)
    while f"step {STOP_AFTER}/{STEPS} |" not in log.read_text():
        if process.poll() is not None:
            raise SystemExit(f"the run in {folder} ended too early, see {log}")
        time.sleep(0.1)
    time.sleep(0.5)
    signalled = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.wait()
    return time.monotonic() - signalled


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="a folder that does not exist")
    parser.add_argument("also", nargs="*", metavar="KEY=VALUE", help="further settings of both runs")
    options = parser.parse_args()
    ALSO.extend(options.also)
    folder = options.folder.absolute()
    folder.mkdir(parents=True)
    one, other = folder / "in_one_go", folder / "stopped"
    finish(one)
    seconds = stop_in_the_middle(other)
    at_stop = (other / "checkpoints" / "latest_checkpointed_iteration.txt").read_text()
    print(f"left {seconds:.1f} s after SIGTERM, step {at_stop} saved", flush=True)
    finish(other)
    name = Path("checkpoints") / f"global_step_{STEPS}"
    problems = state_differences(one / name, other / name)
    if steps_of(one) != steps_of(other):
        problems.append(f"rows of metrics: {steps_of(one)} and {steps_of(other)}")
    problems += [
        f"questions of step {s}" for s in range(1, STEPS + 1) if questions_of(one, s) != questions_of(other, s)
    ]
    num_files = len(list((one / name).rglob("*.pt")))
    print(f"{num_files} state files, the Mistake Book, questions of {STEPS} steps: {problems or 'all the same'}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
