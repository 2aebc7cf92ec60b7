"""``code-a1 experiment FILE``: a grid of arms and seeds, resumable after any stop.

FILE is YAML::

    preset: cpu                     # or the path of a YAML file
    folder: outputs/micro_arms      # default: outputs/<name of FILE>
    seeds: [0, 1, 2]
    overrides: [trainer.save_freq=-1]   # of every run
    arms:
      code_a1: [arm=code_a1]
      golden_1: [arm=golden, rewards.num_golden=1]
      static:
        overrides: [arm=static]
        harvest: code_a1            # the run of this arm and the same seed; its tests become data.train_files

Run (arm, seed) lives in ``<folder>/<arm>/seed<seed>`` with ``data.seed=<seed>``; a finished one is never run again.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tqdm import tqdm

from ..compose import compose_config
from ..settings import SettingsError
from ..value_checks import check_settings

EXPERIMENT_FILE = "experiment.yaml"
"""In an experiment's folder: the file as it was when it last ran."""
FINISHED = "finished.json"
"""Written into a run's folder when its process has ended well."""
_POLL_SECONDS = 1.0
_LOG_TAIL = 2000
_GRACE_SECONDS = 60.0
"""For a run to end its processes after Ctrl-C."""
_KEYS = ("preset", "folder", "seeds", "overrides", "arms")
_ARM_KEYS = ("overrides", "harvest")


