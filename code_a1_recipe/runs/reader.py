"""The only reader of a run folder: configuration, metrics, rollouts, Mistake Book and questions. It needs no torch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import yaml

from ..algorithm.mistake_book import MistakeBook
from ..data.reader import QuestionTable, question_table
from ..errors import InputError
from .folder import RunFolder
from .rollout_record import VERSION, RolloutRecord

if TYPE_CHECKING:
    from ..config.run_config import RunConfig

MetricsRow = dict[str, Any]
Row = TypeVar("Row")


@dataclass(frozen=True)
class RunRecords:
    """A run folder. Each file is read only when a caller needs it.

    All files except the configuration appear after the first step.
    """

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> "RunRecords":
        """Open a run folder. InputError: the folder holds no run, or a run without a finished step."""
        paths = RunFolder(folder)
        if not paths.resolved_config.is_file():
            raise InputError(
                f"{folder} holds no run: {paths.resolved_config.name} is missing; name the folder given as run_dir"
            )
        if not paths.metrics.is_file():
            raise InputError(f"the run in {folder} has no step yet: {paths.metrics.name} is missing; try again later")
        return cls(paths.root)

    @classmethod
    def find(cls, path: Path, *, levels: int) -> "RunRecords | None":
        """Find a run folder: ``path``, or a folder above it, at most ``levels`` folders up.

        Return None if no folder holds a run.
        """
        path = path.absolute()
        for folder in (path, *path.parents[:levels]):
            if RunFolder(folder).resolved_config.is_file():
                return cls(folder)
        return None

    @property
    def paths(self) -> RunFolder:
        """Paths of the run's files."""
        return RunFolder(self.folder)

    @cached_property
    def settings(self) -> "RunConfig":
        """The configuration, with every value checked.

        Raises:
            SettingsError: the file has another format or was changed.
        """
        from ..config.compose import recorded_config  # imported late, because config.compose loads hydra

        return recorded_config(self.paths.resolved_config)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of ``resolved_config.yaml`` without checks of its values."""
        path = self.paths.resolved_config
        try:
            loaded = yaml.safe_load(path.read_bytes())
        except (OSError, yaml.YAMLError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
        if not isinstance(loaded, dict):
            raise InputError(f"{path} must be a mapping of keys, got {type(loaded).__name__}; restore the file")
        for block in ("data", "trainer"):
            if not isinstance(loaded.get(block), dict):
                found = loaded.get(block)
                raise InputError(f"{path} must have a block {block!r} of keys, got {found!r}; restore the file")
        return loaded

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """Rows of ``metrics.jsonl``. Step 0 is the validation before training."""
        return list(_decoded_lines(self.paths.metrics, _metrics_row))

    @property
    def steps(self) -> list[int]:
        """Numbers of the trained steps. The first is 1."""
        return [row["step"] for row in self.metrics if row["step"] > 0]

    @property
    def training_steps(self) -> list[int]:
        """Steps that have rollouts of training."""
        return self._rollout_steps("train")

    def rollout_files(self) -> list[Path]:
        """List the rollout files of all steps, both of training and of validation."""
        return sorted(self.paths.rollouts.glob("*.jsonl"))

    @property
    def validation_steps(self) -> list[int]:
        """Steps that have rollouts of a validation."""
        return self._rollout_steps("val")

    def validation(self, step: int) -> list[RolloutRecord]:
        """Read the programs for the held-out questions at ``step``."""
        return list(read_rollouts(self.paths.rollout_file(step, validation=True)))

    def training(self, step: int) -> list[RolloutRecord]:
        """Read the programs for the training questions of ``step``."""
        return list(read_rollouts(self.paths.rollout_file(step, validation=False)))

    def _rollout_steps(self, kind: str) -> list[int]:
        numbers = []
        for path in self.paths.rollouts.glob(f"{kind}_*.jsonl"):
            number = path.stem.removeprefix(f"{kind}_")
            if number.isdecimal():
                numbers.append(int(number))
        return sorted(numbers)

    def mistake_book(self) -> MistakeBook:
        """Read the book that was saved at the newest checkpoint or the last step.

        If no book was saved, return an empty book.

        Raises:
            InputError: the file is damaged.
        """
        try:
            return MistakeBook.load(self.paths.mistake_book)
        except FileNotFoundError:
            return MistakeBook()

    def questions(self, *keys: str) -> QuestionTable:
        """Read the questions of ``data.<key>`` by id. A file that has changed since the run is read as it is today.

        Args:
            keys: "train_files", "val_files" or both.

        Raises:
            InputError: a file is missing or holds no questions, or two different questions have the same id.
        """
        data = self.config["data"]
        files = self.question_files(*keys)
        return question_table(files, adapter=data.get("adapter", "auto"), columns=data.get("columns"))

    def question_files(self, *keys: str) -> list[Path]:
        """List the files of ``data.<key>``."""
        files: list[Path] = []
        for key in keys:
            value = self.config["data"].get(key) or []
            names = value if isinstance(value, list) else [value]
            files += [Path(str(name)) for name in names]
        return files


def read_rollouts(path: Path) -> Iterator[RolloutRecord]:
    """Yield the records of a rollout file in the order of its lines.

    Raises:
        InputError: a line is damaged or has another format version.
    """
    return _decoded_lines(path, _rollout)


def rollout_of(row: Mapping[str, Any], place: str) -> RolloutRecord:
    """Convert a row to a record. The row may come from a file of any format. Unknown keys are ignored.

    Args:
        row: a JSON object.
        place: file and line of the row, with which an error message begins.

    Raises:
        InputError: the row is no record or has another format version.
    """
    try:
        return msgspec.convert(row, RolloutRecord)
    except msgspec.ValidationError as error:
        raise InputError(f"{place}: {_reason(error, row.get('v'))}") from error


_ROLLOUTS = msgspec.json.Decoder(RolloutRecord)
_OBJECTS = msgspec.json.Decoder(MetricsRow)


def _rollout(line: bytes) -> RolloutRecord:
    try:
        return _ROLLOUTS.decode(line)
    except msgspec.ValidationError as error:
        version = _OBJECTS.decode(line).get("v")
        raise msgspec.ValidationError(_reason(error, version)) from error


def _reason(error: msgspec.ValidationError, version: object) -> str:
    if version == VERSION:
        return f"{error}; the file was changed: restore it, or train this step again"
    return (
        f"{error}, so this is no rollout record of format version {VERSION} (it has v: {version}); train again, or "
        "read it with the release that wrote it"
    )


def _metrics_row(line: bytes) -> MetricsRow:
    row = _OBJECTS.decode(line)
    if type(row.get("step")) is not int:
        raise msgspec.ValidationError(f"must have an integer 'step', got {row.get('step')!r}; restore the file")
    return row


def _decoded_lines(path: Path, decode: Callable[[bytes], Row]) -> Iterator[Row]:
    try:
        with path.open("rb") as handle:
            for number, line in enumerate(handle, 1):
                try:
                    yield decode(line)
                except msgspec.ValidationError as error:
                    raise InputError(f"{path}, line {number}: {error}") from error
                except (msgspec.DecodeError, RecursionError) as error:
                    if not line.endswith(b"\n"):
                        return  # the run is still writing the last line
                    raise InputError(f"{path}, line {number} is not JSON: {error}; restore the file") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from error
