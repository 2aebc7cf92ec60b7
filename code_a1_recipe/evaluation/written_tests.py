"""Suites that a Test LLM writes for functions with references."""

from collections.abc import Sequence
from dataclasses import dataclass

from reward_fns import ExtractionFailure, extract_suite

from ..algorithm.prompts import render, template_for
from ..algorithm.question import Question
from ..data.reader import read_questions
from ..errors import InputError
from ..files import fingerprint
from .benchmarks.tasks import check_distinct
from .models.source import ModelChoice, sample_stored
from .options import SuiteEvalOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One program that tests are written for: a question's reference, or a buggy program of it."""

    question: Question
    program: str
    number: int
    """0 for the reference, from 1 for the buggy programs."""

    @property
    def name(self) -> str:
        """The question's id, with the buggy program's number."""
        return self.question.id if not self.number else f"{self.question.id} wrong {self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSuite:
    """One response about one subject."""

    subject: Subject
    sample: int
    asserts: tuple[str, ...]
    extraction_failure: str = ""

    @property
    def key(self) -> str:
        """Changes with the asserts, so that a measurement is never another response's."""
        return f"{self.subject.name} {self.sample} {fingerprint(*self.asserts)}"


def load_subjects(options: SuiteEvalOptions) -> list[Subject]:
    """Programs that tests are written for.

    Raises:
        InputError: a file cannot be used, or an id comes twice.
    """
    questions: list[Question] = []
    for path in options.files:
        questions += read_questions(path, adapter=options.adapter, columns=options.columns).questions
    check_distinct([question.id for question in questions], what="functions")
    if readers := [question.id for question in questions if question.reads_input]:
        raise InputError(
            f"question {readers[0]!r} reads standard input; eval test measures tests of functions. Leave the "
            f"{len(readers)} questions of kind stdin out"
        )
    chosen = questions[: options.limit]
    subjects = [Subject(question=question, program=question.reference, number=0) for question in chosen]
    if options.buggy_programs:
        for question in chosen:
            for number, program in enumerate(question.buggy_programs, 1):
                subjects.append(Subject(question=question, program=program, number=number))
    return subjects


def sample_suites(subjects: Sequence[Subject], model: ModelChoice, options: SuiteEvalOptions) -> list[WrittenSuite]:
    """Responses of the Test LLM as suites, sampled where they are not stored; ``options.prompt`` is filled in."""
    template = template_for("test", str(options.prompt))
    prompts = [
        (one.name, render(template, **one.question.prompt_fields, candidate=one.program, num_cases=options.tests))
        for one in subjects
    ]
    responses = sample_stored(model, prompts, options, policy="test", num_samples=options.suites)
    return [
        _suite(subject, sample, response.text if response else None, num_tests=options.tests)
        for subject, row in zip(subjects, responses, strict=True)
        for sample, response in enumerate(row)
    ]


def _suite(subject: Subject, sample: int, text: str | None, *, num_tests: int) -> WrittenSuite:
    asserts = ExtractionFailure(reason="too_long") if text is None else extract_suite(text, max_asserts=num_tests)
    if isinstance(asserts, ExtractionFailure):
        return WrittenSuite(subject=subject, sample=sample, asserts=(), extraction_failure=asserts.reason)
    return WrittenSuite(subject=subject, sample=sample, asserts=asserts)
