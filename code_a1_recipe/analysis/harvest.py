"""Tests that a run's Test LLM wrote, as fixed tests of their questions: the `static` arm."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..questions import Question
from .records import RecordsError, RunRecords

MOST_TESTS = 32
"""Per question, those that broke most programs first."""


def harvest(run_folder: Path, target: Path, *, last_share: float = 0.5) -> int:
    """Write the run's training questions with the valid cases of their last visits as ``golden_tests``.

    Args:
        run_folder: a finished run with a Test LLM.
        target: JSON lines in the native columns; replaced.
        last_share: of the run's steps, the part at the end whose suites are taken: by then the Test LLM is trained.
            A question that has no valid case there has those of the earlier steps.

    Returns:
        Questions written; those without a valid case are left out.

    Raises:
        RecordsError: the run has no suites, or ``target`` is a folder.
        QuestionError: its questions are not there any more.
    """
    if target.is_dir():
        raise RecordsError(f"{target} is a folder; name the file to write")
    run = RunRecords.open(run_folder)
    steps = run.training_steps
    first = int(len(steps) * (1 - last_share))
    broken = _broken_counts(run, steps[first:])
    for question, counts in _broken_counts(run, steps[:first]).items():
        broken[question] = broken.get(question) or counts  # no visit, or no valid case, since
    if not any(broken.values()):
        raise RecordsError(f"{run_folder}: no valid case in its rollouts; harvest a run in which a Test LLM took part")
    rows = [
        _row(question, [text for text, _ in broken[question.id].most_common(MOST_TESTS)])
        for question in run.questions("train_files")
        if broken.get(question.id)
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    partial.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    partial.replace(target)
    return len(rows)


def _broken_counts(run: RunRecords, steps: Sequence[int]) -> dict[str, Counter[str]]:
    """By question: each valid case as an assert, with the number of programs it broke."""
    broken: dict[str, Counter[str]] = {}
    for step in steps:
        for record in run.training(step):
            counts = broken.setdefault(str(record["question"]), Counter())
            for suite in record["suites"]:
                for case in suite["verdict"]["cases"] if suite["verdict"] else ():
                    text = f"assert {case['call']} == {case['answer']}"
                    counts[text] += case["outcome"] not in ("passed", "not_loaded")
    return broken


def _row(question: Question, tests: list[str]) -> dict[str, object]:
    return {
        "id": question.id,
        "prompt": question.prompt,
        "reference": question.reference,
        "entry_points": list(question.entry_points),
        "prelude": question.prelude,
        "tests": list(question.tests),
        "golden_tests": tests,
        "wrong_programs": list(question.wrong_programs),
        "data_source": question.data_source,
    }
