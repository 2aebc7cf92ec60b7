"""LiveCodeBench's problems as tasks for a Code LLM, from files of ``livecodebench/code_generation_lite``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from sandbox import Runner, SandboxUnavailableError

from ...data.native_row import Row, json_of, text_of
from ...data.reader import iter_rows, read_each
from ...data.stdin_rows import functional_values, read_cases
from ...errors import RowError
from ...jobs.progress import watched
from ..scoring.livecodebench_judge import judge_cases
from .tasks import CodeTask, CodeVerdict, grade_each

COLUMNS = frozenset(
    {"question_id", "question_content", "starter_code", "public_test_cases", "private_test_cases", "metadata"}
)
"""Columns that must all exist; they also recognise the benchmark."""
_CURE = "take the file as livecodebench/code_generation_lite has it, or remove the row"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCodeBenchGrading:
    """The tests of one problem. They stay packed until it is graded: those of all problems are gigabytes."""

    row: Row
    """Its columns with the tests."""
    function: str
    """What functional tests call; empty where programs read standard input."""
    runner: Runner

    def grade(self, programs: Sequence[str]) -> list[CodeVerdict | SandboxUnavailableError]:
        """As ``tasks.Grading``."""
        cases = read_cases(self.row)[0]
        return grade_each(programs, partial(judge_cases, cases=cases, function=self.function, runner=self.runner))


def livecodebench_tasks(
    path: Path, runner: Runner, *, since: date | None = None, until: date | None = None
) -> tuple[list[CodeTask], int]:
    """The problems of a file whose contest was from ``since`` to ``until``, both included; how many others there are.

    Raises:
        InputError: the file cannot be read, or a row breaks a rule.
    """

    def read(row: Row) -> CodeTask | None:
        return _read_task(row, runner) if _is_within(row, since, until) else None

    rows = watched(iter_rows(path), total=None, what=f"read {path.name}", unit="problem")
    found = list(read_each(rows, read, where=path, hint=_CURE))
    tasks = [task for task in found if task]
    return tasks, len(found) - len(tasks)


def _read_task(row: Row, runner: Runner) -> CodeTask:
    name = row.get("question_id")
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise RowError("question_id", f"must be a text or an integer, got {name!r}")
    cases, kind = read_cases(row)
    function = _function(row) if kind == "functional" else ""
    if function:
        functional_values(cases)  # refused here, before anything is sampled
    difficulty = row.get("difficulty")
    return CodeTask(
        id=f"LiveCodeBench/{name}",
        data_source=f"LiveCodeBench {difficulty}" if difficulty else "LiveCodeBench",
        reads_input=not function,
        prompt=_prompt(text_of(row, "question_content"), text_of(row, "starter_code"), reads_input=not function),
        grading=LiveCodeBenchGrading(
            row={column: row[column] for column in ("public_test_cases", "private_test_cases")},
            function=function,
            runner=runner,
        ),
    )


def _function(row: Row) -> str:
    metadata = json_of(row, "metadata")
    name = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not name.isidentifier():
        raise RowError("metadata", f"must name the function of functional tests as 'func_name', got {name!r}")
    return name


def _prompt(content: str, starter: str, *, reads_input: bool) -> str:
    if starter.strip():
        return f"{content.rstrip()}\n\nComplete this code:\n```python\n{starter.rstrip()}\n```"
    if reads_input:
        return f"{content.rstrip()}\n\nWrite a whole program that reads standard input and prints the answer."
    return content


def _is_within(row: Row, since: date | None, until: date | None) -> bool:
    if since is None and until is None:
        return True
    text = str(row.get("contest_date"))[:10]  # of a text in ISO form as of a timestamp of parquet
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise RowError("contest_date", f"must begin with YYYY-MM-DD to choose by date, got {text!r}") from error
    return (since is None or since <= day) and (until is None or day <= until)
