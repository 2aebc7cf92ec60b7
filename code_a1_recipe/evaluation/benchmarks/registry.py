"""The benchmark that a file holds, recognised by its columns, and its problems as tasks for a Code LLM."""

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from sandbox import Closing, JudgeProcesses, LocalRunner

from ...data.formats import ADAPTERS
from ...data.reader import columns_of, iter_rows
from ...errors import InputError
from ..models.prompt_styles import EVALPLUS
from ..options import CodeEvalOptions
from ..scoring import evalplus_sanitizer, livecodebench_judge
from ..scoring.evalplus_grading import evalplus_tasks
from . import livecodebench
from .tasks import CodeTask, check_distinct, question_tasks

Started = TypeVar("Started", bound=Closing)
OUTSIDE = "LiveCodeBench problems outside --since and --until"


@dataclass(eq=False, kw_only=True)
class _Runners:
    """Where programs run, each started when the first file needs it; where nothing is judged, none is."""

    num_workers: int
    stack: contextlib.ExitStack
    is_used: bool

    @functools.cached_property
    def judges(self) -> JudgeProcesses:
        return self._started(JudgeProcesses, self.num_workers)

    @functools.cache  # noqa: B019 - lives as long as the evaluation
    def runner(self, *preload: str) -> LocalRunner:
        """With these modules."""
        return self._started(LocalRunner, num_workers=self.num_workers, preload=preload)

    def _started(self, make: Callable[..., Started], *arguments: Any, **options: Any) -> Started:
        return self.stack.enter_context(make(*arguments, **options)) if self.is_used else None  # type: ignore[return-value]


@contextlib.contextmanager
def loaded_tasks(options: CodeEvalOptions) -> Iterator[tuple[list[CodeTask], dict[str, Any]]]:
    """The tasks of all files with what grades them, and counts of what could not be taken.

    Raises:
        InputError: a file cannot be used.
        SandboxConfigError, SandboxUnavailableError: programs cannot be confined here.
        OutputError: the output folder cannot be written.
    """
    tasks: list[CodeTask] = []
    num_left_out: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        runners = _Runners(num_workers=options.workers, stack=stack, is_used=not options.sample_only)
        kinds = [_kind_of(path, options) for path in options.files]
        _check_used(options, kinds)
        for path, kind in zip(options.files, kinds, strict=True):
            found, left_out = _tasks_of(kind, path, options, runners)
            is_sanitized = (kind == "evalplus" or options.prompt == EVALPLUS) and not options.references
            tasks += [_sanitized(task, runners) if is_sanitized and task.entry_point else task for task in found]
            num_left_out.update(left_out)
        check_distinct([task.id for task in tasks], what="problems")
        tasks = tasks[: options.limit]
        counts: dict[str, Any] = {name: number for name, number in num_left_out.items() if number}
        if not tasks:
            what = "; ".join(f"{name}: {value}" for name, value in counts.items()) or "the files hold none"
            raise InputError(f"no problem is left to evaluate ({what}); name other files or other options")
        yield tasks, counts


def _kind_of(path: Path, options: CodeEvalOptions) -> str:
    columns = columns_of(iter_rows(path))
    if options.adapter in ("auto", "evalplus") and ADAPTERS["evalplus"].needs <= columns:
        return "evalplus"
    renamed = {column.partition(".")[0] for column in options.columns.values()}
    if options.adapter == "auto" and not renamed & columns and columns >= livecodebench.COLUMNS:
        return "livecodebench"
    return "questions"


def _sanitized(task: CodeTask, runners: _Runners) -> CodeTask:
    if runners.is_used:
        evalplus_sanitizer.sanitizer_source()
    runner = runners.runner(*evalplus_sanitizer.PRELOAD)
    sanitize = functools.partial(evalplus_sanitizer.sanitize, entry_point=task.entry_point, runner=runner)
    return replace(task, extraction=sanitize)


def _tasks_of(
    kind: str, path: Path, options: CodeEvalOptions, runners: _Runners
) -> tuple[list[CodeTask], Mapping[str, int]]:
    """The tasks of one file, and counts of what could not be taken."""
    if kind == "evalplus":
        return evalplus_tasks(path, runners.runner()), {}
    if kind == "livecodebench":
        tasks, num_outside = livecodebench.livecodebench_tasks(
            path,
            runners.runner(*livecodebench_judge.PRELOAD),
            since=options.since and options.since.date(),
            until=options.until and options.until.date(),
        )
        return tasks, {OUTSIDE: num_outside}
    return question_tasks(
        path,
        runners.judges,
        adapter=options.adapter,
        columns=options.columns,
        holds_expected_outputs=options.references,
    )


def _check_used(options: CodeEvalOptions, kinds: Sequence[str]) -> None:
    """An option that concerns no file would be believed to have had an effect."""
    if (options.since or options.until) and "livecodebench" not in kinds:
        raise InputError(
            "--since and --until choose problems of LiveCodeBench by their contest_date, but no FILE has its columns "
            f"{sorted(livecodebench.COLUMNS)}; leave them out, or name such a file"
        )
    if options.export_evalplus and "evalplus" not in kinds:
        raise InputError(
            "--export-evalplus writes programs for HumanEval+ and MBPP+, but no FILE has their columns "
            f"{sorted(ADAPTERS['evalplus'].needs)}; leave it out, or name such a file"
        )
