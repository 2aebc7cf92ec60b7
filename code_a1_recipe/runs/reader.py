"""The one reader of a run folder: configuration, metrics, rollouts, Mistake Book, questions. Needs no torch."""

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
    """One run folder, read on demand. Its configuration is there from the start, the rest after a step."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> "RunRecords":
        """Raises InputError where ``folder`` holds no run, or none that has finished a step."""
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
        """The run that ``path`` is or lies in, at most ``levels`` folders up."""
        place = path.absolute()
        folders = (place, *place.parents[:levels])
        return next((cls(folder) for folder in folders if RunFolder(folder).resolved_config.is_file()), None)

    @property
    def paths(self) -> RunFolder:
        """Where the run wrote what."""
        return RunFolder(self.folder)

    @cached_property
    def settings(self) -> "RunConfig":
        """The configuration, every value checked.

        Raises:
            SettingsError: it is of another format, or was changed.
        """
        from ..config.compose import recorded_config  # hydra, which most readers do not need

        return recorded_config(self.paths.resolved_config)

    @cached_property
    def config(self) -> dict[str, Any]:
        """``resolved_config.yaml`` as it stands there."""
        path = self.paths.resolved_config
        try:
            loaded = yaml.safe_load(path.read_bytes())
        except (OSError, yaml.YAMLError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
        if not isinstance(loaded, dict):
            raise InputError(f"{path} must be a mapping of keys, got {type(loaded).__name__}")
        for block in ("data", "trainer"):
            if not isinstance(loaded.get(block), dict):
                raise InputError(f"{path} must have a block {block!r} of keys, got {loaded.get(block)!r}")
        return loaded

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """Rows of ``metrics.jsonl``, the one of step 0 (validation before training) included."""
        return list(_decoded_lines(self.paths.metrics, _metrics_row))

    @property
    def steps(self) -> list[int]:
        """Steps that were trained."""
        return [row["step"] for row in self.metrics if row["step"] > 0]

    @property
    def training_steps(self) -> list[int]:
        """Steps whose rollouts are there."""
        return self._rollout_steps("train")

    def rollout_files(self) -> list[Path]:
        """Files of all steps, of training and of validation."""
        return sorted(self.paths.rollouts.glob("*.jsonl"))

    @property
    def validation_steps(self) -> list[int]:
        return self._rollout_steps("val")

    def validation(self, step: int) -> list[RolloutRecord]:
        """Programs for the held-out questions at ``step``."""
        return self._programs(step, validation=True)

    def training(self, step: int) -> list[RolloutRecord]:
        """Programs for the training questions of ``step``, without those of extensions."""
        return self._programs(step, validation=False)

    def _programs(self, step: int, *, validation: bool) -> list[RolloutRecord]:
        records = read_rollouts(self.paths.rollout_file(step, validation=validation))
        return [record for record in records if not record.turn]

    def _rollout_steps(self, kind: str) -> list[int]:
        stems = [path.stem.removeprefix(f"{kind}_") for path in self.paths.rollouts.glob(f"{kind}_*.jsonl")]
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def mistake_book(self) -> MistakeBook:
        """The book of the newest save, or of the last step; empty where the run wrote none.

        Raises:
            InputError: it is damaged.
        """
        try:
            return MistakeBook.load(self.paths.mistake_book)
        except FileNotFoundError:
            return MistakeBook()

    def questions(self, *keys: str) -> QuestionTable:
        """The questions of ``data.<key>``, "train_files" and "val_files", by id.

        Raises:
            InputError: a file is not there any more, or cannot be read as questions. A file that has changed since
                the run is read as it is now.
            InputError: an id stands for two different questions.
        """
        data = self.config["data"]
        files = self.question_files(*keys)
        return question_table(files, adapter=data.get("adapter", "auto"), columns=data.get("columns"))

    def question_files(self, *keys: str) -> list[Path]:
        """The files of ``data.<key>``."""
        values = [self.config["data"].get(key) or [] for key in keys]
        return [Path(str(file)) for value in values for file in (value if isinstance(value, list) else [value])]


def read_rollouts(path: Path) -> Iterator[RolloutRecord]:
    """Records of one file, in its order.

    Raises:
        InputError: a line is damaged, or of another version.
    """
    return _decoded_lines(path, _rollout)


def rollout_of(row: Mapping[str, Any], place: str) -> RolloutRecord:
    """A row of any file as a record; keys that a record does not have are left out.

    Raises:
        InputError: it is none, or of another version; ``place`` begins the message.
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
        raise msgspec.ValidationError(_reason(error, _OBJECTS.decode(line).get("v"))) from error


def _reason(error: msgspec.ValidationError, version: object) -> str:
    if version == VERSION:
        return f"{error}; the file was changed: restore it, or make the step again"
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
                        return  # the run is writing this line now
                    raise InputError(f"{path}, line {number} is not JSON: {error}; restore the file") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from error
