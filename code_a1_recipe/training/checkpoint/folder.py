"""The folder of a checkpoint. Each saved step has such a folder, with everything that a resumed run needs.

The folder gets its name only when all its files are written. ``checkpoints/global_step_<n>`` holds

- ``code/`` and ``test/``: verl's actor checkpoints (weights, optimizer, learning-rate schedule and random states of
  every rank)
- ``mistake_book.json``, ``metrics.json`` (the step's row), ``extensions.json`` (states of extensions, by name)
- ``data.pt`` (position and order of the questions), ``random_states.pt`` (random states of the trainer)
- ``state.json``: step, identity and configuration of the run, versions, sizes of the files

``checkpoints/latest_checkpointed_iteration.txt`` names the newest step and is written last. ``checkpoints/best.json``
names the step with the best validation, if the run asks for it.
"""

import json
import logging
import math
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...config.run_config import TrainerConfig
from ...config.verl_keys import leaves
from ...errors import CheckpointError, DiskFullError
from ...files import flush, write_whole

logger = logging.getLogger(__name__)

TRACKER_NAME = "latest_checkpointed_iteration.txt"
STATE_NAME = "state.json"
BOOK_NAME = "mistake_book.json"
DATA_NAME = "data.pt"
RANDOM_NAME = "random_states.pt"
ROW_NAME = "metrics.json"
EXTENSIONS_NAME = "extensions.json"
BEST_NAME = "best.json"
CHECKPOINTS = "checkpoints"
"""Name of the folder of all checkpoints in a run folder."""

_PARTIAL = ".partial"
_GIVEN_UP = "given_up_"

_QUESTION_KEYS = ("questions", "train_batch_size", "shuffle")
"""Keys of a run's identity that may differ if ``checkpoint.allow_new_questions`` is set."""
IDENTITY, ORIGIN, FILES = "identity", "origin", "files"
"""Keys of ``state.json`` for: the values that a resumed run must share; the checkpoint of another run from which this
run started; the size of each file of the checkpoint."""

FORMAT = 3
"""Version of the format of ``state.json`` and of the checkpoint's folder."""

ANOTHER_STEP = "resume from another step with resume=<folder of a step>"
_SPARE_BYTES = 64 << 20
_GROWTH = 1.1
"""A checkpoint may need up to this multiple of the previous checkpoint's size, since the Mistake Book grows."""

