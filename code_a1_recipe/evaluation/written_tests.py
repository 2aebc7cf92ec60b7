"""Suites that a Test LLM writes for functions with references."""

from collections.abc import Sequence
from dataclasses import dataclass

from reward_fns import ExtractionFailure, extract_suite

from ..algorithm.prompts import render, template_for
from ..algorithm.question import Question
from ..data.reader import question_table
from ..errors import InputError
from ..files import fingerprint
from .models.source import ModelChoice, sample_stored
from .options import SuiteEvalOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSuite:
    """The response about one question."""

    question: Question
    asserts: tuple[str, ...] = ()
    extraction_failure: str = ""

    @property
    def key(self) -> str:
        """Changes with the asserts, so that a measurement is never another response's."""
        return f"{self.question.id} {fingerprint(*self.asserts)}"


def load_functions(options: SuiteEvalOptions) -> list[Question]:
    """Questions whose references tests are written for.

    Raises:
        InputError: a file cannot be used, or an id stands for two questions.
    """
    table = question_table(options.files, adapter=options.adapter, columns=options.columns)
    for question in table.values():
        if question.reads_input:
            raise InputError(
                f"question {question.id!r} reads standard input; eval test measures tests of functions. Leave the "
                "questions of kind stdin out"
            )
    return list(table.values())[: options.limit]


def sample_suites(questions: Sequence[Question], model: ModelChoice, options: SuiteEvalOptions) -> list[WrittenSuite]:
    """Responses of the Test LLM as suites, sampled where they are not stored; ``options.prompt`` is filled in."""
    template = template_for("test", str(options.prompt))
    prompts = [
        (one.id, render(template, **one.prompt_fields, candidate=one.reference, num_cases=options.tests))
        for one in questions
    ]
    written = []
    responses = sample_stored(model, prompts, options, policy="test", num_samples=1)
    for question, (response,) in zip(questions, responses, strict=True):
        asserts: tuple[str, ...] | ExtractionFailure = ExtractionFailure(reason="too_long")
        if response:
            asserts = extract_suite(response.text, max_asserts=options.tests)
        if isinstance(asserts, ExtractionFailure):
            written.append(WrittenSuite(question=question, extraction_failure=asserts.reason))
        else:
            written.append(WrittenSuite(question=question, asserts=asserts))
    return written
