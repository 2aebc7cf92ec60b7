"""``code-a1 eval test``: a Test LLM on functions with references, by UnLeakedTestBench's metrics."""

import contextlib
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace

import msgspec

from sandbox import JudgeProcesses, LocalRunner, SandboxUnavailableError

from ..algorithm.question import Question
from ..jobs.jsonl_store import JsonlStore, Row
from ..jobs.judge_loop import judge_into
from ..test_quality.coverage import calls_in, measure_coverage
from ..test_quality.metrics import FunctionResult, judge_assertions, judge_kills, measure_function, parts_of
from ..test_quality.mutants import Mutant, mutants_of
from ..test_quality.mutation_kill import kill_mutants
from .code_llm import VERDICTS
from .models.options import run_of, usual_prompt
from .models.source import choose_model
from .options import SuiteEvalOptions
from .results import LOST, Pair, Results
from .written_tests import WrittenSuite, load_subjects, sample_suites, written_suites

MUTANTS = "mutants"
OWN_TESTS = "own tests"
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
    elif options.written:
        written = written_suites(subjects, options.written, options)
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
        label=model.label if model else options.written.name if options.written else "the questions' own tests",
        settings={
            "model": model.fingerprint if model else str(options.written or OWN_TESTS),
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
    left = [one for one in written if one.key not in verdicts]
    if not left:
        return
    with JudgeProcesses(options.workers) as judges, LocalRunner(num_workers=options.workers) as runner:
        measurer = Measurer(judges=judges, runner=runner, options=options)
        judge_into(
            verdicts,
            left,
            lambda one: [measurer.row(one)],
            num_threads=2 * options.workers,
            total=len(verdicts) + len(left),
            unit="suite",
        )


@dataclass(frozen=True, kw_only=True)
class Measurer:
    """Makes the row of a response; called from several threads."""

    judges: JudgeProcesses
    runner: LocalRunner
    options: SuiteEvalOptions
    _locks: dict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    _killable: dict[str, tuple[bool, ...] | None] = field(default_factory=dict)

    def row(self, one: WrittenSuite) -> Row:
        """The row of one response. An outage leaves ``result`` null and says why in ``outage``."""
        head: Row = {
            "key": one.key,
            "question": one.subject.question.id,
            "sample": one.sample,
            "outage": "",
            "extraction_failure": one.extraction_failure,
            "buggy_program": one.subject.number,
            "num_tests": len(one.asserts),
        }
        try:
            if one.subject.number:
                return {**head, "killed_by": self._kills(one)}
            return {**head, "result": msgspec.to_builtins(self._measured(one), order="deterministic")}
        except SandboxUnavailableError as error:
            return {**head, "result": None, "killed_by": None, "outage": f"{type(error).__name__}: {error}"}

    def _measured(self, one: WrittenSuite) -> FunctionResult:
        question = one.subject.question
        coverage = None
        if self.options.coverage:
            with contextlib.suppress(ValueError):  # a reference that does not load covers nothing
                coverage = measure_coverage(
                    self.runner, question.reference, calls_in(question, one.asserts), prelude=question.prelude
                )
        mutants = self.mutants(question)
        return measure_function(
            question,
            one.asserts,
            judge_all=self.judges.judge_all,
            mutants=mutants,
            coverage=coverage,
            killable=self.killable(question, mutants),
        )

    def mutants(self, question: Question) -> list[Mutant]:
        """The question's mutants; none with ``max_mutants`` 0."""
        if self.options.max_mutants == 0:
            return []
        folder = self.options.mutants_folder or self.options.output / MUTANTS
        return mutants_of(question.reference, cache_dir=folder, max_mutants=self.options.max_mutants)

    def killable(self, question: Question, mutants: Sequence[Mutant]) -> tuple[bool, ...] | None:
        """[mutants] whether the question's own tests kill it; None where no own test is correct."""
        with self._locks[question.id]:
            if question.id not in self._killable:
                sources = [mutant.source for mutant in mutants]
                found = kill_mutants(question, sources, question.tests, self.judges.judge_all)
                flags = tuple(place not in set(found.survivors) for place in range(len(sources)))
                self._killable[question.id] = flags if found.num_right_tests else None
            return self._killable[question.id]

    def _kills(self, one: WrittenSuite) -> list[bool]:
        """[tests] correct as written, and failed by the buggy program."""
        question = one.subject.question
        right = judge_assertions(question, one.asserts, self.judges.judge_all)
        sources = [one.subject.program]
        (kills,) = judge_kills(question, one.asserts, self.judges.judge_all, right=right, sources=sources)
        return list(kills)


def summarise(
    rows: Iterable[Row], *, ks: Sequence[int]
) -> tuple[PartsByQuestion, dict[str, tuple[str, str]], dict[str, int]]:
    """Parts of every metric by question (sums over its responses), products, and counts."""
    of_question: dict[str, list[FunctionResult]] = defaultdict(list)
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
            of_question[row["question"]].append(msgspec.convert(row["result"], FunctionResult))
    parts: PartsByQuestion = defaultdict(dict)
    for question, results in of_question.items():
        is_known = all(result.killable is not None for result in results)
        for name, found in parts_of(results, ks=ks).items():
            if is_known or "killable" not in name:
                parts[name][question] = found
    for question, killed in bugs.items():
        parts["bugs_killed"][question] = (float(sum(killed)), float(len(killed)))
    known = {name: by_question for name, by_question in parts.items() if any(two for _, two in by_question.values())}
    products = {f"mul@{k}": (f"pass@{k}", f"mut@{k}") for k in ks if f"mut@{k}" in known}
    return known, products, {name: number for name, number in counts.items() if number}
