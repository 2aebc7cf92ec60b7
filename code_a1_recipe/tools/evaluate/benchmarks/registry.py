"""Recognises the benchmark of a file by its columns, and reads its problems as tasks for a Code LLM."""

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sandbox import JudgeProcesses, LocalRunner

from ....data.formats import ADAPTERS
from ....data.reader import columns_of, iter_rows, read_questions
from ....errors import InputError
from ..scoring import evalplus_sanitizer
from ..scoring.evalplus_grading import evalplus_tasks
from .judged_elsewhere import BIGCODEBENCH_COLUMNS, LIVECODEBENCH_COLUMNS, bigcodebench_tasks, livecodebench_tasks
from .tasks import AssertGrading, CodeTask


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files are read as tasks, and which programs the tasks will grade."""

    adapter: str
    columns: Mapping[str, str]
    """Native column -> column of the file."""
    split: str
    """Prompts of BigCodeBench: "complete" or "instruct"."""
    judges_references: bool
    """True if the tasks grade the files' own references instead of a model's responses."""
    sanitizes_all: bool
    """True if EvalPlus's sanitizer also extracts programs for files of other benchmarks."""
    num_workers: int | None
    """Number of judge processes. None if the caller only samples, so that no judge is started."""


@contextlib.contextmanager
def loaded_tasks(files: Sequence[Path], reading: Reading) -> Iterator[tuple[list[CodeTask], Counter[str]]]:
    """Read the tasks of all files, and count the questions and tests that are left out.

    The judges and runners that grade the tasks are stopped at the end of the ``with`` statement.

    Raises:
        InputError: a file cannot be used.
        SandboxConfigError, SandboxUnavailableError: programs cannot be confined on this machine.
    """
    left_out: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:

        @functools.cache
        def started(make: Callable[..., Any], **settings: Any) -> Any:
            """Start a judge or runner when the first file needs it, and share it with all later files."""
            if reading.num_workers is None:
                return None
            return stack.enter_context(make(num_workers=reading.num_workers, **settings))

        tasks = []
        for path in files:
            tasks += _tasks(path, reading, started, left_out)
        ids = Counter(task.id for task in tasks)
        (most_frequent, number), *_ = ids.most_common()
        if number > 1:
            raise InputError(f"id {most_frequent!r} stands for several problems; ids must be unique over all files")
        yield tasks, left_out


def _tasks(path: Path, reading: Reading, started: Callable[..., Any], left_out: Counter[str]) -> list[CodeTask]:
    """Read the tasks of one file. ``left_out`` counts the questions and tests of the file that cannot be used."""
    columns = columns_of(iter_rows(path))
    is_evalplus = reading.adapter in ("auto", "evalplus") and ADAPTERS["evalplus"].needs <= columns
    # If the user names columns of the file, read the file as questions.
    named = {column.partition(".")[0] for column in reading.columns.values()}
    if not is_evalplus and reading.adapter == "auto" and named.isdisjoint(columns):
        if columns >= LIVECODEBENCH_COLUMNS:
            return livecodebench_tasks(path)
        if columns >= BIGCODEBENCH_COLUMNS:
            return bigcodebench_tasks(path, split=reading.split)
    if is_evalplus:
        tasks = evalplus_tasks(path, started(LocalRunner))
    else:
        tasks = _question_tasks(path, reading, started(JudgeProcesses), left_out)
    if reading.judges_references or not (is_evalplus or reading.sanitizes_all):
        return tasks
    if reading.num_workers is not None:
        evalplus_sanitizer.sanitizer_source()  # report a missing package before the model is asked
    runner = started(LocalRunner, preload=evalplus_sanitizer.PRELOAD)
    return [_sanitized(task, runner) for task in tasks]


def _question_tasks(path: Path, reading: Reading, judges: JudgeProcesses, left_out: Counter[str]) -> list[CodeTask]:
    """Make tasks of the questions that have tests. Their asserts grade programs."""
    loaded = read_questions(path, adapter=reading.adapter, columns=reading.columns)
    tasks = []
    for question in loaded.questions:
        if question.tests:
            grading = AssertGrading(
                question=question,
                judges=judges,
                holds_expected_outputs=reading.judges_references,
            )
            tasks.append(CodeTask.of(question, grading))
    if not tasks:
        raise InputError(f"{path}: no question has a test that can be judged; give it a column 'tests' of asserts")
    left_out["questions without a usable test"] += len(loaded.questions) - len(tasks)
    left_out["tests left out"] += loaded.num_dropped_tests
    return tasks


def _sanitized(task: CodeTask, runner: LocalRunner) -> CodeTask:
    """Let EvalPlus's sanitizer extract the programs of a task that asks for a single function."""
    if not task.entry_point:
        return task
    sanitize = functools.partial(evalplus_sanitizer.sanitize, entry_point=task.entry_point, runner=runner)
    return replace(task, extraction=sanitize)
