"""``code-a1 eval test``: measures the tests that a Test LLM writes, by UnLeakedTestBench's metrics."""

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
from .code_llm import VERDICTS, reading_settings
from .models.options import run_of, usual_prompt
from .models.source import ModelChoice, choose_model, sample_stored
from .options import SuiteEvalOptions
from .results import LOST, PartsByQuestion, Results

OWN_TESTS = "the questions' own tests"


@dataclass(frozen=True, kw_only=True)
class WrittenSuite:
    """The asserts that a response holds about one question."""

    question: Question
    asserts: tuple[str, ...] = ()
    extraction_failure: str = ""

    @property
    def key(self) -> str:
        """Key of the measurement. It changes with the asserts, so no measurement is taken for another response's."""
        return f"{self.question.id} {fingerprint(*self.asserts)}"


def evaluate(options: SuiteEvalOptions) -> Results | int:
    """Sample, measure and summarise. Responses, measurements and results are written to ``options.output``.

    Returns:
        The results, or with ``--sample-only`` the number of stored responses.

    Raises:
        InputError, SandboxConfigError: an option, a file, the model or the sandbox cannot be used.
        OutageError, SandboxUnavailableError: the model or the sandbox is down; finished work is kept.
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
    model = ModelChoice(label=OWN_TESTS, fingerprint=OWN_TESTS)
    if options.own_tests:
        written = [WrittenSuite(question=question, asserts=question.tests[: options.tests]) for question in questions]
    else:
        model = choose_model(options.model, policy="test", work_folder=options.output, stored_only=options.judge_only)
        written = sample_suites(questions, model, options)
    if options.sample_only:
        return len(written)
    judged_with = {**reading_settings(options), "max_mutants": options.max_mutants}
    ks = sorted({k for k in (1, 2, 5, options.tests) if k <= options.tests})
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
        parts, counts = summarise((verdicts.row(suite.key) for suite in written), ks=ks)
    results = Results(
        kind="test",
        label=model.label,
        settings={
            "model": model.fingerprint,
            "sampling": asdict(options.model.sampling("test")),
            **{name: getattr(options, name) for name in ("prompt", "tests", "seed")},
            **judged_with,
        },
        source_of={question.id: question.data_source or "questions" for question in questions},
        parts=parts,
        products={f"mul@{k}": (f"pass@{k}", f"mut@{k}") for k in ks if f"mut@{k}" in parts},
        counts=counts,
    )
    results.save(options.output)
    return results


def sample_suites(questions: Sequence[Question], model: ModelChoice, options: SuiteEvalOptions) -> list[WrittenSuite]:
    """Return the Test LLM's suites. Only responses that are not stored are sampled; ``options.prompt`` must be set."""
    template = template_for("test", options.prompt)
    prompts = []
    for question in questions:
        # The reference stands where training shows the program under test.
        program = question.reference
        messages = render(template, **question.prompt_fields, candidate=program, num_cases=options.tests)
        prompts.append((question.id, messages))
    parameters = options.model.sampling("test")
    responses = sample_stored(model, prompts, options, policy="test", num_samples=1, parameters=parameters)
    written = []
    for question, (response,) in zip(questions, responses, strict=True):
        asserts = extract_suite(response.text, max_asserts=options.tests) if response else None
        if isinstance(asserts, tuple):
            written.append(WrittenSuite(question=question, asserts=asserts))
        else:
            reason = asserts.reason if asserts else "too_long"
            written.append(WrittenSuite(question=question, extraction_failure=reason))
    return written


def measured_row(suite: WrittenSuite, options: SuiteEvalOptions, *, judge_all: JudgeAll, runner: LocalRunner) -> Row:
    """Measure a suite. ``result`` is a ``FunctionResult``, or null after an outage, which ``outage`` explains."""
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
            killable = killable_by(question, [mutant.source for mutant in mutants], question.tests, judge_all)
        calls = calls_in(question, asserts)
        with contextlib.suppress(ValueError):  # the reference does not load, so nothing is covered
            coverage = measure_coverage(runner, question.reference, calls, prelude=question.prelude)
        result = measure_function(
            question, asserts, judge_all=judge_all, mutants=mutants, coverage=coverage, killable=killable
        )
    except SandboxUnavailableError as error:
        return row | {"outage": f"{type(error).__name__}: {error}"}
    return row | {"result": msgspec.to_builtins(result, order="deterministic")}


def summarise(rows: Iterable[Row], *, ks: Sequence[int]) -> tuple[PartsByQuestion, dict[str, int]]:
    """Return the parts of every metric by question, and counts of lost suites."""
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
    # A metric without any denominator, such as mut@k without mutants, is no result.
    known = {metric: pairs for metric, pairs in parts.items() if any(total for _, total in pairs.values())}
    return known, dict(+counts)
