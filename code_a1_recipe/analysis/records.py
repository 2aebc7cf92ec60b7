"""Reads what a run wrote: its configuration, metrics and rollouts. Needs no torch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from ..questions import Question, load_questions
from ..run_folder import RunFolder

Record = Mapping[str, Any]
_RECORD_KEYS = (
    "index",
    "question",
    "kind",
    "candidate",
    "source",
    "refusal",
    "outage",
    "verdict",
    "reward",
    "hidden_tests",
    "suites",
)


class RecordsError(ValueError):
    """A folder holds no run, or a file of it cannot be read. Names the file, the rule and the cure."""


@dataclass(frozen=True)
class RunRecords:
    """One run folder, read on demand."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> RunRecords:
        """Raises RecordsError where ``folder`` holds no run."""
        paths = RunFolder(folder)
        if not paths.resolved_config.is_file():
            raise RecordsError(
                f"{folder} holds no run: {paths.resolved_config.name} is missing; name the folder given as run_dir"
            )
        if not paths.metrics.is_file():
            raise RecordsError(f"the run in {folder} has no step yet: {paths.metrics.name} is missing; try again later")
        return cls(paths.root)

    @property
    def paths(self) -> RunFolder:
        """Where the run wrote what."""
        return RunFolder(self.folder)

    @cached_property
    def config(self) -> dict[str, Any]:
        path = self.paths.resolved_config
        try:
            loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError) as error:
            raise RecordsError(f"{path} cannot be read: {error}") from error
        if not isinstance(loaded, dict):
            raise RecordsError(f"{path} must be a mapping of keys, got {type(loaded).__name__}")
        for block in ("data", "trainer"):
            if not isinstance(loaded.get(block), dict):
                raise RecordsError(f"{path} must have a block {block!r} of keys, got {loaded.get(block)!r}")
        return loaded

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """Rows of ``metrics.jsonl``, the one of step 0 (validation before training) included."""
        return list(_json_lines(self.paths.metrics, keys=("step",)))

    @property
    def steps(self) -> list[int]:
        """Steps that were trained."""
        return [row["step"] for row in self.metrics if row["step"] > 0]

    @property
    def validation_steps(self) -> list[int]:
        return self._rollout_steps("val")

    def validation(self, step: int) -> list[Record]:
        """Records of the held-out questions at ``step``; see ``rollout_log``."""
        return list(_json_lines(self.paths.rollouts / f"val_{step:06d}.jsonl", keys=_RECORD_KEYS))

    def training(self, step: int) -> list[Record]:
        """Records of the training questions of ``step``; a program that shared suites has those it was judged on."""
        path = self.paths.rollouts / f"train_{step:06d}.jsonl"
        records: list[dict[str, Any]] = list(_json_lines(path, keys=_RECORD_KEYS))
        suites = {(record.get("index"), record["candidate"]): record["suites"] for record in records}
        for record in records:
            if (first := record.get("shared_with")) is not None:
                record["suites"] = suites[record.get("index"), first]
        return [*records]

    @property
    def training_steps(self) -> list[int]:
        """Steps whose rollouts are there."""
        return self._rollout_steps("train")

    def _rollout_steps(self, kind: str) -> list[int]:
        stems = [path.stem.removeprefix(f"{kind}_") for path in self.paths.rollouts.glob(f"{kind}_*.jsonl")]
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def questions(self, *keys: str) -> list[Question]:
        """The questions of ``data.<key>``, "train_files" and "val_files".

        Raises:
            QuestionError: a file is not there any more, or cannot be read as questions. A file that has changed since
                the run is read as it is now.
        """
        data = self.config["data"]
        files = self._data_files(keys)
        columns, adapter = dict(data.get("columns") or {}) or None, data.get("adapter", "auto")
        return [question for file in files for question in load_questions(file, adapter=adapter, columns=columns)]

    def files(self) -> list[Path]:
        """All that is read here: configuration, metrics, rollouts, the Mistake Book, and the files of questions."""
        paths = self.paths
        own = [paths.resolved_config, paths.metrics, paths.mistake_book, *sorted(paths.rollouts.glob("*.jsonl"))]
        return [*own, *map(Path, self._data_files(("train_files", "val_files")))]

    def _data_files(self, keys: Sequence[str]) -> list[str]:
        values = [self.config["data"].get(key) or [] for key in keys]
        return [str(file) for value in values for file in (value if isinstance(value, list) else [value])]


def _json_lines(path: Path, *, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows that have these keys, ``step`` an integer."""
    try:
        with path.open(encoding="utf-8") as handle:
            for number, line in enumerate(handle, 1):
                try:
                    row = json.loads(line)
                except (json.JSONDecodeError, RecursionError) as error:
                    if not line.endswith("\n"):
                        return  # the run is writing this line now
                    raise RecordsError(f"{path}, line {number} is not JSON: {error}") from error
                if not isinstance(row, dict) or type(row.get("step")) is not int:
                    raise RecordsError(
                        f"{path}, line {number} must be an object with an integer 'step', got {row!r:.80}"
                    )
                if missing := [key for key in keys if key not in row]:
                    raise RecordsError(f"{path}, line {number} lacks {', '.join(missing)}")
                yield row
    except (OSError, UnicodeDecodeError) as error:
        raise RecordsError(f"{path} cannot be read: {error}") from error
