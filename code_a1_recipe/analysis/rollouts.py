"""A run's programs with their suites and what came of them, as text to browse."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError
from ..jobs.terminal import Paint, indented, printable
from ..runs.reader import RunRecords
from .episode_text import matching
from .question_view import program_lines, questions_by_id
from .step_times import ranges


def browse(
    folder: Path,
    *,
    step: int | None = None,
    question: str = "",
    outcome: str = "",
    validation: bool = False,
    limit: int = 10,
) -> str:
    """Programs of one step.

    Args:
        folder: run folder.
        step: None: the last one with rollouts.
        question: id, or how it begins; empty: all.
        outcome: a name of ``episode_text.OUTCOMES``; empty: all.
        validation: held-out questions instead of training's.
        limit: most programs to print.

    Raises:
        InputError: there is no such run or step.
    """
    run = RunRecords.open(folder)
    steps = run.validation_steps if validation else run.training_steps
    chosen = step if step is not None else (steps or [0])[-1]
    if chosen not in steps:
        hint = "" if validation or not run.validation_steps else "; try --validation"
        raise InputError(f"{folder} has no rollouts of step {chosen}; it has {ranges(steps)}{hint}")
    records = run.validation(chosen) if validation else run.training(chosen)
    questions = questions_by_id(run)
    found = matching(records, question=question, outcome=outcome)
    paint = Paint.for_stdout()
    shown = []
    for record in found[:limit]:
        known = questions.get(record.question)
        prompt = indented(known.prompt if known else "(its file is not there any more)", 2)
        head = paint("heading", f"question {printable(record.question)}")
        shown.append("\n".join([head, *prompt, *program_lines(record, paint)]))
    count = f"{min(len(found), limit)} of {len(found)} that match, of {len(records)} at step {chosen}"
    return "\n\n".join([*shown, count])
