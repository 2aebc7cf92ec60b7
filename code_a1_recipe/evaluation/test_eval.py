"""``code-a1 eval test``: a Test LLM on functions with references, by UnLeakedTestBench's metrics."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from reward_fns import Refusal, extract_suite
from sandbox import LocalRunner, SandboxUnavailableError
from sandbox.judge_processes import JudgeProcesses

from ..argument_types import positive
from ..episode import sampling_seed
from ..prompts import PROMPT_PAIRS, find_prompt_pair, render
from ..questions import Question, QuestionError, read_questions
from ..score_file import ScoreFile
from .code_eval import VERDICTS, EvalInputError, add_common_arguments, read_with
from .coverage import calls_in, measure_coverage
from .exit_status import DONE, OUTAGES_LEFT, status_of
from .models import add_model_arguments, choose_model, has_model, sample_all, sampling_of
from .mutants import Mutant, mutants_of
from .mutation_kill import kill_mutants
from .quixbugs import QuixBugsError, read_quixbugs
from .response_store import RESPONSES, ResponseStore
from .results import Pair, Results, results_table
from .run_defaults import fill_defaults
from .test_metrics import FunctionResult, judge_claims, judge_kills, measure_function, parts_of

MUTANTS = "mutants"
OWN_TESTS = "own tests"
Row = dict[str, Any]
_EPILOG = """\
metrics: mut@k counts functions whose first k tests are all right, mut_all@k all functions (0 where one is wrong),
mut_right_only@k what the right ones of the first k kill; *_killable counts only mutants that the question's own tests
kill, since the others may be equivalent to the original. bugs_killed: wrong programs broken by a right test.

