"""A run folder as the source of rollouts: the settings and questions that its rewards were made with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import SettingsError
from ...runs.reader import RunRecords

if TYPE_CHECKING:
    from ...config.run_config import RunConfig


def find_run(inputs: Sequence[Path]) -> RunConfig | None:
    """The run that wrote the inputs: one of them is its folder, or lies in it; None without one.

    Raises:
        SettingsError: the inputs come from several runs, or its configuration cannot be read.
    """
    found = {run.folder.resolve(): run for path in inputs if (run := RunRecords.find(path, levels=_levels(path)))}
    if len(found) > 1:
        raise SettingsError(
            f"the inputs belong to {len(found)} runs ({', '.join(map(str, sorted(found)))}); score each run with a "
            "command and an output of its own"
        )
    if not found:
        return None
    from ...config.compose import recorded_config  # hydra; most scoring runs read no configuration

    return recorded_config(found.popitem()[1].paths.resolved_config)


def _levels(path: Path) -> int:
    """Folders from an input up to its run: run/rollouts/train_000001.jsonl."""
    return 1 if path.is_dir() else 2
