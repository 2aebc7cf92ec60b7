"""``code-a1 eval test``: a Test LLM on functions with references, by UnLeakedTestBench's metrics."""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec

from sandbox import JudgeProcesses, LocalRunner, SandboxUnavailableError

from ..algorithm.question import Question
from ..jobs.confinement import JudgeAll
from ..jobs.jsonl_store import JsonlStore, Row
from ..jobs.judge_loop import judge_into
from ..test_quality.coverage import calls_in, measure_coverage
from ..test_quality.metrics import (
    FunctionResult,
    judge_assertions,
    judge_kills,
    killable_by,
    measure_function,
    parts_of,
)
from ..test_quality.mutants import Mutant, mutants_of
from .code_llm import VERDICTS
from .models.options import run_of, usual_prompt
from .models.source import choose_model
from .options import SuiteEvalOptions
from .results import LOST, Pair, Results
from .written_tests import WrittenSuite, load_subjects, sample_suites

MUTANTS = "mutants"
OWN_TESTS = "the questions' own tests"
PartsByQuestion = dict[str, dict[str, Pair]]
"""Metric -> question -> (numerator, denominator)."""


def evaluate(options: SuiteEvalOptions) -> Results | int:
    """Sample, measure, summarise; responses, verdicts and results are in ``options.output``.

    Returns:
        The results; of ``--sample-only`` the number of stored responses.

    Raises:
        InputError, SandboxConfigError: something cannot be used.
        OutageError, SandboxUnavailableError: the model or the sandbox is down; what is done is kept.
    """
    options = replace(options, prompt=options.prompt or usual_prompt(run_of(options.model), "test"))
    subjects = load_subjects(options)
    model = None
    if options.own_tests:
        written = [WrittenSuite(subject=one, sample=0, asserts=one.question.tests[: options.tests]) for one in subjects]
    else:
        model = choose_model(options.model, policy="test", work_folder=options.output, stored_only=options.judge_only)
        written = sample_suites(subjects, model, options)
    if options.sample_only:
        return len(written)
    judged_with = options.judged_with()
    with JsonlStore(options.output / VERDICTS, settings=judged_with, key="key") as verdicts:
        measure(written, verdicts, options)
        parts, products, found = summarise((verdicts.row(one.key) for one in written), ks=options.ks)
    results = Results(
        kind="test",
        label=model.label if model else OWN_TESTS,
        settings={
            "model": model.fingerprint if model else OWN_TESTS,
            "sampling": asdict(options.model.sampling("test")),
            **{name: getattr(options, name) for name in ("prompt", "tests", "suites", "seed")},
            **judged_with,
        },
        source_of={one.question.id: one.question.data_source or "questions" for one in subjects},
        parts=parts,
        products=products,
        counts=found,
    )
    results.save(options.output)
    return results


def measure(written: Sequence[WrittenSuite], verdicts: JsonlStore, options: SuiteEvalOptions) -> None:
    """Measure what is not there yet. An outage is a row that says so."""
    left: dict[str, list[WrittenSuite]] = defaultdict(list)
    for suite in written:
        if suite.key not in verdicts:
            left[suite.subject.question.id].append(suite)
    if not left:
        return
    with JudgeProcesses(options.workers) as judges, LocalRunner(num_workers=options.workers) as runner:
        measurer = Measurer(judge_all=judges.judge_all, runner=runner, options=options)
        judge_into(
            verdicts,
            list(left.values()),
            measurer.rows,
            num_threads=2 * options.workers,
            total=len(verdicts) + sum(map(len, left.values())),
            unit="suite",
        )


@dataclass(frozen=True, kw_only=True)
class Measurer:
    """Makes the rows of responses; called from several threads."""

    judge_all: JudgeAll
    runner: LocalRunner
    options: SuiteEvalOptions

    def rows(self, written: Sequence[WrittenSuite]) -> list[Row]:
        """The rows of responses about one question. An outage leaves ``result`` null and says why in ``outage``."""
        rows = []
        mutants = None
        for suite in written:
            question = suite.subject.question
            row: Row = {
                "key": suite.key,
                "question": question.id,
                "sample": suite.sample,
                "outage": "",
                "extraction_failure": suite.extraction_failure,
                "buggy_program": suite.subject.number,
                "num_tests": len(suite.asserts),
            }
            try:
                if suite.subject.number:
                    row["killed_by"] = self._kills(suite)
                else:
                    mutants = mutants or self._mutants(question)
                    row["result"] = self._measured(question, suite.asserts, *mutants)
            except SandboxUnavailableError as error:
                row |= {"result": None, "killed_by": None, "outage": f"{type(error).__name__}: {error}"}
            rows.append(row)
        return rows

    def _mutants(self, question: Question) -> tuple[list[Mutant], list[bool] | None]:
        """The question's mutants, and which of them its own tests kill; None where no own test is correct."""
        if self.options.max_mutants == 0:
            return [], None
        cache = self.options.output / MUTANTS
        mutants = mutants_of(question.reference, cache_dir=cache, max_mutants=self.options.max_mutants)
        return mutants, killable_by(question, [one.source for one in mutants], question.tests, self.judge_all)

    def _measured(
        self, question: Question, asserts: Sequence[str], mutants: Sequence[Mutant], killable: list[bool] | None
    ) -> Any:
        """A ``FunctionResult`` in JSON's types."""
        calls, coverage = calls_in(question, asserts), None
        with contextlib.suppress(ValueError):  # a reference that does not load covers nothing
            coverage = measure_coverage(self.runner, question.reference, calls, prelude=question.prelude)
        result = measure_function(
            question,
            asserts,
            judge_all=self.judge_all,
            mutants=mutants,
            coverage=coverage,
            killable=killable,
        )
        return msgspec.to_builtins(result, order="deterministic")

    def _kills(self, suite: WrittenSuite) -> list[bool]:
        """[tests] correct as written, and failed by the buggy program."""
        question, judge_all = suite.subject.question, self.judge_all
        right = judge_assertions(question, suite.asserts, judge_all)
        sources = [suite.subject.program]
        (kills,) = judge_kills(question, suite.asserts, judge_all, right=right, sources=sources)
        return list(kills)


def summarise(
    rows: Iterable[Row], *, ks: Sequence[int]
) -> tuple[PartsByQuestion, dict[str, tuple[str, str]], dict[str, int]]:
    """Parts of every metric by question (sums over its responses), products, and counts."""
    results_of: dict[str, list[FunctionResult]] = defaultdict(list)
    bugs: dict[str, list[bool]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for row in rows:
        counts[f"suites {LOST}"] += bool(row["outage"])
        counts["responses without a suite"] += bool(row["extraction_failure"])
        if row["outage"]:
            continue
        if row["buggy_program"]:
            bugs[row["question"]].append(any(row["killed_by"]))
        else:
            results_of[row["question"]].append(msgspec.convert(row["result"], FunctionResult))
    parts: PartsByQuestion = defaultdict(dict)
    for question, results in results_of.items():
        has_killable = all(result.killable is not None for result in results)
        for metric, pair in parts_of(results, ks=ks).items():
            if has_killable or "killable" not in metric:
                parts[metric][question] = pair
    for question, killed in bugs.items():
        parts["bugs_killed"][question] = (float(sum(killed)), float(len(killed)))
    known = {metric: pairs for metric, pairs in parts.items() if any(total for _, total in pairs.values())}
    products = {f"mul@{k}": (f"pass@{k}", f"mut@{k}") for k in ks if f"mut@{k}" in known}
    return known, products, {name: number for name, number in counts.items() if number}
