"""A run folder as the source of rollouts: the settings and questions that its rewards were made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import Limits

from .settings import RewardSettings, SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What a run's ``resolved_config.yaml`` says about rewards."""

    rewards: RewardSettings
    share_suites: bool
    num_cases: int
    limits: Limits
    tier: int
    allow_missing: tuple[str, ...]
    seed: int
    question_files: list[Path]
    """Training and held-out questions."""
    adapter: str
    columns: Mapping[str, str] | None


def find_run(inputs: Sequence[Path]) -> RecordedRun | None:
    """The run that wrote the inputs, by the ``resolved_config.yaml`` beside or above them; None without one.

    Raises:
        SettingsError: the inputs come from several runs, or the file cannot be read.
    """
    found = {config.resolve() for path in inputs if (config := _config_of(path)) is not None}
    if len(found) > 1:
        raise SettingsError(
            f"the inputs belong to {len(found)} runs ({', '.join(str(path.parent) for path in sorted(found))}); score "
            "each run with a command and an output of its own"
        )
    return _read(found.pop()) if found else None


def _config_of(path: Path) -> Path | None:
    place = path.absolute()
    for folder in (place, place.parent, place.parent.parent)[: 2 if path.is_dir() else 3]:
        config = folder / "resolved_config.yaml"
        if config.is_file():
            return config
    return None


def _read(path: Path) -> RecordedRun:
    import yaml  # here: most scoring runs read none

    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        data = raw["data"]
        return RecordedRun(
            rewards=RewardSettings.from_mapping(raw["rewards"], where="rewards"),
            share_suites=bool(raw["episode"].get("share_suites")),
            num_cases=int(raw["episode"]["cases_per_suite"]),
            limits=Limits.from_mapping(raw["sandbox"].get("limits") or {}, where="sandbox.limits"),
            tier=int(raw["sandbox"].get("tier") or 0),
            allow_missing=tuple(raw["sandbox"].get("allow_missing") or ()),
            seed=int(data["seed"]),
            question_files=[file for key in ("train_files", "val_files") for file in _paths(data[key])],
            adapter=data.get("adapter", "auto"),
            columns=data.get("columns") or None,
        )
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise SettingsError(f"{path} is no configuration of a run: {type(error).__name__}: {error}") from error


def _paths(value: Any) -> list[Path]:
    return [Path(item) for item in value] if isinstance(value, list) else [Path(str(value))]
