"""Recognises the benchmark of a file by its columns, and reads its problems as tasks for a Code LLM."""

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sandbox import JudgeProcesses, LocalRunner

from ....data.formats import ADAPTERS
from ....data.reader import columns_of, iter_rows, read_questions
from ....errors import InputError
from ..models.prompt_styles import EVALPLUS
from ..options import CodeEvalOptions
from ..scoring import evalplus_sanitizer
from ..scoring.evalplus_grading import evalplus_tasks
from .judged_elsewhere import BIGCODEBENCH_COLUMNS, LIVECODEBENCH_COLUMNS, bigcodebench_tasks, livecodebench_tasks
from .tasks import AssertGrading, CodeTask


@contextlib.contextmanager
def loaded_tasks(options: CodeEvalOptions) -> Iterator[tuple[list[CodeTask], Counter[str]]]:
    """Read the tasks of all files, with counts of questions and tests that were left out.

    The judges and runners that grade the tasks end with the ``with`` statement.

    Raises:
        InputError: a file cannot be used.
        SandboxConfigError, SandboxUnavailableError: programs cannot be confined here.
        OutputError: the output folder cannot be written.
    """
    left_out: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:

        @functools.cache
        def started(make: Callable[..., Any], **settings: Any) -> Any:
            """Start a judge or runner for the first file that needs it; None with ``--sample-only``."""
            if options.sample_only:
                return None
            return stack.enter_context(make(num_workers=options.workers, **settings))

        tasks = [task for path in options.files for task in _tasks(path, options, started, left_out)]
        (most_frequent, number), *_ = Counter(task.id for task in tasks).most_common()
        if number > 1:
            raise InputError(f"id {most_frequent!r} stands for several problems; ids must be unique over all files")
        yield tasks[: options.limit], left_out


def _question_tasks(
    path: Path, options: CodeEvalOptions, judges: JudgeProcesses, left_out: Counter[str]
) -> list[CodeTask]:
    """Make tasks of the questions that have tests; ``AssertGrading`` grades them."""
    loaded = read_questions(path, adapter=options.adapter, columns=options.columns)
    tasks = []
    for question in loaded.questions:
        if question.tests:
            grading = AssertGrading(question=question, judges=judges, holds_expected_outputs=options.references)
            tasks.append(CodeTask.of(question, grading))
    if not tasks:
        raise InputError(f"{path}: no question has a test that can be judged; give it a column 'tests' of asserts")
    left_out["questions without a usable test"] += len(loaded.questions) - len(tasks)
    left_out["tests left out"] += loaded.num_dropped_tests
    return tasks


def _tasks(path: Path, options: CodeEvalOptions, started: Callable[..., Any], left_out: Counter[str]) -> list[CodeTask]:
    """Read the tasks of one file, and count in ``left_out`` what cannot become a task."""
    columns = columns_of(iter_rows(path))
    is_evalplus = options.adapter in ("auto", "evalplus") and ADAPTERS["evalplus"].needs <= columns
    # A user who names columns of the file wants it read as questions.
    renamed = {column.partition(".")[0] for column in options.columns.values()}
    if not is_evalplus and options.adapter == "auto" and renamed.isdisjoint(columns):
        if columns >= LIVECODEBENCH_COLUMNS:
            return livecodebench_tasks(path)
        if columns >= BIGCODEBENCH_COLUMNS:
            return bigcodebench_tasks(path, split=options.split)
    if is_evalplus:
        tasks = evalplus_tasks(path, started(LocalRunner))
    else:
        tasks = _question_tasks(path, options, started(JudgeProcesses), left_out)
    if options.references or not (is_evalplus or options.prompt == EVALPLUS):
        return tasks
    if not options.sample_only:
        evalplus_sanitizer.sanitizer_source()  # a missing package is an error before the model is asked
    runner = started(LocalRunner, preload=evalplus_sanitizer.PRELOAD)
    sanitized = []
    for task in tasks:
        if task.entry_point:
            sanitize = functools.partial(evalplus_sanitizer.sanitize, entry_point=task.entry_point, runner=runner)
            task = replace(task, extraction=sanitize)
        sanitized.append(task)
    return sanitized
