"""``code-a1 eval test``: measures a Test LLM's suites by UnLeakedTestBench's metrics."""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from reward_fns import ExtractionFailure
from sandbox import LocalRunner, SandboxUnavailableError

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
from .models.source import StoredModel, sample_suites
from .options import SuiteEvalOptions
from .results import LOST, PartsByQuestion, Results

OWN_TESTS = "the questions' own tests"


@dataclass(frozen=True, kw_only=True)
class WrittenSuite:
    """The asserts of one response, or a question's own tests."""

    question: Question
    asserts: tuple[str, ...] = ()
    extraction_failure: str = ""

    @property
    def key(self) -> str:
        """Key of the measurement, which changes with the asserts, so that no other asserts get this measurement."""
        return f"{self.question.id} {fingerprint(*self.asserts)}"


def evaluate(options: SuiteEvalOptions) -> Results | int:
    """Sample, measure and summarise. Responses, measurements and results are written to ``options.output``.

    Returns:
        The results, or with ``--sample-only`` the number of stored responses.

    Raises:
        InputError, SandboxConfigError: an option, a file, the model or the sandbox cannot be used.
        OutageError, SandboxUnavailableError: the model or the sandbox is down; finished work is kept.
    """
    prompt = options.prompt or usual_prompt(run_of(options.model), "test")
    questions = options.questions()
    check_measurable(questions)
    model = StoredModel.choose(
        options.model,
        policy="test",
        folder=options.output,
        seed=options.seed,
        stored_only=options.judge_only,
        own=OWN_TESTS if options.own_tests else "",
    )
    suites: Sequence[tuple[str, ...] | ExtractionFailure]
    if options.own_tests:
        suites = [question.tests[: options.tests] for question in questions]
    else:
        # The prompt shows the reference where training's prompts show the program under test.
        programs = [(question.id, question, question.reference) for question in questions]
        suites = sample_suites(model, programs, prompt=prompt, num_tests=options.tests)
    written = []
    for question, suite in zip(questions, suites, strict=True):
        if isinstance(suite, tuple):
            written.append(WrittenSuite(question=question, asserts=suite))
        else:
            written.append(WrittenSuite(question=question, extraction_failure=suite.reason))
    if options.sample_only:
        return len(written)
    judged_with = {**options.reading_settings(), "max_mutants": options.max_mutants}
    ks = sorted({k for k in (1, 2, 5, options.tests) if k <= options.tests})
    with (
        JsonlStore(options.output / VERDICTS, settings=judged_with) as verdicts,
        LocalRunner(num_workers=options.workers) as runner,
    ):
        judge_confined(
            verdicts,
            written,
            lambda suite, judge_all: measured_row(
                suite, max_mutants=options.max_mutants, judge_all=judge_all, runner=runner
            ),
            key=lambda suite: suite.key,
            confinement=Confinement(),
            num_workers=options.workers,
            unit="suite",
        )
        parts, counts = summarise((verdicts.row(suite.key) for suite in written), ks=ks)
    sampling = {"prompt": prompt, "tests": options.tests, "seed": options.seed}
    results = Results(
        kind="test",
        label=model.choice.label,
        settings={**model.settings, **sampling, **judged_with},
        source_of={question.id: question.data_source or "questions" for question in questions},
        parts=parts,
        products={f"mul@{k}": (f"pass@{k}", f"mut@{k}") for k in ks if f"mut@{k}" in parts},
        counts=counts,
    )
    results.save(options.output)
    return results


def check_measurable(questions: Sequence[Question]) -> None:
    """Raises InputError if a question reads standard input, or if its reference's code is unknown."""
    for question in questions:
        if question.reads_input:
            raise InputError(
                f"question {question.id!r} reads standard input; eval test measures tests of functions. Leave the "
                "questions of kind stdin out"
            )
        if question.is_listed:
            raise InputError(
                f"question {question.id!r} has listed outputs; eval test needs its reference's own code. Leave the "
                "question out"
            )


def measured_row(suite: WrittenSuite, *, max_mutants: int, judge_all: JudgeAll, runner: LocalRunner) -> Row:
    """Measure a suite. The row's ``result`` is a ``FunctionResult``, or None if an outage ended the measurement."""
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
        if max_mutants:
            mutants = [mutant.source for mutant in mutants_of(question.reference, max_mutants=max_mutants)]
            killable = killable_by(question, mutants, question.tests, judge_all)
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
    """Return the parts of every metric by question, and the numbers of suites that were lost or not written."""
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
                parts[f"{metric}@{k}"][row["question"]] = pair
    # Leave out a metric whose denominators are all 0, such as mut@k without mutants.
    known = {metric: pairs for metric, pairs in parts.items() if any(total for _, total in pairs.values())}
    return known, dict(+counts)
