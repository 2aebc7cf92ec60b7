"""The runs of an experiment: processes of their own, started, watched, ended, and never run twice.

``<folder>/<arm>/seed<n>`` is the run, ``seed<n>.log`` what it prints, ``seed<n>.json`` its command and the time its
processes took; ``<run>/finished.json`` says that it is finished. A run that was cut off goes on from its newest
checkpoint; without one (``trainer.save_freq=-1``) it starts anew.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.harvest_tests.harvest import HarvestOptions, harvest_tests
from tqdm import tqdm

from code_a1_recipe.errors import InputError, SettingsError
from code_a1_recipe.files import write_whole
from code_a1_recipe.runs.folder import RunFolder, locked
from code_a1_recipe.runs.reader import RunRecords

from .checks import Place, check_experiment, log_of, settings_of
from .grid import EXPERIMENT_FILE, FINISHED, Arm, Experiment

LOCK = "experiment.lock"
_POLL_SECONDS = 1.0
_LOG_TAIL = 2000
_BYTES_OF_A_ROW = 100_000
"""Of ``metrics.jsonl``, at most."""
_GRACE_SECONDS = 60.0
"""For a run to end its processes after an interruption."""


def run_experiment(
    experiment: Experiment, *, arms: Sequence[str] = (), seeds: Sequence[int] = (), parallel: int = 1
) -> list[Path]:
    """Run what is not finished yet; returns the folders of all finished runs asked for.

    Args:
        arms: only these; all if empty.
        seeds: only these; all if empty.
        parallel: runs at once on this machine, at least 1; each has the memory and processes of a whole run.

    Raises:
        SettingsError: a name is unknown, or an arm's settings cannot work or are not those that its runs in the folder
            were made with; nothing was run.
        InputError: somebody else works there; or a run broke off (the others stay; run again to go on). No new ones
            were started then.
    """
    if parallel < 1:
        raise SettingsError(f"parallel must be at least 1 run at once, got {parallel}")
    wanted = _chosen(experiment, arms, seeds)
    for arm, seed in wanted:
        _adopt(experiment, arm, seed)
    pending = [(arm, seed) for arm, seed in wanted if not experiment.is_finished(arm.name, seed)]
    check_experiment(experiment, wanted, pending)
    try:
        experiment.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"the experiment's folder {experiment.folder} cannot be made: {error}") from error
    with locked(experiment.folder / LOCK):
        (experiment.folder / EXPERIMENT_FILE).write_text(experiment.text, encoding="utf-8")
        with tqdm(total=len(wanted), initial=len(wanted) - len(pending), unit="run", desc="experiment") as bar:
            _run_all(experiment, pending, parallel, bar)
    return [experiment.run_folder(arm.name, seed) for arm, seed in wanted]


def _chosen(experiment: Experiment, arms: Sequence[str], seeds: Sequence[int]) -> list[Place]:
    known = [arm.name for arm in experiment.arms]
    if unknown := sorted(set(arms) - set(known)):
        raise SettingsError(f"unknown arms {unknown}; known: {', '.join(known)}")
    if absent := sorted(set(seeds) - set(experiment.seeds)):
        raise SettingsError(f"seeds {absent} are not in the experiment; it has {list(experiment.seeds)}")
    return [
        (arm, seed)
        for arm, seed in experiment.runs()
        if (not arms or arm.name in arms) and (not seeds or seed in seeds)
    ]


def _run_all(experiment: Experiment, pending: list[Place], parallel: int, bar: Any) -> None:
    running: list[_Run] = []
    broken: InputError | None = None
    try:
        while running or (pending and broken is None):
            while broken is None and len(running) < parallel and (place := _first_ready(experiment, pending)):
                pending.remove(place)
                try:
                    running.append(_Run.start(experiment, *place, parallel=parallel))
                except InputError as error:
                    broken = error
            bar.set_postfix_str(", ".join(run.progress() for run in running), refresh=sys.stderr.isatty())
            time.sleep(_POLL_SECONDS)
            for run in [run for run in running if run.process.poll() is not None]:
                running.remove(run)
                try:
                    run.finish()
                    bar.update()
                except InputError as error:
                    broken = broken or error  # those that still run are let finish
    finally:
        _end(running)
    if broken is not None:
        raise broken


def _adopt(experiment: Experiment, arm: Arm, seed: int) -> None:
    """Note that a run is finished which reached its last step after the process that would have noted it was gone."""
    folder = experiment.run_folder(arm.name, seed)
    log = log_of(experiment, arm, seed)
    if "settings" not in log or experiment.is_finished(arm.name, seed):
        return
    try:
        run = RunRecords.open(folder)
        ended = run.steps[-1:] == [run.config["trainer"].get("total_training_steps")]
        with RunFolder(folder).lock():
            if ended:
                _write(folder / FINISHED, log | {"wall_seconds": None})
    except (InputError, OSError):
        return  # whoever starts it again says what is wrong


def _first_ready(experiment: Experiment, pending: Sequence[Place]) -> Place | None:
    """The first run that waits for no other one's tests."""
    ready = (place for place in pending if not place[0].harvest or experiment.is_finished(place[0].harvest, place[1]))
    return next(ready, None)


