"""Problems of LiveCodeBench and BigCodeBench as tasks. The benchmarks' own evaluators judge the programs.

Papers: LiveCodeBench (Jain et al., arXiv 2403.07974) and BigCodeBench (Zhuo et al., arXiv 2406.15877).
"""

from pathlib import Path

from ....data.native_row import Row, text_of
from ....data.reader import iter_rows, read_each
from ....errors import RowError
from ....jobs.progress import Progress
from .own_evaluators import OwnEvaluator, code_lists, solution_lines
from .tasks import CodeTask

LIVECODEBENCH_COLUMNS = {"question_id", "question_content", "starter_code", "contest_date"}
"""Columns that identify a file of LiveCodeBench."""
BIGCODEBENCH_COLUMNS = {"task_id", "complete_prompt", "instruct_prompt", "entry_point"}
"""Columns that identify a file of BigCodeBench."""
_HINT = "take the file as its authors published it, or remove the row"
_FENCE = "```"


def livecodebench_tasks(path: Path) -> list[CodeTask]:
    """Read all problems of a file.

    Raises:
        InputError: the file cannot be read, or a row breaks a rule.
    """
    rows = Progress(f"read {path.name}", iter_rows(path), total=None, unit="problem")
    return list(read_each(rows, _livecodebench_task, where=path, hint=_HINT))


def last_block(response: str) -> str:
    """Return the lines between the last two fences, as LiveCodeBench does. Returns "" if two fences are missing.

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


LIVECODEBENCH = OwnEvaluator(
    benchmark="LiveCodeBench",
    samples_name="livecodebench_samples.json",
    form=code_lists,
    extract=last_block,
    command="python -m lcb_runner.runner.custom_evaluator --release_version VERSION --custom_output_file {stem}.json",
)


def _livecodebench_task(row: Row) -> CodeTask:
    name = row.get("question_id")
    if type(name) not in (str, int) or name == "":
        raise RowError("question_id", f"must be a text or an integer, got {name!r}")
    content = text_of(row, "question_content").rstrip()
    starter = text_of(row, "starter_code").rstrip()
    wanted = "Write a whole program that reads standard input and prints the answer."
    if starter:
        wanted = f"Complete this code:\n{_FENCE}python\n{starter}\n{_FENCE}"
    return CodeTask(
        id=f"LiveCodeBench/{name}",
        data_source=f"LiveCodeBench {row.get('difficulty') or ''}".strip(),
        prompt=f"{content}\n\n{wanted}",
        reads_input=not starter,
        evaluator=LIVECODEBENCH,
        official_id=str(name),
    )


def bigcodebench_tasks(path: Path, *, split: str) -> list[CodeTask]:
    """Read all problems of a file, with the prompts of the split "complete" or "instruct".

    Raises:
        InputError: the file cannot be read, or a row breaks a rule.
    """
    evaluate = f"bigcodebench.evaluate --execution local --split {split} --subset SUBSET"
    evaluator = OwnEvaluator(
        benchmark=f"BigCodeBench-{split.capitalize()}",
        samples_name=f"bigcodebench_{split}_samples.jsonl",
        form=solution_lines,
        # Write the whole response, because the benchmark's own sanitizer extracts the program from it.
        extract=str.strip,
        command=f"bigcodebench.sanitize --samples {{stem}}.jsonl && {evaluate} --samples {{stem}}-sanitized.jsonl",
    )

    def read(row: Row) -> CodeTask:
        name = text_of(row, "task_id")
        return CodeTask(
            id=name,
            data_source=evaluator.benchmark,
            prompt=text_of(row, f"{split}_prompt"),
            entry_points=f"`{text_of(row, 'entry_point')}`",
            evaluator=evaluator,
            official_id=name,
        )

    return list(read_each(iter_rows(path), read, where=path, hint=_HINT))