class ExperimentError(ValueError):
    """An experiment that cannot run; says which key, what it holds and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    name: str
    overrides: tuple[str, ...]
    harvest: str | None = None
    """Arm whose run of the same seed gives the tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A grid of runs."""

    preset: str
    folder: Path
    seeds: tuple[int, ...]
    overrides: tuple[str, ...]
    arms: tuple[Arm, ...]
    text: str
    """The file."""

    @classmethod
    def load(cls, path: Path) -> Experiment:
        """Read and check a file.

        Raises:
            ExperimentError: it cannot be read, or a key or value cannot work.
        """
        try:
            text = path.read_text(encoding="utf-8")
            raw = yaml.safe_load(text)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ExperimentError(f"{path} cannot be read: {error}") from error
        if not isinstance(raw, dict):
            raise ExperimentError(f"{path} must be a mapping with the keys {', '.join(_KEYS)}")
        if unknown := sorted(set(raw) - set(_KEYS)):
            raise ExperimentError(f"{path}: unknown keys {unknown}; known: {', '.join(_KEYS)}")
        seeds = raw.get("seeds", [0])
        if not isinstance(seeds, list) or not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
            raise ExperimentError(f"{path}: seeds must be a list of integers of at least 0, got {seeds!r}")
        arms = raw.get("arms")
        if not isinstance(arms, dict) or not arms:
            raise ExperimentError(f"{path}: arms must map names to lists of overrides, got {arms!r}")
        found = tuple(_arm(path, str(name), value) for name, value in arms.items())
        for number, arm in enumerate(found):
            if arm.harvest is not None and arm.harvest not in [earlier.name for earlier in found[:number]]:
                raise ExperimentError(f"{path}: arms.{arm.name}.harvest must name an arm above it, got {arm.harvest!r}")
        return cls(
            preset=str(raw.get("preset", "cpu")),
            folder=Path(raw.get("folder") or Path("outputs") / path.stem).absolute(),
            seeds=tuple(dict.fromkeys(seeds)),
            overrides=_overrides(path, "overrides", raw.get("overrides") or []),
            arms=found,
            text=text,
        )

    def run_folder(self, arm: str, seed: int) -> Path:
        return self.folder / arm / f"seed{seed}"

    def runs(self) -> Iterator[tuple[Arm, int]]:
        """Seed by seed, so that an experiment cut short has all arms of its first seeds."""
        for seed in self.seeds:
            for arm in self.arms:
                yield arm, seed


def _arm(path: Path, name: str, value: Any) -> Arm:
    place = f"arms.{name}"
    if not name or any(character in name for character in "/\\ ") or name.startswith("."):
        raise ExperimentError(f"{path}: {place}: the name becomes a folder; use letters, digits, - and _")
    if isinstance(value, dict):
        if unknown := sorted(set(value) - set(_ARM_KEYS)):
            raise ExperimentError(f"{path}: unknown keys under {place}: {unknown}; known: {', '.join(_ARM_KEYS)}")
        overrides = _overrides(path, f"{place}.overrides", value.get("overrides") or [])
        return Arm(name=name, overrides=overrides, harvest=value.get("harvest"))
    return Arm(name=name, overrides=_overrides(path, place, value or []))


def _overrides(path: Path, place: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and "=" in item for item in value):
        raise ExperimentError(f"{path}: {place} must be a list of key=value, got {value!r}")
    for item in value:
        if item.partition("=")[0] in ("run_dir", "data.seed"):
            raise ExperimentError(
                f"{path}: {place} sets {item!r}, which the experiment sets for each run; leave it out"
            )
    return tuple(value)


def run_experiment(
    experiment: Experiment, *, arms: Sequence[str] = (), seeds: Sequence[int] = (), parallel: int = 1
) -> list[Path]:
    """Run what is not finished yet; returns the folders of all finished runs asked for.

    Args:
        arms: only these; all if empty.
        seeds: only these; all if empty.
        parallel: runs at once on this machine, at least 1; each has the memory and processes of a whole run.

    Raises:
        SettingsError: a name is unknown, or an arm's settings cannot work; nothing was run.
        ExperimentError: a run broke off (the others stay; run again to go on). No new ones were started then.
    """
    if parallel < 1:
        raise SettingsError(f"parallel must be at least 1 run at once, got {parallel}")
    _check(experiment, arms, seeds)
    wanted = [
        (arm, seed)
        for arm, seed in experiment.runs()
        if (not arms or arm.name in arms) and (not seeds or seed in seeds)
    ]
    experiment.folder.mkdir(parents=True, exist_ok=True)
    (experiment.folder / EXPERIMENT_FILE).write_text(experiment.text, encoding="utf-8")
    pending = [(arm, seed) for arm, seed in wanted if not _is_finished(experiment, arm.name, seed)]
    _check_harvests(experiment, pending)
    running: list[_Run] = []
    broken: ExperimentError | None = None
    with tqdm(total=len(wanted), initial=len(wanted) - len(pending), unit="run", desc="experiment") as bar:
        try:
            while running or (pending and broken is None):
                while broken is None and len(running) < parallel:
                    if (ready := _first_ready(experiment, pending)) is None:
                        break
                    pending.remove(ready)
                    running.append(_Run.start(experiment, *ready, parallel=parallel))
                bar.set_postfix_str(", ".join(run.progress() for run in running), refresh=sys.stderr.isatty())
                time.sleep(_POLL_SECONDS)
                for run in [run for run in running if run.process.poll() is not None]:
                    running.remove(run)
                    try:
                        run.finish()
                        bar.update()
                    except ExperimentError as error:
                        broken = broken or error  # those that still run are let finish
        finally:
            _end(running)
    if broken is not None:
        raise broken
    return [experiment.run_folder(arm.name, seed) for arm, seed in wanted]


def _is_finished(experiment: Experiment, arm: str, seed: int) -> bool:
    return (experiment.run_folder(arm, seed) / FINISHED).is_file()


def _check_harvests(experiment: Experiment, pending: Sequence[tuple[Arm, int]]) -> None:
    names = {(arm.name, seed) for arm, seed in pending}
    for arm, seed in pending:
        if arm.harvest is None or (arm.harvest, seed) in names or _is_finished(experiment, arm.harvest, seed):
            continue
        raise SettingsError(
            f"arm {arm.name!r} takes the tests of arm {arm.harvest!r}, seed {seed}, which has no finished run; "
            "run that arm as well"
        )


def _first_ready(experiment: Experiment, pending: Sequence[tuple[Arm, int]]) -> tuple[Arm, int] | None:
    """The first run that waits for no other one's tests."""
    for arm, seed in pending:
        if arm.harvest is None or _is_finished(experiment, arm.harvest, seed):
            return arm, seed
    return None


