"""What an experiment is checked for before its first run: nothing starts that cannot end, and nothing is deleted."""

import json
from collections.abc import Sequence
from typing import Any

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.config.run_config import RunConfig
from code_a1_recipe.errors import SettingsError
from code_a1_recipe.training.preflight import START_RULES

from .grid import FINISHED, Arm, Experiment

Place = tuple[Arm, int]
"""An arm and a seed."""


def check_experiment(experiment: Experiment, wanted: Sequence[Place], pending: Sequence[Place]) -> None:
    """Settings of every arm that is wanted, and what its runs in the folder were made with.

    Raises:
        SettingsError: what cannot work, with the arm.
    """
    arms = {arm.name: arm for arm in experiment.arms}
    for arm in dict.fromkeys(arm for arm, _ in wanted):
        try:
            config = _config_of(experiment, arm)
            if arm.harvest is not None:
                _check_harvest(config, _config_of(experiment, arms[arm.harvest]), arm)
        except SettingsError as error:
            raise SettingsError(*(f"arms.{arm.name}: {problem}" for problem in error.args)) from error
    for arm, seed in wanted:
        _check_command(experiment, arm, seed)
    for arm, seed in pending:
        _check_place(experiment, arm, seed)
    names = {(arm.name, seed) for arm, seed in pending}
    for arm, seed in pending:
        if arm.harvest and (arm.harvest, seed) not in names and not experiment.is_finished(arm.harvest, seed):
            raise SettingsError(
                f"arm {arm.name!r} takes the tests of arm {arm.harvest!r}, seed {seed}, which has no finished run; "
                "run that arm as well"
            )


def _check_command(experiment: Experiment, arm: Arm, seed: int) -> None:
    """Refuse to count, or to go on with, a run that was made with other settings."""
    known = log_of(experiment, arm, seed).get("settings")
    wanted = settings_of(experiment, arm)
    if known is not None and known != wanted and experiment.run_folder(arm.name, seed).exists():
        changed = sorted(set(known) ^ set(wanted)) or wanted
        raise SettingsError(
            f"arms.{arm.name}: its run of seed {seed} in {experiment.folder} was made with other settings "
            f"({', '.join(changed)}); name another folder, or remove {experiment.run_folder(arm.name, seed)}"
        )


def _config_of(experiment: Experiment, arm: Arm) -> RunConfig:
    return read_config(experiment.preset, [*experiment.overrides, *arm.overrides], rules=START_RULES)


def _check_harvest(config: RunConfig, source: RunConfig, arm: Arm) -> None:
    if source.episode.num_suites == 0:
        raise SettingsError(
            f"harvest: {arm.harvest!r} has no Test LLM (episode.num_suites=0), so no tests; name another"
        )
    if config.rewards.code_tests != "golden":
        raise SettingsError(
            f"harvest gives the tests for rewards.code_tests=golden, but the arm has {config.rewards.code_tests!r}; "
            "add arm=static"
        )
    if config.data.train_files:
        files = list(config.data.train_files)
        raise SettingsError(f"harvest gives data.train_files, but the settings name {files!r} as well; leave one out")


def _check_place(experiment: Experiment, arm: Arm, seed: int) -> None:
    """Refuse to start a run where something lies that this experiment did not make: to start anew deletes it."""
    folder = experiment.run_folder(arm.name, seed)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise SettingsError(
            f"{folder} must be a folder, where the run of arm {arm.name!r}, seed {seed} goes; move it away"
        )
    if folder.is_dir() and any(folder.iterdir()) and "settings" not in log_of(experiment, arm, seed):
        raise SettingsError(
            f"{folder} holds what this experiment did not make (no {folder.name}.json is beside it); move it away"
        )


def settings_of(experiment: Experiment, arm: Arm) -> list[str]:
    """What makes a run of this arm, but for its seed and place."""
    harvested = [] if arm.harvest is None else [f"harvest={arm.harvest}"]
    return [experiment.preset, *experiment.overrides, *arm.overrides, *harvested]


def log_of(experiment: Experiment, arm: Arm, seed: int) -> dict[str, Any]:
    """What is known of a run's earlier processes; of a finished run that was brought here, what it says itself."""
    folder = experiment.run_folder(arm.name, seed)
    for path in (folder.with_suffix(".json"), folder / FINISHED):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(found, dict) and isinstance(found.get("settings"), list):
            seconds = found.get("wall_seconds")
            return found | {"wall_seconds": seconds if isinstance(seconds, int | float) else 0.0}
    return {}
