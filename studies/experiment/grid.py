"""Reads the YAML file of an experiment: a grid of arms and seeds.

Example::

    preset: cpu                     # or the path of a YAML file
    folder: outputs/micro_arms      # default: outputs/<name of the file>
    seeds: [0, 1, 2]
    overrides: [trainer.save_freq=-1]   # settings of every run
    arms:
      code_a1: [arm=code_a1]
      golden_1: [arm=golden, rewards.num_golden=1]
      static:
        overrides: [arm=static]
        harvest: code_a1            # tests of this arm's run with the same seed become data.train_files

The run of an arm and a seed has the folder ``<folder>/<arm>/seed<seed>`` and the setting ``data.seed=<seed>``.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import yaml
from msgspec import Meta
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from code_a1_recipe.errors import InputError

EXPERIMENT_FILE = "experiment.yaml"
"""Name of the copy of the experiment's file in the experiment's folder."""
FINISHED = "finished.json"
"""Name of the file that is written into a run's folder when the run has ended without error."""
SET_BY_THE_EXPERIMENT = ("run_dir", "data.seed")
"""Settings that the experiment's file must not contain."""

Override = Annotated[str, Meta(pattern="^[^=]+=")]
Seed = Annotated[int, Meta(ge=0)]


class Arm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings that the runs of an arm share."""

    overrides: tuple[Override, ...] = ()
    harvest: str | None = None
    """Name of another arm. The tests of that arm's run with the same seed become the training data."""


class GridFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of an experiment's file."""

    preset: str = "cpu"
    folder: str | None = None
    seeds: Annotated[tuple[Seed, ...], Meta(min_length=1)] = (0,)
    overrides: tuple[Override, ...] = ()
    arms: Annotated[dict[str, tuple[Override, ...] | Arm], Meta(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A grid of runs."""

    preset: str
    folder: Path
    seeds: tuple[int, ...]
    overrides: tuple[str, ...]
    arms: dict[str, Arm]
    text: str
    """The text of the experiment's file."""

    @classmethod
    def load(cls, path: Path) -> "Experiment":
        """Read and check an experiment's file.

        Raises:
            InputError: the file cannot be read, or a key or value is not allowed.
        """
        try:
            text = path.read_text(encoding="utf-8")
            # OmegaConf refuses repeated keys. Of several equal keys, YAML's own loader would silently use the last.
            grid = msgspec.convert(OmegaConf.to_container(OmegaConf.create(text)), GridFile)
        except (OSError, UnicodeDecodeError, yaml.YAMLError, OmegaConfBaseException, msgspec.ValidationError) as error:
            raise InputError(f"{path} is no experiment: {error}; see the example studies/micro_arms.yaml") from error
        arms = {}
        for name, settings in grid.arms.items():
            if not re.fullmatch(r"[A-Za-z0-9][\w-]*", name):
                raise InputError(
                    f"{path}: arms: a name must be letters, digits, - and _, got {name!r}; it becomes a folder's name"
                )
            arm = settings if isinstance(settings, Arm) else Arm(settings)
            if arm.harvest is not None and arm.harvest not in arms:
                raise InputError(f"{path}: arms.{name}.harvest must name an arm above it, got {arm.harvest!r}")
            _refuse_own_keys(path, name, arm.overrides)
            arms[name] = arm
        _refuse_own_keys(path, "overrides", grid.overrides)
        return cls(
            preset=grid.preset,
            folder=Path(grid.folder or Path("outputs") / path.stem).absolute(),
            seeds=tuple(dict.fromkeys(grid.seeds)),
            overrides=grid.overrides,
            arms=arms,
            text=text,
        )

    def run_folder(self, arm: str, seed: int) -> Path:
        """Return the folder of one run."""
        return self.folder / arm / f"seed{seed}"

    def is_finished(self, arm: str, seed: int) -> bool:
        """Say whether the run has ended without error."""
        return (self.run_folder(arm, seed) / FINISHED).is_file()

    def settings_of(self, arm: str) -> list[str]:
        """List all settings of an arm's runs, except seed and folder."""
        settings = [self.preset, *self.overrides, *self.arms[arm].overrides]
        if self.arms[arm].harvest is not None:
            settings.append(f"harvest={self.arms[arm].harvest}")
        return settings


def _refuse_own_keys(path: Path, place: str, overrides: tuple[str, ...]) -> None:
    for override in overrides:
        if override.partition("=")[0].lstrip("+~") in SET_BY_THE_EXPERIMENT:
            raise InputError(
                f"{path}: {place} sets {override!r}, but the experiment sets this key for each run; leave it out"
            )
