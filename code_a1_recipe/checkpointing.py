"""One directory per saved step with everything a resume needs, renamed into place when it is whole.

Layout of ``checkpoints/global_step_<n>``: ``code/`` and ``test/`` (verl's actor checkpoints), ``mistake_book.json``,
``data.pt`` (position and order of the questions), ``state.json`` (step and what the run was).
``checkpoints/latest_checkpointed_iteration.txt`` names the newest step and is written last.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

TRACKER_NAME = "latest_checkpointed_iteration.txt"
STATE_NAME = "state.json"
BOOK_NAME = "mistake_book.json"
DATA_NAME = "data.pt"

_STEP_FOLDER = re.compile(r"global_step_(\d+)")


class CheckpointError(RuntimeError):
    """A checkpoint is missing, damaged, or belongs to another run; shown to the user as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A whole checkpoint on disk."""

    folder: Path
    step: int

    @property
    def book(self) -> Path:
        return self.folder / BOOK_NAME

    @property
    def data(self) -> Path:
        return self.folder / DATA_NAME

    def check_fits(self, identity: Mapping[str, Any]) -> None:
        """Refuse a checkpoint of another run.

        Args:
            identity: what the run that resumes is, see ``preflight.run_identity``.

        Raises:
            CheckpointError: names each key that differs, with both values.
        """
        saved = self.state()
        differing = [key for key in identity if saved.get(key) != identity[key]]
        if differing:
            shown = "; ".join(f"{key}: saved {saved.get(key)!r}, now {identity[key]!r}" for key in differing)
            raise CheckpointError(
                f"{self.folder} does not fit this run ({shown}); use the saved values, or another run_dir"
            )

    def state(self) -> dict[str, Any]:
        """What the run was when it saved.

        Raises:
            CheckpointError: the file is missing or damaged.
        """
        path = self.folder / STATE_NAME
        try:
            state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"{path} is missing or damaged ({error}); resume from another step with "
                "trainer.resume_mode=resume_path trainer.resume_from_path=<folder of a step>"
            ) from error
        return state


def step_folder(root: Path, step: int) -> Path:
    return root / f"global_step_{step}"


@contextmanager
def writing(root: Path, step: int) -> Iterator[Path]:
    """A folder to write a checkpoint into; renamed and announced when the block ends without an error.

    A half-written folder of an earlier attempt is removed first. On an error the partial folder stays for a look
    and the latest checkpoint stays the one before.
    """
    partial = root / f"global_step_{step}.partial"
    if partial.exists():
        shutil.rmtree(partial)
    partial.mkdir(parents=True)
    yield partial
    final = step_folder(root, step)
    if final.exists():
        shutil.rmtree(final)
    partial.rename(final)
    _write_text(root / TRACKER_NAME, str(step))


def _write_text(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    partial.replace(path)


def write_state(folder: Path, state: Mapping[str, Any]) -> None:
    _write_text(folder / STATE_NAME, json.dumps(dict(state), indent=1, sort_keys=True))


def saved_steps(root: Path) -> list[int]:
    """Steps with a whole checkpoint, oldest first."""
    if not root.is_dir():
        return []
    matches = (_STEP_FOLDER.fullmatch(path.name) for path in root.iterdir())
    return sorted(int(match.group(1)) for match in matches if match)


def keep_newest(root: Path, count: int | None) -> None:
    """Remove all but the newest ``count`` checkpoints; None keeps all."""
    if count is None:
        return
    for step in saved_steps(root)[: -max(1, count)]:
        shutil.rmtree(step_folder(root, step))
        logger.info("removed checkpoint of step=%d", step)


def find_checkpoint(root: Path, *, mode: str, path: str | None) -> Checkpoint | None:
    """The checkpoint to resume from, or None to start afresh.

    Args:
        root: folder of all checkpoints of a run.
        mode: verl's ``trainer.resume_mode``: "auto" (the latest, if there is one), "disable", "resume_path".
        path: for "resume_path", the folder of one step.

    Raises:
        CheckpointError: an unknown mode, or the named checkpoint is not there.
    """
    if mode == "disable":
        return None
    if mode == "resume_path":
        return _checkpoint_at(Path(path or ""))
    if mode != "auto":
        raise CheckpointError(f"unknown trainer.resume_mode {mode!r}; known: auto, disable, resume_path")
    tracker = root / TRACKER_NAME
    if not tracker.is_file():
        return None
    text = tracker.read_text(encoding="utf-8").strip()
    if not text.isdigit():
        raise CheckpointError(f"{tracker} must hold a step number, got {text!r}; known steps: {saved_steps(root)}")
    return _checkpoint_at(step_folder(root, int(text)))


def _checkpoint_at(folder: Path) -> Checkpoint:
    match = _STEP_FOLDER.fullmatch(folder.name)
    if match is None or not folder.is_dir():
        raise CheckpointError(
            f"no checkpoint at {folder}: expected an existing folder named global_step_<n>; "
            f"known beside it: {saved_steps(folder.parent)}"
        )
    return Checkpoint(folder=folder, step=int(match.group(1)))
