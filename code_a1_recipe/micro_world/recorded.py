"""Buggy programs of the base Code LLM, recorded once: every Test LLM is measured on the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reward_fns.extract import extract_candidate
from sandbox import Judge, LocalRunner

from .measure import sample_responses, solves
from .messages import code_messages
from .world import MicroQuestion

_SAMPLES_PER_QUESTION = 4


def record_buggy_programs(code_model: Path, questions: Sequence[MicroQuestion]) -> dict[str, list[str]]:
    """By question id: a typical buggy program, then one that ``code_model`` wrote itself, where it wrote any.

    Programs of the model run confined, as everywhere.
    """
    prompts = [code_messages(question.prompt) for question in questions]
    sampled = sample_responses(code_model, prompts, num_samples=_SAMPLES_PER_QUESTION, temperature=1.0)
    found: dict[str, list[str]] = {}
    with LocalRunner() as runner, Judge(runner) as judge:
        for question, texts in zip(questions, sampled, strict=True):
            programs = dict.fromkeys(program for text in texts if isinstance(program := extract_candidate(text), str))
            wrong = (
                program for program in programs if program != question.mutant and not solves(judge, question, program)
            )
            found[question.id] = [question.mutant, *[program for program in [next(wrong, None)] if program]]
    return found
