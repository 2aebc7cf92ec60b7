"""A run's programs with their suites and what came of them, as text to browse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError
from ..runs.reader import RunRecords
from .episode_text import matching, view_of
from .report import questions_by_id


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
        raise InputError(f"{folder} has no rollouts of step {chosen}; it has {_span(steps)}{hint}")
    records = run.validation(chosen) if validation else run.training(chosen)
    questions = questions_by_id(run)
    found = matching(records, question=question, outcome=outcome)
    views = [view_of(record, questions).text() for record in found[:limit]]
    count = f"{min(len(found), limit)} of {len(found)} that match, of {len(records)} at step {chosen}"
    return "\n\n".join([*views, count])


def _span(steps: Sequence[int]) -> str:
    return "none" if not steps else f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
