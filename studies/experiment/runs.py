"""Runs the processes of an experiment, one for each run of the grid. A finished run is never repeated.

``<folder>/<arm>/seed<n>`` is the folder of a run. Beside it, ``seed<n>.log`` has the output of the run, and
``seed<n>.json`` has its command and the time of its processes. A finished run has a ``finished.json`` in its folder. A
run that was interrupted resumes from its newest checkpoint. Without a checkpoint (``trainer.save_freq=-1``), it starts
anew.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import InputError, SettingsError
from code_a1_recipe.files import json_lines, write_whole
from code_a1_recipe.runs.folder import RunFolder, locked
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.tools.recorded.harvest import collect
from code_a1_recipe.training.preflight import START_RULES

from .grid import EXPERIMENT_FILE, FINISHED, Experiment

POLL_SECONDS = 1.0
GRACE_SECONDS = 60.0
"""Time that a run has to end its processes after an interruption."""
LOG_TAIL = 2000
MAX_TESTS = 32


class Place(NamedTuple):
    """The arm and the seed of one run of the grid."""

    arm: str
    seed: int

    def __str__(self) -> str:
        return f"arm {self.arm!r}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class StartedRun:
    """The process of one run."""

    place: Place
    process: subprocess.Popen[bytes]
    started: float


def run_experiment(
    experiment: Experiment, *, arms: Sequence[str] = (), seeds: Sequence[int] = (), parallel: int = 1
) -> None:
    """Run all runs of the grid that are not finished yet.

    Args:
        experiment: the grid.
        arms: names of the arms to run; empty for all arms.
        seeds: seeds to run; empty for all seeds.
        parallel: number of runs at the same time, at least 1. Each run needs the memory and the processes of a training
            run.

    Raises:
        SettingsError: an arm or a seed is unknown, or an arm's settings are not allowed, or an arm has existing runs
            with other settings. No run was started.
        InputError: another process works in the folder, or a run failed. Finished runs stay, and a repeated command
            resumes.
    """
    wanted = _chosen(experiment, arms, seeds)
    for arm in dict.fromkeys(place.arm for place in wanted):
        _check_settings(experiment, arm)
    for place in wanted:
        _check_folder(experiment, place)
    pending = [place for place in wanted if not experiment.is_finished(*place)]
    for place in pending:
        source = experiment.arms[place.arm].harvest
        if source and (source, place.seed) not in pending and not experiment.is_finished(source, place.seed):
            raise SettingsError(
                f"{place} needs the tests of arm {source!r}, which has no finished run; run that arm too"
            )
    experiment.folder.mkdir(parents=True, exist_ok=True)
    with locked(experiment.folder / "experiment.lock"):
        write_whole(experiment.folder / EXPERIMENT_FILE, experiment.text)
        with tqdm(total=len(wanted), initial=len(wanted) - len(pending), unit="run", desc="experiment") as bar:
            _run_all(experiment, pending, parallel, bar)


def _chosen(experiment: Experiment, arms: Sequence[str], seeds: Sequence[int]) -> list[Place]:
    if unknown := sorted(set(arms) - set(experiment.arms)):
        raise SettingsError(f"unknown arms {unknown}; known: {', '.join(experiment.arms)}")
    if unknown_seeds := sorted(set(seeds) - set(experiment.seeds)):
        raise SettingsError(f"seeds {unknown_seeds} are not in the experiment; it has {list(experiment.seeds)}")
    # All arms of one seed come before the next seed, so that an interrupted experiment has all arms of its first seeds.
    chosen = []
    for seed in experiment.seeds:
        for arm in experiment.arms:
            if (not arms or arm in arms) and (not seeds or seed in seeds):
                chosen.append(Place(arm, seed))
    return chosen


def _check_settings(experiment: Experiment, arm: str) -> None:
    settings = experiment.arms[arm]
    try:
        config = read_config(experiment.preset, [*experiment.overrides, *settings.overrides], rules=START_RULES)
    except SettingsError as error:
        raise SettingsError(*(f"arms.{arm}: {problem}" for problem in error.args)) from error
    if settings.harvest is not None and (config.rewards.code_tests != "golden" or config.data.train_files):
        raise SettingsError(
            f"arms.{arm}: harvest needs arm=static and sets data.train_files; leave data.train_files out"
        )


def _check_folder(experiment: Experiment, place: Place) -> None:
    """Refuse a folder that this experiment did not make, because a run that starts anew deletes its folder."""
    folder = experiment.run_folder(*place)
    if not folder.is_symlink() and not folder.exists():
        return
    known = _log_of(experiment, place).get("settings")
    if known is None or folder.is_symlink():
        raise SettingsError(f"{folder} was not made by this experiment ({place}); move it away")
    wanted = experiment.settings_of(place.arm)
    if known != wanted:
        changed = sorted(set(known) ^ set(wanted)) or wanted
        raise SettingsError(
            f"{folder} was made with other settings ({', '.join(changed)}); name another folder, or remove it"
        )


def _log_of(experiment: Experiment, place: Place) -> dict[str, Any]:
    """Read the log of the run's earlier processes. If a finished run was copied here, its log is in the run's
    folder."""
    folder = experiment.run_folder(*place)
    for path in (folder.with_suffix(".json"), folder / FINISHED):
        if path.is_file():
            try:
                log: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise InputError(f"{path} cannot be read: {error}; remove this file and the run {folder}") from error
            return log
    return {}


def _run_all(experiment: Experiment, pending: list[Place], parallel: int, bar: "tqdm[Any]") -> None:
    running: list[StartedRun] = []
    broken: InputError | None = None
    try:
        while running or (pending and broken is None):
            while broken is None and len(running) < parallel and (place := _first_ready(experiment, pending)):
                pending.remove(place)
                running.append(_start(experiment, place, parallel))
            time.sleep(POLL_SECONDS)
            for run in [run for run in running if run.process.poll() is not None]:
                running.remove(run)
                try:
                    _finish(experiment, run)
                    bar.update()
                except InputError as error:
                    broken = error  # running processes may finish, but no new process starts
    finally:
        _end(running)
    if broken is not None:
        raise broken


def _first_ready(experiment: Experiment, pending: Sequence[Place]) -> Place | None:
    """Find the first run that can start: it needs no tests, or the run that wrote the tests is finished."""
    for place in pending:
        source = experiment.arms[place.arm].harvest
        if source is None or experiment.is_finished(source, place.seed):
            return place
    return None


def command_of(experiment: Experiment, place: Place) -> list[str]:
    """Make the command line of one run."""
    arm = experiment.arms[place.arm]
    words = [sys.executable, "-m", "code_a1_recipe", experiment.preset, *experiment.overrides, *arm.overrides]
    words += [f"run_dir={experiment.run_folder(*place)}", f"data.seed={place.seed}"]
    if arm.harvest is not None:
        words.append(f"data.train_files={_harvest_file(experiment, place)}")
    return words


def _harvest_file(experiment: Experiment, place: Place) -> Path:
    return experiment.folder / place.arm / f"tests_seed{place.seed}.jsonl"


def _write_tests(run: Path, target: Path) -> None:
    """For each question, write the 32 tests that broke the most programs of a run.

    The stored results were made with these tests. ``code-a1 harvest`` keeps fewer tests, which break the same programs.
    """
    rows = []
    for found in collect(RunRecords.open(run)):
        rows.append({**asdict(found.question), "golden_tests": found.tests[:MAX_TESTS]})
    write_whole(target, json_lines(rows))


def _start(experiment: Experiment, place: Place, parallel: int) -> StartedRun:
    """Start a run, or resume it."""
    folder = experiment.run_folder(*place)
    spent = _log_of(experiment, place).get("wall_seconds") or 0.0
    if folder.exists() and not any((folder / "checkpoints").glob("latest_checkpointed_iteration.txt")):
        with RunFolder(folder).lock():
            shutil.rmtree(folder)  # the run was interrupted, and has no checkpoint to resume from
        spent = 0.0
    folder.parent.mkdir(parents=True, exist_ok=True)
    source = experiment.arms[place.arm].harvest
    if source is not None:
        run, target = experiment.run_folder(source, place.seed), _harvest_file(experiment, place)
        _write_tests(run, target)
    command, settings = command_of(experiment, place), experiment.settings_of(place.arm)
    log = {"settings": settings, "command": command[1:], "wall_seconds": spent, "parallel": parallel}
    _write_json(folder.with_suffix(".json"), log)
    with folder.with_suffix(".log").open("a", encoding="utf-8") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # The run has its own session, so it gets Ctrl-C only once, from `_end`.
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    return StartedRun(place=place, process=process, started=time.monotonic())


def _finish(experiment: Experiment, run: StartedRun) -> None:
    """Store the time that a run took. If the run ended without error, mark it as finished.

    Raises:
        InputError: the run ended with an error.
    """
    folder = experiment.run_folder(*run.place)
    log = _log_of(experiment, run.place)
    log["wall_seconds"] = round(log["wall_seconds"] + time.monotonic() - run.started, 1)
    _write_json(folder.with_suffix(".json"), log)
    if run.process.returncode:
        output = folder.with_suffix(".log")
        tail = output.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL:]
        raise InputError(
            f"the run of {run.place} ended with status {run.process.returncode}. Its log {output} ends with:\n{tail}\n"
            "Finished runs stay; repeat the command to resume"
        )
    _write_json(folder / FINISHED, log)


def _end(running: Sequence[StartedRun]) -> None:
    """End all running runs. Each run gets the signal of Ctrl-C, so that it can end its own processes."""
    for run in running:
        run.process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + GRACE_SECONDS
    for run in running:
        try:
            run.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            run.process.terminate()
            run.process.wait()


def _write_json(path: Path, content: dict[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=2) + "\n")
