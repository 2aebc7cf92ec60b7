"""Real runs on this machine, each a process of its own as a user starts it."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.runs.rollout_record import RolloutRecord

from .processes import children_of, command_of, descendants
from .proofs import records_of

# Seconds one run may take on 2 cores beside another one; a run that hangs must not hang the tests.
RUN_TIMEOUT_SECONDS = 900

SETTINGS = (
    # Two ranks of each policy and two optimizer steps a batch: the path of every GPU preset.
    "trainer.n_gpus_per_node=2",
    "actor_rollout_ref.actor.ppo_mini_batch_size=4",
    "policies.test.actor.ppo_mini_batch_size=4",
    # Questions come back at step 3, and the stop at step 2 falls on the end of an epoch.
    "data.train_max_samples=16",
)
"""Of ``trained`` and of the runs that are compared with it."""
SHORT = (
    "trainer.total_training_steps=2",
    "trainer.save_freq=-1",
    "trainer.test_freq=-1",
    "trainer.val_before_train=false",
    "data.train_max_samples=16",
)
"""Two steps and nothing else."""


@dataclass(frozen=True)
class Run:
    folder: Path
    returncode: int
    output: str
    seconds_to_leave: float = 0.0
    """From the signal to the end, of a run that got one."""

    @property
    def metrics(self) -> list[dict]:
        """Rows of metrics.jsonl, validation before training (step 0) left out."""
        return [row for row in RunRecords.open(self.folder).metrics if row["step"] > 0]

    def rollouts(self, step: int, phase: str = "train", *, kind: str = "sampled") -> list[RolloutRecord]:
        """Records of a step in the order of questions and candidates."""
        return records_of(self.folder, step, phase, kind=kind)


def start(command: list[str], folder: Path, repository: Path) -> Run:
    log = folder.with_suffix(".log")
    with log.open("w") as handle:
        done = subprocess.run(
            command, cwd=repository, stdout=handle, stderr=subprocess.STDOUT, timeout=RUN_TIMEOUT_SECONDS, check=False
        )
    return Run(folder=folder, returncode=done.returncode, output=log.read_text())


@pytest.fixture(scope="session")
def train(repository: Path) -> Callable[..., Run]:
    """``train(folder, *overrides)``: the command line of a user, preset `cpu`."""
    if sys.platform != "linux":
        pytest.skip("trains with confined processes, which need Linux")

    def run(folder: Path, *overrides: str) -> Run:
        command = [sys.executable, "-m", "code_a1_recipe", "cpu", f"run_dir={folder}", *overrides]
        return start(command, folder, repository)

    return run


@pytest.fixture(scope="session")
def interrupt(repository: Path) -> Callable[..., Run]:
    """``interrupt(folder, after, *overrides)``: a run that gets SIGTERM when a line of its output holds ``after``."""

    def run(folder: Path, after: str, *overrides: str, preset: str = "cpu") -> Run:
        command = [sys.executable, "-m", "code_a1_recipe", preset, f"run_dir={folder}", *overrides]
        log = folder.with_suffix(".log")
        with log.open("w") as handle:
            process = subprocess.Popen(command, cwd=repository, stdout=handle, stderr=subprocess.STDOUT)
            end = time.monotonic() + RUN_TIMEOUT_SECONDS
            while after not in log.read_text() and process.poll() is None and time.monotonic() < end:
                time.sleep(0.2)
            started = time.monotonic()
            process.send_signal(signal.SIGTERM)
            returncode = process.wait(RUN_TIMEOUT_SECONDS)
        return Run(folder, returncode, log.read_text(), seconds_to_leave=time.monotonic() - started)

    return run


@pytest.fixture(scope="session")
def drive(repository: Path) -> Callable[..., Run]:
    """``drive(words, folder, *overrides)``: a run with a saboteur from tests/e2e/drivers, and its arguments."""

    def run(words: str, folder: Path, *overrides: str) -> Run:
        script, *arguments = words.split()
        path = Path(__file__).parent / "drivers" / script
        return start([sys.executable, str(path), *arguments, f"run_dir={folder}", *overrides], folder, repository)

    return run


@pytest.fixture(scope="session")
def trained(drive, tmp_path_factory) -> Run:
    """Four steps on two ranks, with validations and checkpoints; the fourth samples with old weights.

    Trained once, by whichever process of tests asks first; others wait for it.
    """
    root = tmp_path_factory.getbasetemp()
    folder = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "trained"
    kept = folder.with_suffix(".pickle")
    with FileLock(folder.with_suffix(".lock")):
        if not kept.exists():
            run = drive(
                "cut_weight_sync.py 3 cpu",
                folder,
                "trainer.total_training_steps=4",
                "trainer.save_freq=1",
                "trainer.test_freq=2",
                "data.val_max_samples=8",
                "checkpoint.keep_best=val/code/pass@1",
                f"trainer.rollout_data_dir={folder}_copies",
                "episode.max_log_probs_diff=null",  # the run is to go on after the cut
                *SETTINGS,
            )
            kept.write_bytes(pickle.dumps(run))
    return pickle.loads(kept.read_bytes())


@dataclass(frozen=True)
class Sabotaged:
    run: Run
    processes_left: list[str]


@pytest.fixture(scope="session")
def resumed(drive, trained, tmp_path_factory) -> Sabotaged:
    """From step 2 of ``trained``, elsewhere, while fork servers, a judge, candidates and an episode worker die."""
    folder = tmp_path_factory.mktemp("e2e") / "resumed"
    shutil.copytree(trained.folder, folder)
    before = _judges_left()
    run = drive(
        "kill_sandbox.py",
        folder,
        f"resume={folder / 'checkpoints' / 'global_step_2'}",
        "trainer.total_training_steps=3",
        "trainer.save_freq=3",
        "trainer.test_freq=-1",
        "trainer.val_before_train=False",
        *SETTINGS,
    )
    return Sabotaged(run=run, processes_left=sorted(command_of(pid) for pid in _judges_left() - before))


def _judges_left() -> set[int]:
    """Judges and fork servers that no test under way has started: of a run that ended, or somebody else's."""
    everyone = {pid for pids in children_of().values() for pid in pids}
    of_tests = {pid for tests in everyone if "pytest" in command_of(tests) for pid in descendants(tests)}
    words = ("fork_server_main", "JudgeWorker")
    return {pid for pid in everyone - of_tests if any(word in command_of(pid) for word in words)}
