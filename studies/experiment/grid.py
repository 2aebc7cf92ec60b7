"""The file of an experiment: a grid of arms and seeds.

It is YAML::

    preset: cpu                     # or the path of a YAML file
    folder: outputs/micro_arms      # default: outputs/<name of the file>
    seeds: [0, 1, 2]
    overrides: [trainer.save_freq=-1]   # of every run
    arms:
      code_a1: [arm=code_a1]
      golden_1: [arm=golden, rewards.num_golden=1]
      static:
        overrides: [arm=static]
        harvest: code_a1            # the run of this arm and the same seed; its tests become data.train_files

Run (arm, seed) lives in ``<folder>/<arm>/seed<seed>`` with ``data.seed=<seed>``; see ``runs``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from code_a1_recipe.errors import InputError

EXPERIMENT_FILE = "experiment.yaml"
"""In an experiment's folder: the file as it was when it last ran."""
FINISHED = "finished.json"
"""Written into a run's folder when its process has ended well."""
_OWN_KEYS = ("run_dir", "data.seed")
"""Set by the experiment for each run."""
_KEYS = ("preset", "folder", "seeds", "overrides", "arms")
_ARM_KEYS = ("overrides", "harvest")


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
    def load(cls, path: Path) -> "Experiment":
        """Read and check a file.

        Raises:
            InputError: it cannot be read, or a key or value cannot work.
        """
        try:
            text = path.read_text(encoding="utf-8")
            # OmegaConf refuses a key that stands there twice, of which YAML's own loader takes the last.
            raw = OmegaConf.to_container(OmegaConf.create(text)) if text.strip() else None
        except (OSError, UnicodeDecodeError, yaml.YAMLError, OmegaConfBaseException) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
        if not isinstance(raw, dict):
            raise InputError(f"{path} must be a mapping with the keys {', '.join(_KEYS)}")
        if unknown := sorted(set(raw) - set(_KEYS)):
            raise InputError(f"{path}: unknown keys {unknown}; known: {', '.join(_KEYS)}")
        seeds = raw.get("seeds", [0])
        if not isinstance(seeds, list) or not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
            raise InputError(f"{path}: seeds must be a list of integers of at least 0, got {seeds!r}")
        if len(set(seeds)) < len(seeds):
            raise InputError(f"{path}: every seed runs once, got seeds {seeds!r}; remove the repeated ones")
        for key in ("preset", "folder"):
            if not isinstance(raw.get(key, ""), str):
                raise InputError(f"{path}: {key} must be text, got {raw[key]!r}")
        arms = raw.get("arms")
        if not isinstance(arms, dict) or not arms:
            raise InputError(f"{path}: arms must map names to lists of overrides, got {arms!r}")
        found = tuple(_arm(path, name, value) for name, value in arms.items())
        for number, arm in enumerate(found):
            if arm.harvest is not None and arm.harvest not in [earlier.name for earlier in found[:number]]:
                raise InputError(f"{path}: arms.{arm.name}.harvest must name an arm above it, got {arm.harvest!r}")
        return cls(
            preset=raw.get("preset") or "cpu",
            folder=Path(raw.get("folder") or Path("outputs") / path.stem).absolute(),
            seeds=tuple(seeds),
            overrides=_overrides(path, "overrides", raw.get("overrides") or []),
            arms=found,
            text=text,
        )

    def run_folder(self, arm: str, seed: int) -> Path:
        return self.folder / arm / f"seed{seed}"

    def is_finished(self, arm: str, seed: int) -> bool:
        return (self.run_folder(arm, seed) / FINISHED).is_file()

    def runs(self) -> Iterator[tuple[Arm, int]]:
        """Seed by seed, so that an experiment cut short has all arms of its first seeds."""
        for seed in self.seeds:
            for arm in self.arms:
                yield arm, seed


def _arm(path: Path, name: Any, value: Any) -> Arm:
    place = f"arms.{name}"
    if not isinstance(name, str):
        raise InputError(f"{path}: {place}: a name must be text; put it in quotes")
    if not re.fullmatch(r"[^\W_][\w-]*", name):
        raise InputError(f"{path}: {place}: the name becomes a folder; use letters, digits, - and _")
    if isinstance(value, dict):
        if unknown := sorted(set(value) - set(_ARM_KEYS)):
            raise InputError(f"{path}: unknown keys under {place}: {unknown}; known: {', '.join(_ARM_KEYS)}")
        overrides = _overrides(path, f"{place}.overrides", value.get("overrides") or [])
        return Arm(name=name, overrides=overrides, harvest=value.get("harvest"))
    return Arm(name=name, overrides=_overrides(path, place, value or []))


def _overrides(path: Path, place: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and "=" in item[1:] for item in value):
        raise InputError(f"{path}: {place} must be a list of key=value, got {value!r}")
    for item in value:
        if item.partition("=")[0].lstrip("+~") in _OWN_KEYS:
            raise InputError(f"{path}: {place} sets {item!r}, which the experiment sets for each run; leave it out")
    return tuple(value)
