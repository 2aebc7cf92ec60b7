"""What verl's keys ask for beside the run's folder: loggers, a table of validation, and profiles."""

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
"""verl's, so that each validation shows the same questions."""


def log_generations(trainer: Any, file: Path, questions: Sequence[Question]) -> None:
    """Give the loggers of a trainer of verl's a table of its newest validation (``trainer.log_val_generations``).

    Args:
        file: rollouts of the validation.
        questions: of the validation.
    """
    settings = trainer.config.trainer
    if settings.log_val_generations:
        prompts = {question.id: question.prompt for question in questions}
        samples = sample_generations(file, prompts, count=settings.log_val_generations)
        trainer.validation_generations_logger.log(settings.logger, samples, trainer.global_steps)


def sample_generations(file: Path, prompts: Mapping[str, str], *, count: int) -> list[Sample]:
    """Programs of a validation for ``trainer.log_val_generations``, each with a suite and what became of both.

    Args:
        file: rollouts of the validation.
        prompts: a question's text by its id.
        count: most samples; the same questions and programs whatever order their episodes ended in.
    """
    records = [record for record in read_rollouts(file) if record.kind == "sampled"]
    # Episodes end in any order, and the table must show the same questions at every validation.
    records.sort(key=lambda record: (prompts[record.question], record.candidate))
    chosen = np.random.RandomState(_SEED).permutation(len(records))[:count]
    return [_sample(records[place], prompts) for place in chosen]


def _sample(record: RolloutRecord, prompts: Mapping[str, str]) -> Sample:
    parts = [f"## Program: {_verdict(record)}", record.response]
    for suite in record.suites[:1]:
        failed = "not judged" if suite.verdict is None else f"{suite.verdict.num_failed} cases broke the program"
        parts += [f"## Suite: {suite.extraction_failure or failed}", suite.response]
    return prompts[record.question], "\n\n".join(parts), record.reward.total if record.reward else None


def _verdict(record: RolloutRecord) -> str:
    hidden = record.hidden_tests
    if hidden is None or record.outage:
        return record.outage or record.extraction_failure or "no hidden tests"
    return f"failed {hidden.num_failed} of {hidden.num_valid} hidden tests"
