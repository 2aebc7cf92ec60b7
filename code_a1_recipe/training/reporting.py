"""The table of generations that verl's loggers show after a validation (``trainer.log_val_generations``)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..algorithm.question import Question
from ..runs.reader import read_rollouts
from ..runs.rollout_record import RolloutRecord

Sample = tuple[str, str, float | None]
"""Input, output and score: the columns of verl's ``ValidationGenerationsLogger``."""
_SEED = 42
"""Seed that verl uses too, so that each validation shows the same questions."""


def log_generations(trainer: Any, file: Path, questions: Sequence[Question]) -> None:
    """Give a verl trainer's loggers a table of its newest validation, if ``trainer.log_val_generations`` is set.

    Args:
        trainer: verl's trainer.
        file: the rollouts of the validation.
        questions: the questions of the validation.
    """
    settings = trainer.config.trainer
    if count := settings.log_val_generations:
        prompts = {question.id: question.prompt for question in questions}
        samples = sample_generations(file, prompts, count=count)
        trainer.validation_generations_logger.log(settings.logger, samples, trainer.global_steps)


def sample_generations(file: Path, prompts: Mapping[str, str], *, count: int) -> list[Sample]:
    """Choose programs of a validation for the table, each with its first suite and the verdicts of both.

    Args:
        file: the rollouts of the validation.
        prompts: a question's text by its id.
        count: number of samples at most.
    """
    records = [record for record in read_rollouts(file) if record.kind == "sampled"]
    # Episodes end in any order, and the table must show the same questions at every validation.
    records.sort(key=lambda record: (prompts[record.question], record.candidate))
    order = np.random.RandomState(_SEED).permutation(len(records))
    chosen = [records[number] for number in order[:count]]
    return [_sample(record, prompts[record.question]) for record in chosen]


def _sample(record: RolloutRecord, prompt: str) -> Sample:
    parts = [f"## Program: {_verdict(record)}", record.response]
    for suite in record.suites[:1]:
        verdict = suite.verdict
        outcome = "not judged" if verdict is None else f"{verdict.num_failed} cases broke the program"
        parts += [f"## Suite: {suite.extraction_failure or outcome}", suite.response]
    score = record.reward.total if record.reward else None
    return prompt, "\n\n".join(parts), score


def _verdict(record: RolloutRecord) -> str:
    hidden = record.hidden_tests
    if hidden is None or record.outage:
        return record.outage or record.extraction_failure or "no hidden tests"
    return f"failed {hidden.num_failed} of {hidden.num_valid} hidden tests"
