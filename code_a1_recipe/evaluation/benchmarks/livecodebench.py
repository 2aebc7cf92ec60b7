"""LiveCodeBench's problems as tasks for a Code LLM (Jain et al., arXiv 2403.07974); its own evaluator judges them."""

from datetime import date
from pathlib import Path

from ...data.native_row import Row, text_of
from ...data.reader import iter_rows, read_each
from ...errors import RowError
from ...jobs.progress import watched
from .own_evaluators import OwnEvaluator, code_lists
from .tasks import CodeTask

COLUMNS = frozenset({"question_id", "question_content", "starter_code", "contest_date"})
"""Columns that must all exist; they also recognise the benchmark."""
_HINT = "take the file as livecodebench/code_generation_lite has it, or remove the row"
_COMMAND = "python -m lcb_runner.runner.custom_evaluator --release_version VERSION"
_FENCE = "```"


def livecodebench_tasks(
    path: Path, *, since: date | None = None, until: date | None = None
) -> tuple[list[CodeTask], int]:
    """The problems of a file whose contest was from ``since`` to ``until``, both included; how many others it has.

    Raises:
        InputError: the file cannot be read, or a row breaks a rule.
    """
    start = f" --start_date {since}" if since else ""
    end = f" --end_date {until}" if until else ""
    evaluator = OwnEvaluator(
        benchmark="LiveCodeBench",
        samples_name="livecodebench_samples.json",
        form=code_lists,
        extract=last_block,
        command=f"{_COMMAND}{start}{end} --custom_output_file {{stem}}.json",
    )

    def read(row: Row) -> CodeTask | None:
        return _read_task(row, evaluator) if _is_within(row, since, until) else None

    rows = watched(iter_rows(path), total=None, what=f"read {path.name}", unit="problem")
    found = list(read_each(rows, read, where=path, hint=_HINT))
    tasks = [task for task in found if task]
    return tasks, len(found) - len(tasks)


def last_block(response: str) -> str:
    """The lines between the last two that hold a fence, LiveCodeBench's own rule; empty without two of them.

    Example:
        >>> last_block("Like this:\\n```python\\nprint(1)\\n```\\nIt prints 1.")
        'print(1)'
    """
    lines = response.split("\n")
    fences = [number for number, line in enumerate(lines) if _FENCE in line]
    if len(fences) < 2:
        return ""
    first, last = fences[-2:]
    return "\n".join(lines[first + 1 : last])


def _read_task(row: Row, evaluator: OwnEvaluator) -> CodeTask:
    name = row.get("question_id")
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise RowError("question_id", f"must be a text or an integer, got {name!r}")
    content = text_of(row, "question_content").rstrip()
    starter = text_of(row, "starter_code").rstrip()
    wanted = "Write a whole program that reads standard input and prints the answer."
    if starter:
        wanted = f"Complete this code:\n{_FENCE}python\n{starter}\n{_FENCE}"
    difficulty = row.get("difficulty")
    return CodeTask(
        id=f"LiveCodeBench/{name}",
        data_source=f"LiveCodeBench {difficulty}" if difficulty else "LiveCodeBench",
        prompt=f"{content}\n\n{wanted}",
        reads_input=not starter,
        evaluator=evaluator,
        official_id=str(name),
    )


def _is_within(row: Row, since: date | None, until: date | None) -> bool:
    if since is None and until is None:
        return True
    text = str(row.get("contest_date"))[:10]  # of a text in ISO form as of a timestamp of parquet
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise RowError("contest_date", f"must begin with YYYY-MM-DD to choose by date, got {text!r}") from error
    return (since is None or since <= day) and (until is None or day <= until)