def command_of(experiment: Experiment, arm: Arm, seed: int) -> list[str]:
    """The command of one run, as a user would type it."""
    folder = experiment.run_folder(arm.name, seed)
    own = [f"run_dir={folder}", f"data.seed={seed}"]
    if arm.harvest is not None:
        own.append(f"data.train_files={_harvest_file(experiment, arm, seed)}")
    return [sys.executable, "-m", "code_a1_recipe", experiment.preset, *experiment.overrides, *arm.overrides, *own]


def _harvest_file(experiment: Experiment, arm: Arm, seed: int) -> Path:
    return experiment.folder / arm.name / f"tests_seed{seed}.jsonl"


# ------------------------------ one run ------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The process of one run."""

    arm: Arm
    seed: int
    folder: Path
    log: dict[str, Any]
    """Content of ``seed<n>.json``."""
    process: subprocess.Popen[bytes]
    started: float

    @classmethod
    def start(cls, experiment: Experiment, arm: Arm, seed: int, *, parallel: int) -> "_Run":
        """Start it, or go on with it.

        Raises:
            InputError: its tests cannot be harvested, or another process works in its folder.
        """
        folder = experiment.run_folder(arm.name, seed)
        spent = log_of(experiment, arm, seed).get("wall_seconds", 0.0)
        if folder.exists() and not any((folder / "checkpoints").glob("latest_checkpointed_iteration.txt")):
            with RunFolder(folder).lock():
                shutil.rmtree(folder)  # it was cut off, and nothing of it can be resumed
            spent = 0.0
        folder.parent.mkdir(parents=True, exist_ok=True)
        if arm.harvest is not None:
            try:
                run, target = experiment.run_folder(arm.harvest, seed), _harvest_file(experiment, arm, seed)
                harvest_tests(HarvestOptions(run=run, output=target, minimise=False, overwrite=True))
            except (InputError, OSError) as error:
                raise InputError(f"arm {arm.name!r}, seed {seed}: {error}") from error
        command = command_of(experiment, arm, seed)
        settings = settings_of(experiment, arm)
        log = {"settings": settings, "command": command[1:], "wall_seconds": spent, "parallel": parallel}
        _write(folder.with_suffix(".json"), log)
        with folder.with_suffix(".log").open("a", encoding="utf-8") as output:
            # In a session of its own Ctrl-C reaches it once, from here, and also where this process ignores it.
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        return cls(arm=arm, seed=seed, folder=folder, log=log, process=process, started=time.monotonic())

    def progress(self) -> str:
        return f"{self.arm.name} seed {self.seed} step {_last_step(RunFolder(self.folder).metrics)}"

    def finish(self) -> None:
        """Note how long it took and, where it ended well, that the run is finished.

        Raises:
            InputError: it ended badly.
        """
        self.log["wall_seconds"] = round(self.log["wall_seconds"] + time.monotonic() - self.started, 1)
        _write(self.folder.with_suffix(".json"), self.log)
        if self.process.returncode:
            output = self.folder.with_suffix(".log")
            tail = output.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:]
            raise InputError(
                f"the run of arm {self.arm.name!r}, seed {self.seed} ended with status {self.process.returncode}. Its "
                f"log {output} ends with:\n{tail}\nRuns that are finished stay; repeat the command to go on"
            )
        _write(self.folder / FINISHED, self.log)


def _last_step(metrics: Path) -> int:
    """The newest step, from the end of the file alone; 0 where there is none, also while it is being written."""
    try:
        with metrics.open("rb") as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - _BYTES_OF_A_ROW))
            return int(json.loads(handle.read().splitlines()[-1])["step"])
    except (OSError, ValueError, LookupError, TypeError):
        return 0


def _end(running: Sequence[_Run]) -> None:
    """End what still runs, each as by Ctrl-C, so that it can end its own processes."""
    for run in running:
        run.process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + _GRACE_SECONDS
    for run in running:
        try:
            run.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            run.process.terminate()
            run.process.wait()


def _write(path: Path, content: dict[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=2) + "\n")