def _check(experiment: Experiment, arms: Sequence[str], seeds: Sequence[int]) -> None:
    known = [arm.name for arm in experiment.arms]
    if unknown := sorted(set(arms) - set(known)):
        raise SettingsError(f"unknown arms {unknown}; known: {', '.join(known)}")
    if absent := sorted(set(seeds) - set(experiment.seeds)):
        raise SettingsError(f"seeds {absent} are not in the experiment; it has {list(experiment.seeds)}")
    for arm in experiment.arms:
        if not arms or arm.name in arms:
            try:
                check_settings(compose_config(experiment.preset, [*experiment.overrides, *arm.overrides]))
            except SettingsError as error:
                raise SettingsError(f"arms.{arm.name}: {error}") from error


def command_of(experiment: Experiment, arm: Arm, seed: int) -> list[str]:
    """The command of one run, as a user would type it."""
    folder = experiment.run_folder(arm.name, seed)
    own = [f"run_dir={folder}", f"data.seed={seed}"]
    if arm.harvest is not None:
        own.append(f"data.train_files={_harvest_file(experiment, arm, seed)}")
    return [sys.executable, "-m", "code_a1_recipe", experiment.preset, *experiment.overrides, *arm.overrides, *own]


def _harvest_file(experiment: Experiment, arm: Arm, seed: int) -> Path:
    return experiment.folder / arm.name / f"tests_seed{seed}.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The process of one run."""

    arm: Arm
    seed: int
    folder: Path
    command: Sequence[str]
    process: subprocess.Popen[bytes]
    started: float
    parallel: int

    @classmethod
    def start(cls, experiment: Experiment, arm: Arm, seed: int, *, parallel: int) -> _Run:
        folder = experiment.run_folder(arm.name, seed)
        if folder.exists() and not _has_checkpoint(folder):
            shutil.rmtree(folder)  # it was cut off, and nothing of it can be resumed
        folder.parent.mkdir(parents=True, exist_ok=True)
        if arm.harvest is not None:
            from .harvest import harvest

            harvest(experiment.run_folder(arm.harvest, seed), _harvest_file(experiment, arm, seed))
        command = command_of(experiment, arm, seed)
        with folder.with_suffix(".log").open("a", encoding="utf-8") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        return cls(
            arm=arm, seed=seed, folder=folder, command=command, process=process, started=time.monotonic(),
            parallel=parallel,
        )  # fmt: skip

    def progress(self) -> str:
        return f"{self.arm.name} seed {self.seed} step {_last_step(self.folder)}"

    def finish(self) -> None:
        """Note that the run is finished.

        Raises:
            ExperimentError: it ended badly.
        """
        if self.process.returncode:
            log = self.folder.with_suffix(".log")
            tail = log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:]
            raise ExperimentError(
                f"the run of arm {self.arm.name!r}, seed {self.seed} ended with status {self.process.returncode}. Its "
                f"log {log} ends with:\n{tail}\nRuns that are finished stay; repeat the command to go on"
            )
        seconds = round(time.monotonic() - self.started, 1)
        content = {"command": list(self.command[1:]), "wall_seconds": seconds, "parallel": self.parallel}
        partial = self.folder / f"{FINISHED}.partial"
        partial.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        partial.replace(self.folder / FINISHED)


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


def _has_checkpoint(folder: Path) -> bool:
    return any((folder / "checkpoints").glob("latest_checkpointed_iteration.txt"))


def _last_step(folder: Path) -> int:
    try:
        with (folder / "metrics.jsonl").open("rb") as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - 100_000))
            lines = handle.read().splitlines()
        return int(json.loads(lines[-1])["step"]) if lines else 0
    except (OSError, ValueError, KeyError):
        return 0
