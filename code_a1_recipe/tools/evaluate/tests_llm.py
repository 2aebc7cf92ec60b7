"""``code-a1 eval test``: a Test LLM on functions with references, by UnLeakedTestBench's metrics."""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

import msgspec

from reward_fns import extract_suite
from sandbox import LocalRunner, SandboxUnavailableError

from ...algorithm.prompts import render, template_for
from ...algorithm.question import Question
from ...errors import InputError
from ...files import fingerprint
from ...jobs.confinement import Confinement, JudgeAll, judge_confined
from ...jobs.jsonl_store import JsonlStore, Row
from ..test_quality.coverage import calls_in, measure_coverage
from ..test_quality.metrics import FunctionResult, killable_by, measure_function, parts_of
from ..test_quality.mutants import mutants_of
from .code_llm import VERDICTS
from .models.options import run_of, usual_prompt
from .models.source import ModelChoice, choose_model, sample_stored
from .options import SuiteEvalOptions
from .results import LOST, PartsByQuestion, Results

OWN_TESTS = "the questions' own tests"


@dataclass(frozen=True, kw_only=True)
class WrittenSuite:
    """The response about one question."""

    question: Question
    asserts: tuple[str, ...] = ()
    extraction_failure: str = ""

    @property
    def key(self) -> str:
        """Changes with the asserts, so that a measurement is never another response's."""
        return f"{self.question.id} {fingerprint(*self.asserts)}"


def evaluate(options: SuiteEvalOptions) -> Results | int:
    """Sample, measure, summarise; responses, verdicts and results are in ``options.output``.

    Returns:
        The results; of ``--sample-only`` the number of stored responses.

    Raises:
        InputError, SandboxConfigError: something cannot be used.
        OutageError, SandboxUnavailableError: the model or the sandbox is down; what is done is kept.
    """
    options = replace(options, prompt=options.prompt or usual_prompt(run_of(options.model), "test"))
    questions = options.questions()
    for question in questions:
        if question.reads_input:
            raise InputError(
                f"question {question.id!r} reads standard input; eval test measures tests of functions. Leave the "
                "questions of kind stdin out"
            )
        if question.is_listed:
            raise InputError(f"question {question.id!r} has listed outputs; eval test needs its reference's own code")
    model = None
    if options.own_tests:
        written = [WrittenSuite(question=one, asserts=one.tests[: options.tests]) for one in questions]
    else:
        model = choose_model(options.model, policy="test", work_folder=options.output, stored_only=options.judge_only)
        written = sample_suites(questions, model, options)
    if options.sample_only:
        return len(written)
    judged_with = {**options.read_with(), "max_mutants": options.max_mutants}
    with (
        JsonlStore(options.output / VERDICTS, settings=judged_with) as verdicts,
        LocalRunner(num_workers=options.workers) as runner,
    ):
        judge_confined(
            verdicts,
            written,
            lambda suite, judge_all: measured_row(suite, options, judge_all=judge_all, runner=runner),
            key=lambda suite: suite.key,
            confinement=Confinement(),
            num_workers=options.workers,
            unit="suite",
        )
        parts, found = summarise((verdicts.row(one.key) for one in written), ks=options.ks)
    results = Results(
        kind="test",
        label=model.label if model else OWN_TESTS,
        settings={
            "model": model.fingerprint if model else OWN_TESTS,
            "sampling": asdict(options.model.sampling("test")),
            **{name: getattr(options, name) for name in ("prompt", "tests", "seed")},
            **judged_with,
        },
        source_of={one.id: one.data_source or "questions" for one in questions},
        parts=parts,
        products={f"mul@{k}": (f"pass@{k}", f"mut@{k}") for k in options.ks if f"mut@{k}" in parts},
        counts=found,
    )
    results.save(options.output)
    return results


def sample_suites(questions: Sequence[Question], model: ModelChoice, options: SuiteEvalOptions) -> list[WrittenSuite]:
    """Responses of the Test LLM as suites, sampled where they are not stored; ``options.prompt`` is filled in."""
    template = template_for("test", options.prompt)
    prompts = [
        (one.id, render(template, **one.prompt_fields, candidate=one.reference, num_cases=options.tests))
        for one in questions
    ]
    written = []
    responses = sample_stored(model, prompts, options, policy="test", num_samples=1)
    for question, (response,) in zip(questions, responses, strict=True):
        asserts = extract_suite(response.text, max_asserts=options.tests) if response else None
        if isinstance(asserts, tuple):
            written.append(WrittenSuite(question=question, asserts=asserts))
        else:
            reason = asserts.reason if asserts else "too_long"
            written.append(WrittenSuite(question=question, extraction_failure=reason))
    return written


def measured_row(suite: WrittenSuite, options: SuiteEvalOptions, *, judge_all: JudgeAll, runner: LocalRunner) -> Row:
    """The row of a suite; an outage leaves ``result`` null, a ``FunctionResult``, and says why in ``outage``."""
    question, asserts = suite.question, suite.asserts
    row: Row = {
        "key": suite.key,
        "question": question.id,
        "outage": "",
        "extraction_failure": suite.extraction_failure,
        "num_tests": len(asserts),
        "result": None,
    }
    mutants, coverage, killable = [], None, None
    try:
        if options.max_mutants:
            mutants = mutants_of(question.reference, max_mutants=options.max_mutants)
            killable = killable_by(question, [one.source for one in mutants], question.tests, judge_all)
        calls = calls_in(question, asserts)
        with contextlib.suppress(ValueError):  # a reference that does not load covers nothing
            coverage = measure_coverage(runner, question.reference, calls, prelude=question.prelude)
        result = measure_function(
            question, asserts, judge_all=judge_all, mutants=mutants, coverage=coverage, killable=killable
        )
    except SandboxUnavailableError as error:
        return row | {"outage": f"{type(error).__name__}: {error}"}
    return row | {"result": msgspec.to_builtins(result, order="deterministic")}


def summarise(rows: Iterable[Row], *, ks: Sequence[int]) -> tuple[PartsByQuestion, dict[str, int]]:
    """Parts of every metric by question, and counts."""
    parts: PartsByQuestion = defaultdict(dict)
    counts: Counter[str] = Counter()
    for row in rows:
        counts[f"suites {LOST}"] += bool(row["outage"])
        counts["responses without a suite"] += bool(row["extraction_failure"])
        if row["outage"]:
            continue
        result = msgspec.convert(row["result"], FunctionResult)
        for k in ks:
            for metric, pair in parts_of(result, k).items():
                if result.killable is not None or "killable" not in metric:
                    parts[f"{metric}@{k}"][row["question"]] = pair
    known = {metric: pairs for metric, pairs in parts.items() if any(total for _, total in pairs.values())}
    return known, dict(+counts)
