"""A run that may be going on: each of its files is read once, and again when it has changed."""

import contextlib
from functools import lru_cache
from pathlib import Path
from statistics import fmean

from ..algorithm.mistake_book import MistakeBook
from ..algorithm.question import Question
from ..errors import InputError
from .reader import MetricsTail, RunRecords
from .rollout_record import RolloutRecord

_STEPS_OF_PACE = 10
"""The last steps, which say how long a step takes."""


class LiveRun:
    """A run with what it has written so far.

    Raises:
        InputError: the folder holds no run, or one that ended before its first step.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder} holds no run: it is no folder; name the folder given as run_dir")
        self.run = RunRecords(folder.absolute())
        self.paths = self.run.paths
        if not self.paths.resolved_config.is_file() and (inner := next(folder.glob("*/*/resolved_config.yaml"), None)):
            raise InputError(f"{folder} holds several runs; name one of them, for instance {inner.parent}")
        if not self.paths.is_running():  # one that is going on may have no step yet
            RunRecords.open(folder)
        self.total_steps: int | None = self.run.config["trainer"].get("total_training_steps")
        self.questions: dict[str, Question] = {}
        self.metrics = MetricsTail(self.paths.metrics)

    def refresh(self) -> None:
        """Take in what is new; InputError or OSError where that cannot be read."""
        self.is_running = self.paths.is_running()
        self.metrics.read()
        self.last_step: int = self.metrics.rows[-1]["step"] if self.metrics.rows else 0
        self.started = self.paths.started
        self.updated = changed(self.paths.metrics) / 1e9 or self.started
        self.newest_rollouts = max(self.run.training_steps, default=None)

    @property
    def state(self) -> str:
        """running, finished, stopped, or ended where it is not known how many steps were wanted."""
        if self.is_running or self.total_steps is None:
            return "running" if self.is_running else "ended"
        return "finished" if self.last_step >= self.total_steps else "stopped"

    @property
    def version(self) -> tuple[object, ...]:
        """Another one whenever a refresh found something new, or the questions are there."""
        book = changed(self.paths.mistake_book)
        return self.is_running, self.updated, self.newest_rollouts, book, len(self.questions)

    @property
    def expected_end(self) -> float | None:
        """When the last step will be done, by the pace of the last ones, in seconds since 1970; None: not known."""
        rows = [row for row in self.metrics.rows[-_STEPS_OF_PACE:] if row.get("timing_s/step") is not None]
        if not self.is_running or self.total_steps is None or not rows:
            return None
        pace = fmean(row["timing_s/step"] + (row.get("timing_s/testing") or 0.0) for row in rows)
        return self.updated + (self.total_steps - self.last_step) * pace

    def records(self, step: int) -> list[RolloutRecord]:
        """Programs of a step, see ``RunRecords.training``."""
        return _records(self.run, step, changed(self.paths.rollout_file(step, validation=False)))

    def book(self) -> MistakeBook:
        """The Mistake Book of the newest save."""
        return _book(self.run, changed(self.paths.mistake_book))

    def read_questions(self) -> None:
        """Fill ``questions``, by id, where their file is still there: much work, for a thread."""
        with contextlib.suppress(InputError):
            self.questions = {question.id: question for question in self.run.questions("train_files")}


def changed(path: Path) -> int:
    """When a file was written, in nanoseconds since 1970; 0: it is not there."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


@lru_cache(maxsize=1)
def _records(run: RunRecords, step: int, changed: int) -> list[RolloutRecord]:
    return run.training(step)


@lru_cache(maxsize=1)
def _book(run: RunRecords, changed: int) -> MistakeBook:
    return run.mistake_book()
