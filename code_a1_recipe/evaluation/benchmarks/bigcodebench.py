"""BigCodeBench's problems as tasks for a Code LLM (Zhuo et al., arXiv 2406.15877); its own evaluator judges them."""

from pathlib import Path

from ...data.native_row import Row, text_of
from ...data.reader import iter_rows, read_each
from .own_evaluators import OwnEvaluator, solution_lines
from .tasks import CodeTask

COLUMNS = frozenset({"task_id", "complete_prompt", "instruct_prompt", "entry_point"})
"""Columns that must all exist; they also recognise the benchmark."""
_HINT = "take the file as bigcode/bigcodebench has it, or remove the row"


def bigcodebench_tasks(path: Path, *, split: str) -> list[CodeTask]:
    """All problems of a file, asked as in the split "complete" or "instruct".

    Raises:
        InputError: the file cannot be read, or a row breaks a rule.
    """
    evaluate = f"bigcodebench.evaluate --execution local --split {split} --subset SUBSET"
    evaluator = OwnEvaluator(
        benchmark=f"BigCodeBench-{split.capitalize()}",
        samples_name=f"bigcodebench_{split}_samples.jsonl",
        form=solution_lines,
        # The whole response: the benchmark's sanitizer looks for the program, as in published figures.
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