examples:
  code-a1 eval test ULT_Lite.jsonl --model outputs/my-run --tests 5 --output out/trained
  code-a1 eval test QuixBugs/ --model Qwen/Qwen2.5-Coder-1.5B-Instruct --wrong-programs --output out/quixbugs
  code-a1 eval test ULT_Lite.jsonl --own-tests --output out/baseline
  code-a1 eval compare out/baseline out/trained
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One program that tests are written for: a question's reference, or a wrong program of it."""

    question: Question
    program: str
    number: int
    """0 for the reference, from 1 for the wrong programs."""

    @property
    def name(self) -> str:
        return self.question.id if not self.number else f"{self.question.id} wrong {self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One response about one subject."""

    subject: Subject
    sample: int
    asserts: tuple[str, ...]
    refusal: str

    @property
    def key(self) -> str:
        digest = hashlib.sha256("\0".join(self.asserts).encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return f"{self.subject.name} {self.sample} {digest}"


def load_subjects(options: argparse.Namespace) -> tuple[list[Subject], dict[str, int]]:
    """What tests are written for, and counts of what could not be taken.

    Raises:
        QuestionError: a file or folder cannot be used, or an id comes twice.
    """
    questions: list[Question] = []
    counts: Counter[str] = Counter()
    for path in options.files:
        if path.is_dir():
            folder = read_quixbugs(path)
            questions += folder.questions
            counts.update({f"programs left out, {reason}": n for reason, n in folder.num_skipped.items()})
        else:
            questions += read_questions(path, adapter=options.adapter, columns=dict(options.columns) or None).questions
    repeated = [name for name, number in Counter(question.id for question in questions).items() if number > 1]
    if repeated:
        raise QuestionError(f"id {repeated[0]!r} stands for several functions; ids must be unique over all files")
    chosen = questions[: options.limit]
    subjects = [Subject(question=question, program=question.reference, number=0) for question in chosen]
    for question in chosen if options.wrong_programs else ():
        subjects += [
            Subject(question=question, program=program, number=number)
            for number, program in enumerate(question.wrong_programs, 1)
        ]
    return subjects, dict(counts)


def written_for(
    subjects: Sequence[Subject], options: argparse.Namespace, store: ResponseStore
) -> tuple[list[Written], str, str]:
    """Responses as suites, sampled where they are not stored; the model's label and fingerprint.

    With ``--own-tests`` the questions' own tests in their place, one suite each.
    """
    if options.own_tests:
        suites = [(one, one.question.tests[: options.tests]) for one in subjects]
        own = [Written(subject=one, sample=0, asserts=asserts, refusal="") for one, asserts in suites]
        return own, "the questions' own tests", OWN_TESTS
    model = choose_model(options, policy="test", work_folder=options.output, stored_only=options.judge_only)
    template = find_prompt_pair(options.prompt).test if options.prompt in PROMPT_PAIRS else options.prompt
    prompts = [
        render(template, prompt=one.question.prompt, candidate=one.program, num_cases=options.tests) for one in subjects
    ]
    seeds = [[sampling_seed(options.seed, "test", one.name, n) for n in range(options.suites)] for one in subjects]
    texts = sample_all(
        model,
        prompts,
        seeds=seeds,
        parameters=sampling_of(options),
        store=store,
        sessions=[one.name for one in subjects],
        stored_only=options.judge_only,
    )
    written = []
    for subject, row in zip(subjects, texts, strict=True):
        for sample, text in enumerate(row):
            suite = extract_suite(text, max_asserts=options.tests) if text is not None else Refusal(reason="too_long")
            asserts = suite if not isinstance(suite, Refusal) else ()
            refusal = suite.reason if isinstance(suite, Refusal) else ""
            written.append(Written(subject=subject, sample=sample, asserts=asserts, refusal=refusal))
    return written, model.label, model.fingerprint


@dataclass(frozen=True, kw_only=True)
class Measurer:
    """From a response to a row of results; called from several threads."""

    judges: JudgeProcesses
    runner: LocalRunner
    mutants_folder: Path
    max_mutants: int
    with_coverage: bool
    _locks: dict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    _killable: dict[str, tuple[bool, ...] | None] = field(default_factory=dict)

    def row(self, one: Written) -> Row:
        """The row of one response. An outage leaves ``result`` null and says why in ``outage``."""
        head: Row = {"key": one.key, "question": one.subject.question.id, "sample": one.sample, "outage": ""}
        head |= {"refusal": one.refusal, "wrong_program": one.subject.number, "num_tests": len(one.asserts)}
        try:
            if one.subject.number:
                return {**head, "killed_by": self._kills(one)}
            return {**head, "result": _plain(self._measured(one))}
        except SandboxUnavailableError as error:
            return {**head, "result": None, "killed_by": None, "outage": f"{type(error).__name__}: {error}"}

    def _measured(self, one: Written) -> FunctionResult:
        question = one.subject.question
        coverage = None
        if self.with_coverage:
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
        if self.max_mutants == 0:
            return []
        return mutants_of(question.reference, cache_dir=self.mutants_folder, max_mutants=self.max_mutants)

    def killable(self, question: Question, mutants: Sequence[Mutant]) -> tuple[bool, ...] | None:
        """[mutants] whether the question's own tests kill it; None where no own test is right."""
        with self._locks[question.id]:
            if question.id not in self._killable:
                sources = [mutant.source for mutant in mutants]
                found = kill_mutants(question, sources, question.tests, self.judges.judge_all)
                flags = tuple(place not in set(found.survivors) for place in range(len(sources)))
                self._killable[question.id] = flags if found.num_right_tests else None
            return self._killable[question.id]

    def _kills(self, one: Written) -> list[bool]:
        """[tests] right as written, and failed by the wrong program."""
        question = one.subject.question
        right = judge_claims(question, one.asserts, self.judges.judge_all)
        sources = [one.subject.program]
        (kills,) = judge_kills(question, one.asserts, self.judges.judge_all, right=right, sources=sources)
        return list(kills)


def _plain(result: FunctionResult) -> Row:
    found = asdict(result)
    found["lines"] = [sorted(one) for one in result.lines]
    found["branches"] = [sorted(one) for one in result.branches]
    return found


def _function_result(plain: Row) -> FunctionResult:
    values = {
        **plain,
        "right": tuple(plain["right"]),
        "kills": tuple(map(tuple, plain["kills"])),
        "killable": None if plain["killable"] is None else tuple(plain["killable"]),
        "lines": tuple(map(frozenset, plain["lines"])),
        "branches": tuple(frozenset(tuple(arc) for arc in one) for one in plain["branches"]),
    }
    return FunctionResult(**values)


def measure(written: Sequence[Written], output: ScoreFile, row: Callable[[Written], Row], *, num_threads: int) -> None:
    """Measure what is not there yet; rows are appended as they get ready."""
    left = [one for one in written if one.key not in output]
    if not left:
        return
    threads = ThreadPoolExecutor(num_threads, thread_name_prefix="measure")
    try:
        done = len(written) - len(left)
        with tqdm(total=len(written), initial=done, unit="suite", desc="judge", disable=None) as bar:
            for future in as_completed([threads.submit(row, one) for one in left]):
                output.append(future.result())
                bar.update()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def summarise(rows: Iterator[Row], *, ks: Sequence[int], source_of: dict[str, str]) -> tuple[Any, Any, dict[str, int]]:
    """Parts of every metric by question (sums over its responses), products, and counts."""
    of_question: dict[str, list[FunctionResult]] = defaultdict(list)
    bugs: dict[str, list[Pair]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for row in rows:
        counts["suites lost to an outage"] += bool(row["outage"])
        counts["responses without a suite"] += bool(row["refusal"])
        if row["outage"]:
            continue
        if row["wrong_program"]:
            bugs[row["question"]].append((float(any(row["killed_by"])), 1.0))
        else:
            of_question[row["question"]].append(_function_result(row["result"]))
    parts: dict[str, dict[str, Pair]] = defaultdict(dict)
    for question, results in of_question.items():
        is_known = all(result.killable is not None for result in results)
        for name, found in parts_of(results, ks=ks).items():
            if "killable" in name and not is_known:
                continue
            parts[name][question] = (sum(found.numerators), sum(found.denominators))
    for question, pairs in bugs.items():
        parts["bugs_killed"][question] = (sum(one for one, _ in pairs), sum(two for _, two in pairs))
    known = {name: by_question for name, by_question in parts.items() if any(two for _, two in by_question.values())}
    products = {f"mul@{k}": (f"pass@{k}", f"mut@{k}") for k in ks if f"mut@{k}" in known}
    return known, products, {name: number for name, number in counts.items() if number}


def run(options: argparse.Namespace) -> int:
    """Sample, judge, summarise; returns the exit status."""
    fill_defaults(options, policies={"": "test"})
    if options.max_mutants < 0:
        raise EvalInputError(f"--max-mutants must be at least 0, got {options.max_mutants}")
    if too_many := [k for k in options.k if k > options.tests]:
        raise EvalInputError(f"--k {too_many[0]} needs at least as many --tests, got {options.tests}")
    if options.own_tests and has_model(options):
        raise EvalInputError("--own-tests measures the questions' own tests; leave the model out")
    judged_with = {**read_with(options), "max_mutants": options.max_mutants, "coverage": options.coverage}
    subjects, counts = load_subjects(options)
    options.output.mkdir(parents=True, exist_ok=True)
    with ResponseStore(options.output / RESPONSES) as store:
        written, label, weights = written_for(subjects, options, store)
    if options.sample_only:
        sys.stdout.write(f"{len(written)} responses in {options.output / RESPONSES}; judge them with --judge-only\n")
        return DONE
    ks = sorted(options.k) or [k for k in (1, 2, 5) if k <= options.tests]
    source_of = {one.question.id: one.question.data_source or "questions" for one in subjects}
    with (
        ScoreFile(options.output / VERDICTS, settings=judged_with, key="key") as output,
        JudgeProcesses(options.workers) as judges,
        LocalRunner(num_workers=options.workers) as runner,
    ):
        measurer = Measurer(
            judges=judges,
            runner=runner,
            mutants_folder=options.mutants_folder or options.output / MUTANTS,
            max_mutants=options.max_mutants,
            with_coverage=options.coverage,
        )
        measure(written, output, measurer.row, num_threads=2 * options.workers)
        rows = (output.row(one.key) for one in written)
        parts, products, found = summarise(rows, ks=ks, source_of=source_of)
    settings = {
        "model": weights,
        "sampling": asdict(sampling_of(options)),
        "prompt": options.prompt,
        "tests": options.tests,
        "suites": options.suites,
        "seed": options.seed,
        **judged_with,
    }
    results = Results(
        kind="test",
        label=label,
        settings=settings,
        source_of=source_of,
        parts=parts,
        products=products,
        counts={**counts, **found},
    )
    results.save(options.output)
    table = results_table(results)
    table.write(options.output, "table")
    sys.stdout.write(table.markdown())
    return OUTAGES_LEFT if "suites lost to an outage" in found else DONE


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 done, 1 outages are left or the sandbox or model is down, 2 refused, 130 interrupted."""
    options = parser().parse_args(arguments)
    return status_of(lambda: run(options), output=options.output, refusals=(QuixBugsError, EvalInputError))


def parser() -> argparse.ArgumentParser:
    """The command line of ``code-a1 eval test``."""
    found = argparse.ArgumentParser(
        prog="code-a1 eval test",
        description="Lets a Test LLM write tests for each function and measures them: right claims (pass@k), line and\n"
        "branch coverage, killed mutants (mut@k) and Mul = pass@k * mut@k, by UnLeakedTestBench's definitions.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common_arguments(found)
    found.add_argument("--tests", type=positive, default=5, metavar="K", help="asserts a suite (default 5)")
    found.add_argument(
        "--suites", type=positive, default=1, help="responses a function (default 1); figures are their mean"
    )
    found.add_argument("--k", nargs="+", type=positive, default=[], help="first tests of a suite (default 1 2 5)")
    found.add_argument(
        "--own-tests", action="store_true", help="no model: measure the questions' own tests, as a baseline"
    )
    found.add_argument(
        "--prompt", help=f"{', '.join(PROMPT_PAIRS)} (default chat_v1, of a run its own), or a .txt template"
    )
    found.add_argument("--max-mutants", type=int, default=50, help="a function (default 50; 0: no mutants)")
    found.add_argument("--mutants-folder", type=Path, help="where mutants are kept (default: in --output)")
    found.add_argument("--coverage", action=argparse.BooleanOptionalAction, default=True, help="default: yes")
    found.add_argument(
        "--wrong-programs", action="store_true", help="also tests for each question's wrong programs: bugs_killed"
    )
    add_model_arguments(found, role="the Test LLM")
    return found
