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
"""verl's own seed. With a fixed seed each validation shows the same questions."""


def log_generations(trainer: Any, file: Path, questions: Sequence[Question]) -> None:
    """Send a table of the newest validation to the trainer's loggers, if ``trainer.log_val_generations`` is set.

    Args:
        trainer: verl's trainer.
        file: the rollouts of the validation.
        questions: the questions of the validation.
    """
    settings = trainer.config.trainer
    if not settings.log_val_generations:
        return
    prompts = {question.id: question.prompt for question in questions}
    samples = sample_generations(file, prompts, count=settings.log_val_generations)
    trainer.validation_generations_logger.log(settings.logger, samples, trainer.global_steps)


def sample_generations(file: Path, prompts: Mapping[str, str], *, count: int) -> list[Sample]:
    """Choose programs of a validation for the table, each with its first suite and the verdicts of both.

    Args:
        file: the rollouts of the validation.
        prompts: text of each question by its id.
        count: largest number of samples.
    """
    records = [record for record in read_rollouts(file) if record.kind == "sampled"]
    # Episodes end in any order, and the table must show the same questions at every validation.
    records.sort(key=lambda record: (prompts[record.question], record.candidate))
    order = np.random.RandomState(_SEED).permutation(len(records))
    samples = []
    for number in order[:count]:
        record = records[number]
        samples.append(_sample(record, prompts[record.question]))
    return samples


def _sample(record: RolloutRecord, prompt: str) -> Sample:
    parts = [f"## Program: {_verdict(record)}", record.response]
    if record.suites:
        suite = record.suites[0]
        outcome = "not judged"
        if suite.verdict is not None:
            outcome = f"{suite.verdict.num_failed} cases broke the program"
        parts.append(f"## Suite: {suite.extraction_failure or outcome}")
        parts.append(suite.response)
    score = record.reward.total if record.reward else None
    return prompt, "\n\n".join(parts), score


def _verdict(record: RolloutRecord) -> str:
    hidden = record.hidden_tests
    if record.outage:
        return record.outage
    if hidden is None:
        return record.extraction_failure or "no hidden tests"
    return f"failed {hidden.num_failed} of {hidden.num_valid} hidden tests"