_STEP_FOLDER = re.compile(r"global_step_(\d+)")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint on disk."""

    folder: Path
    step: int

    def check_fits(self, identity: Mapping[str, Any], *, allow_new_questions: bool) -> bool:
        """Refuse the checkpoint of another run.

        Args:
            identity: the identity of the run that resumes, see ``preflight.run_identity``.
            allow_new_questions: accept other questions, and another number of questions in a step.

        Returns:
            Whether the run continues with the same questions in the same order.

        Raises:
            CheckpointError: keys differ. The message names each such key with both values.
        """
        state = self.state()
        saved = state.get(IDENTITY, {})
        differing = [key for key in sorted(saved.keys() | identity.keys()) if saved.get(key) != identity.get(key)]
        if allow_new_questions and differing and set(differing) <= set(_QUESTION_KEYS):
            return False
        if differing:
            differences = "; ".join(f"{key}: saved {saved.get(key)!r}, now {identity.get(key)!r}" for key in differing)
            hint = "use the saved values"
            if "format" in differing:
                hint = f"resume it with the release that saved it ({state.get('versions')})"
            raise CheckpointError(
                f"{self.folder} does not fit this run ({differences}); {hint}, or start another run: another run_dir, "
                "without resume=<path>"
            )
        return True

    def changed_settings(self, config: Mapping[str, Any]) -> list[str]:
        """List the settings that differ between the save and ``config`` (plain dictionaries) as ``key: old -> new``."""
        saved = self.state().get("config", {})
        old, new = ({key: value for key, value in leaves(tree) if value != {}} for tree in (saved, config))
        changed = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
        return [f"{key}: {old.get(key)!r} -> {new.get(key)!r}" for key in changed if not key.startswith(_NOT_COMPARED)]

    def state(self) -> dict[str, Any]:
        """Read ``state.json``.

        Raises:
            CheckpointError: the file is missing or damaged.
        """
        path = self.folder / STATE_NAME
        try:
            state = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path} is missing or damaged ({error}); {ANOTHER_STEP}") from error
        if not isinstance(state, dict):
            raise CheckpointError(f"{path} is damaged (it holds no object); {ANOTHER_STEP}")
        return state

    def check_whole(self) -> None:
        """Refuse a checkpoint that has lost a file or a part of a file.

        Raises:
            CheckpointError: a file is missing or has another size. The message names the first such file.
        """
        sizes = dict.fromkeys(_NEEDED) | self.state().get(FILES, {})
        for name, size in sizes.items():
            path = self.folder / name
            if not path.is_file():
                raise CheckpointError(f"{path} is missing; {ANOTHER_STEP}")
            found = path.stat().st_size
            if size not in (None, found):
                raise CheckpointError(f"{path} has {found} bytes, expected {size}; {ANOTHER_STEP}")


_NEEDED = (BOOK_NAME, DATA_NAME, RANDOM_NAME, ROW_NAME)

# Settings for the places of files and for resuming may differ at every start, so their changes are not shown.
_NOT_COMPARED = (
    "run_dir",
    "resume",
    "ray_kwargs",
    "trainer.resume",
    "trainer.default_local_dir",
    "trainer.val_before_train",
    "data.train_files",
    "data.val_files",
    "policies.code.model.path",
    "policies.test.model.path",
)


def step_folder(root: Path, step: int) -> Path:
    return root / f"global_step_{step}"


@contextmanager
def writing(root: Path, step: int) -> Iterator[Path]:
    """Yield a new folder for a checkpoint. If the block ends without an error, rename and announce the folder.

    On an error the partial folder is removed, since a full disk may be the reason. The previous checkpoint stays the
    latest.

    Raises:
        DiskFullError: there is less free room than a checkpoint needs. Nothing was written.
    """
    root.mkdir(parents=True, exist_ok=True)
    for left in root.glob(f"*{_PARTIAL}"):  # a killed run has left these folders
        shutil.rmtree(left, ignore_errors=True)
    _check_room(root)
    partial = root / f"global_step_{step}{_PARTIAL}"
    partial.mkdir()
    try:
        yield partial
        # Without the flush a power cut after the renaming could leave a folder of empty files that looks whole.
        for path in (*partial.rglob("*"), partial):
            flush(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _remove(step_folder(root, step))
    partial.rename(step_folder(root, step))
    # The tracker comes last. Until the tracker names this step, a start resumes from the previous checkpoint.
    announce(root, step)
    for given_up in root.glob(f"{_GIVEN_UP}*"):
        _remove(given_up)


def announce(root: Path, step: int) -> list[str]:
    """Name ``step`` in the tracker as the newest, and move later checkpoints aside until the next save removes them.

    Returns:
        The new names of the moved folders.
    """
    flush(root)
    write_whole(root / TRACKER_NAME, str(step))
    best = best_checkpoint(root)
    if best is not None and best["step"] > step:  # the run will reach that step again, with other weights
        (root / BEST_NAME).unlink()
    # The run goes on from ``step``, so the next start must not treat a later checkpoint as the newest.
    aside = {later: root / f"{_GIVEN_UP}{later}" for later in saved_steps(root) if later > step}
    for later, folder in aside.items():
        _remove(folder)
        step_folder(root, later).rename(folder)
    return [folder.name for folder in aside.values()]


def _remove(folder: Path) -> None:
    """Rename a folder and then remove it, so that a kill cannot leave a half-removed checkpoint that looks whole."""
    if folder.exists():
        aside = folder.with_name(f"{folder.name}.old{_PARTIAL}")
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
        shutil.rmtree(aside)


def _check_room(root: Path) -> None:
    steps = saved_steps(root)
    needed = _SPARE_BYTES
    if steps:  # the plan has checked the room for the first checkpoint
        needed += int(_GROWTH * sum(_sizes(step_folder(root, steps[-1])).values()))
    free = shutil.disk_usage(root).free
    if free < needed:
        raise DiskFullError(
            f"a checkpoint needs {needed >> 20} MiB in {root}, {free >> 20} MiB are free; make room, or lower "
            "trainer.max_actor_ckpt_to_keep"
        )


def _sizes(folder: Path) -> dict[str, int]:
    """Return the sizes in bytes of all files below a folder, by their relative paths."""
    return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def write_state(folder: Path, state: Mapping[str, Any]) -> None:
    """Write ``state.json`` of a checkpoint. Call this last, since it lists all files that the folder has by then."""
    write_whole(folder / STATE_NAME, json.dumps({**state, FILES: _sizes(folder)}, indent=1, sort_keys=True))


def saved_steps(root: Path) -> list[int]:
    """List the steps that have a whole checkpoint, oldest first."""
    if not root.is_dir():
        return []
    matches = (_STEP_FOLDER.fullmatch(path.name) for path in root.iterdir())
    return sorted(int(match.group(1)) for match in matches if match)


def keep_newest(root: Path, count: int | None) -> None:
    """Remove all checkpoints except the newest ``count`` and the best. If ``count`` is None, keep all."""
    if count is None:
        return
    best = best_checkpoint(root)
    for step in saved_steps(root)[: -max(1, count)]:
        if best is None or step != best["step"]:
            _remove(step_folder(root, step))
            logger.info("removed checkpoint of step=%d", step)


def best_checkpoint(root: Path) -> dict[str, Any] | None:
    """Return ``{"step", "metric", "value"}`` of the best checkpoint by validation, or None."""
    try:
        best = json.loads((root / BEST_NAME).read_bytes())
        step, metric, value = int(best["step"]), str(best["metric"]), float(best["value"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        if not isinstance(error, FileNotFoundError):
            logger.warning("%s is damaged and therefore ignored: %s", root / BEST_NAME, error)
        return None
    return {"step": step, "metric": metric, "value": value} if step_folder(root, step).is_dir() else None


def note_best(root: Path, *, step: int, metric: str, value: float) -> bool:
    """Remember the checkpoint of ``step`` if its ``value`` is above the best value so far.

    Returns:
        Whether the step is now the best. A step without a checkpoint is never the best.
    """
    best = best_checkpoint(root)
    if not step_folder(root, step).is_dir() or not math.isfinite(value):
        return False
    # Values of different metrics cannot be compared, so the best value of another metric is ignored.
    if best is not None and best["metric"] == metric and best["step"] < step and best["value"] >= value:
        return False
    write_whole(root / BEST_NAME, json.dumps({"step": step, "metric": metric, "value": value}))
    return True


def find_checkpoint(trainer: TrainerConfig) -> Checkpoint | None:
    """Find the checkpoint to resume from. The result is None for a fresh start.

    Args:
        trainer: verl's settings. ``resume_mode`` is "auto" (the newest checkpoint, if any), "disable" or "resume_path".
            Then ``resume_from_path`` is the folder of a step, or of a run, whose newest step is taken.

    Raises:
        CheckpointError: the named checkpoint does not exist, or the run folder holds another run.
    """
    if trainer.resume_mode == "disable":
        return None
    root = Path(trainer.default_local_dir).resolve()
    own = _newest(root)
    if trainer.resume_mode != "resume_path":
        return own
    wanted = Path(trainer.resume_from_path or "")
    named = named_checkpoint(wanted)
    if own is None or named.folder.parent == root:
        return named
    # If the same command started this run earlier, the run resumes from its own newest step.
    origin = Path(own.state().get(ORIGIN) or "")
    is_one_step = _STEP_FOLDER.fullmatch(wanted.name) is not None
    if origin == named.folder or (not is_one_step and origin.parent == named.folder.parent):
        return own
    raise CheckpointError(
        f"{root} holds steps {saved_steps(root)} of a run that did not start from {named.folder}; name another "
        "run_dir, or leave resume out to resume from the newest of these steps"
    )


def named_checkpoint(path: Path) -> Checkpoint:
    """Find the checkpoint in a step's folder, or the newest checkpoint in a run folder or its ``checkpoints``.

    Raises:
        CheckpointError: there is no such checkpoint.
    """
    for folder in (path, path / CHECKPOINTS):
        if (folder / TRACKER_NAME).is_file() and (newest := _newest(folder.resolve())) is not None:
            return newest
    return _checkpoint_at(path.resolve())


def _newest(root: Path) -> Checkpoint | None:
    tracker = root / TRACKER_NAME
    if not tracker.is_file():
        steps = saved_steps(root)  # a kill may come just before the first tracker is written
        return _checkpoint_at(step_folder(root, steps[-1])) if steps else None
    text = tracker.read_text(encoding="utf-8", errors="replace").strip()
    if not text.isdecimal():
        raise CheckpointError(f"{tracker} must hold a step number, got {text!r}; known steps: {saved_steps(root)}")
    return _checkpoint_at(step_folder(root, int(text)))


def _checkpoint_at(folder: Path) -> Checkpoint:
    match = _STEP_FOLDER.fullmatch(folder.name)
    if not match or not folder.is_dir():
        raise CheckpointError(
            f"no checkpoint at {folder}: expected an existing folder named global_step_<n>; "
            f"steps in the same folder: {saved_steps(folder.parent)}"
        )
    return Checkpoint(folder=folder, step=int(match.group(1)))
