"""The benchmark that a file holds, recognised by its columns, and its problems as tasks for a Code LLM."""

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sandbox import Closing, JudgeProcesses, LocalRunner

from ...data.formats import ADAPTERS
from ...data.reader import columns_of, iter_rows
from ...errors import InputError
from ..models.prompt_styles import EVALPLUS
from ..options import CodeEvalOptions
from ..scoring import evalplus_sanitizer
from ..scoring.evalplus_grading import evalplus_tasks
from . import bigcodebench, livecodebench
from .tasks import CodeTask, check_distinct, question_tasks

Started = TypeVar("Started", bound=Closing)
OUTSIDE = "LiveCodeBench problems outside --since and --until"


@contextlib.contextmanager
def loaded_tasks(options: CodeEvalOptions) -> Iterator[tuple[list[CodeTask], dict[str, Any]]]:
    """The tasks of all files with what grades them, and counts of what could not be taken.

    Raises:
        InputError: a file cannot be used.
        SandboxConfigError, SandboxUnavailableError: programs cannot be confined here.
        OutputError: the output folder cannot be written.
    """
    kinds = [_kind_of(path, options) for path in options.files]
    _check_used(options, kinds)
    with contextlib.ExitStack() as stack:
        loader = _Loader(options, stack)
        tasks = [task for path, kind in zip(options.files, kinds, strict=True) for task in loader.tasks(path, kind)]
        check_distinct([task.id for task in tasks], what="problems")
        counts: dict[str, Any] = {reason: number for reason, number in loader.num_left_out.items() if number}
        if not tasks:
            reasons = "; ".join(f"{reason}: {number}" for reason, number in counts.items()) or "the files hold none"
            raise InputError(f"no problem is left to evaluate ({reasons}); name other files or other options")
        yield tasks[: options.limit], counts


class _Loader:
    """Reads files, and starts what runs their programs: each at the first file that needs it, none if none is judged.

    Args:
        stack: closes what was started.
    """

    def __init__(self, options: CodeEvalOptions, stack: contextlib.ExitStack) -> None:
        self._options = options
        self._stack = stack
        self.num_left_out: Counter[str] = Counter()

    def tasks(self, path: Path, kind: str) -> list[CodeTask]:
        """The tasks of one file; what could not be taken is counted."""
        options = self._options
        if kind == "bigcodebench":
            return bigcodebench.bigcodebench_tasks(path, split=options.split or bigcodebench.SPLITS[0])
        if kind == "livecodebench":
            since = options.since and options.since.date()
            until = options.until and options.until.date()
            tasks, num_outside = livecodebench.livecodebench_tasks(path, since=since, until=until)
            self.num_left_out[OUTSIDE] += num_outside
            return tasks
        if kind == "evalplus":
            tasks = evalplus_tasks(path, self._runner())
        else:
            tasks, left_out = question_tasks(
                path,
                self._judges,
                adapter=options.adapter,
                columns=options.columns,
                holds_expected_outputs=options.references,
            )
            self.num_left_out.update(left_out)
        is_sanitized = (kind == "evalplus" or options.prompt == EVALPLUS) and not options.references
        return [self._sanitized(task) if is_sanitized and task.entry_point else task for task in tasks]

    def _sanitized(self, task: CodeTask) -> CodeTask:
        if not self._options.sample_only:
            evalplus_sanitizer.sanitizer_source()
        runner = self._runner(*evalplus_sanitizer.PRELOAD)
        sanitize = functools.partial(evalplus_sanitizer.sanitize, entry_point=task.entry_point, runner=runner)
        return replace(task, extraction=sanitize)

    @functools.cached_property
    def _judges(self) -> JudgeProcesses:
        return self._started(JudgeProcesses, self._options.workers)

    @functools.cache  # noqa: B019 - lives as long as the evaluation
    def _runner(self, *preload: str) -> LocalRunner:
        return self._started(LocalRunner, num_workers=self._options.workers, preload=preload)

    def _started(self, make: Callable[..., Started], *arguments: Any, **settings: Any) -> Started:
        is_judged = not self._options.sample_only  # otherwise nobody asks for it
        return self._stack.enter_context(make(*arguments, **settings)) if is_judged else None  # type: ignore[return-value]


def _kind_of(path: Path, options: CodeEvalOptions) -> str:
    columns = columns_of(iter_rows(path))
    if options.adapter in ("auto", "evalplus") and ADAPTERS["evalplus"].needs <= columns:
        return "evalplus"
    renamed = {column.partition(".")[0] for column in options.columns.values()}
    if options.adapter != "auto" or renamed & columns:
        return "questions"
    if columns >= livecodebench.COLUMNS and "reference" not in columns:
        return "livecodebench"
    return "bigcodebench" if columns >= bigcodebench.COLUMNS else "questions"


def _check_used(options: CodeEvalOptions, kinds: Sequence[str]) -> None:
    """Refuse an option that concerns no file, since a user would believe that it had an effect."""
    if (options.since or options.until) and "livecodebench" not in kinds:
        raise InputError(
            "--since and --until choose problems of LiveCodeBench by their contest_date, but no FILE has its columns "
            f"{sorted(livecodebench.COLUMNS)}; leave them out, or name such a file"
        )
    if options.split and "bigcodebench" not in kinds:
        raise InputError(
            f"--split={options.split} chooses the prompts of BigCodeBench, but no FILE has its columns "
            f"{sorted(bigcodebench.COLUMNS)}; leave it out, or name such a file"
        )
