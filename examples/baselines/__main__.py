"""``python -m examples.baselines``: does a Test LLM beat a search? Tests of other tools, under the same judge."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from code_a1_recipe.algorithm.question import Question, definitions
from code_a1_recipe.applications.bug_finder.run import LIMITS
from code_a1_recipe.cli import status
from code_a1_recipe.cli.declared import with_options
from code_a1_recipe.data.reader import read_questions
from code_a1_recipe.errors import InputError
from code_a1_recipe.files import file_fingerprint, write_whole
from code_a1_recipe.jobs import options as shared
from code_a1_recipe.jobs.confinement import Confinement
from code_a1_recipe.jobs.jsonl_store import JsonlStore
from code_a1_recipe.jobs.outputs import Report
from code_a1_recipe.jobs.progress import watched
from code_a1_recipe.stats.estimates import bootstrap
from examples.arguments import run_study, study_app
from sandbox import LocalRunner

from . import questions as subsets
from .annotate import annotated
from .confine import interpreter
from .detect import detect, first_suites, read_written
from .observe import calls_of, observed_asserts
from .table import load, make_record, save, table_of_records
from .testers import TESTERS, check_installed, find_calls

app = study_app()
CALLS_PER_ASSERT = 4
"""Calls a tester is asked for, for each assert wanted: some give no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Of ``write``."""

    file: Annotated[Path, typer.Argument(help="questions; tests are written for their references")]
    tester: Annotated[str, typer.Option(callback=shared.one_of(tuple(TESTERS)), help=", ".join(TESTERS))]
    output: shared.ResumedFile
    seconds: Annotated[float, typer.Option(min=1, help="CPU seconds a suite, start-up of the tool included")] = 5.0
    tests: Annotated[int, typer.Option(min=1, help="asserts a suite")] = 5
    suites: Annotated[int, typer.Option(min=1, help="suites a question, each with a seed and a budget of its own")] = 1
    types: Annotated[
        str,
        typer.Option(
            callback=shared.one_of(("examples", "hints")),
            help="parameter types: of the program's hints alone, or also of the arguments in the questions' own tests",
        ),
    ] = "examples"
    keep_failing: Annotated[
        bool, typer.Option(help="for buggy programs: calls that raise or hang count, as `== None`")
    ] = False
    python: Annotated[
        Path | None, typer.Option(help="interpreter that has the tool", show_default="the one that runs this")
    ] = None
    adapter: shared.Adapter = "auto"
    limit: shared.Limit = None
    seed: shared.Seed = 0

    def described(self, version: str) -> dict[str, Any]:
        """What decides the rows."""
        names = ("tester", "seconds", "tests", "types", "suites", "keep_failing", "adapter", "seed")
        return {name: getattr(self, name) for name in names} | {"file": file_fingerprint(self.file), "version": version}


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectOptions:
    """Of ``detect``."""

    file: Annotated[Path, typer.Argument(help="questions with buggy programs")]
    output: Annotated[Path, typer.Option(help="JSON: rates with intervals, and a row for each question")]
    written: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="of `write`, or stored responses of code-a1 eval test", show_default="own tests"
        ),
    ] = None
    tests: Annotated[int, typer.Option(min=1, help="asserts of a suite that count")] = 5
    attack: Annotated[bool, typer.Option(help="also let the bug finder make small changes of the calls")] = True
    adapter: shared.Adapter = "auto"
    workers: shared.Workers = shared.NUM_CORES


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of a command line; see ``code_a1_recipe.cli.status``."""
    return run_study(app, arguments, name="examples.baselines")


@app.command()
@with_options
def write(options: WriteOptions) -> None:
    """Let a tester write suites for the references of a file.

    Expected values are what the program under test returned, as all of these tools take them. The output
    serves `code-a1 eval test --written`, `code-a1 attack --suites` (rows of one question) and `detect`.

    Examples:

    - `python -m examples.baselines write ULT_Lite.jsonl --tester random --output random.jsonl`
    - `python -m examples.baselines write mbpp.jsonl --tester pynguin --python PYNGUIN/bin/python --output p.jsonl`
    """
    status.resume(options.output, write_all, options)


def write_all(options: WriteOptions) -> Report:
    """Write what is not there yet; reports on all rows.

    Raises:
        InputError: the file or the tool cannot be used, or the tool cannot be confined.
        SandboxUnavailableError: the sandbox is down; what was written is kept.
    """
    questions = list(read_questions(options.file, adapter=options.adapter).questions)[: options.limit]
    python = interpreter(options.python)
    version = check_installed(options.tester, python)
    with JsonlStore(options.output, settings=options.described(version), key="question") as store:
        left = [one for one in questions if one.id not in store]
        with LocalRunner(num_workers=1) as runner:
            for question in watched(left, total=len(left), what=options.tester, unit="function"):
                store.append(written_row(question, options, python, runner))
        rows = list(store.rows())
    empty = sum(not any(row["responses"]) for row in rows)
    seconds = sum(row["cpu_seconds"] for row in rows) / max(1, len(rows) * options.suites)
    return Report(text=f"{options.output}: {len(rows)} functions, {empty} without a test, {seconds:.2f} CPU s a suite")


def written_row(question: Question, options: WriteOptions, python: Path, runner: LocalRunner) -> dict[str, Any]:
    """One line of the output."""
    name = function_under_test(question)
    row: dict[str, Any] = {"question": question.id, "tester": options.tester, "responses": [""] * options.suites}
    if name is None:
        return row | {"cpu_seconds": 0.0, "notes": ["no top-level function is under test"]}
    program = f"{question.prelude}\n{question.reference}" if question.prelude else question.reference
    if options.types == "examples":
        program = annotated(program, name, question.tests)
    responses, notes, seconds = [], [], 0.0
    for suite in range(options.suites):
        found = find_calls(
            options.tester, program, name, python=python, cpu_seconds=options.seconds,
            num_calls=CALLS_PER_ASSERT * options.tests, seed=options.seed + suite,
        )  # fmt: skip
        asserts = observed_asserts(
            question, question.reference, found.calls, num_asserts=options.tests, keep_failing=options.keep_failing,
            runner=runner,
        )  # fmt: skip
        responses.append("\n".join(asserts))
        notes.append(found.note)
        seconds += found.cpu_seconds
    return row | {"responses": responses, "cpu_seconds": round(seconds, 3), "notes": notes}


def function_under_test(question: Question) -> str | None:
    """The first top-level function among the entry points; None where there is none, as of a class."""
    functions = [name for name, node in definitions(question.reference).items() if "Function" in type(node).__name__]
    return next((name for name in question.entry_points or functions if name in functions), None)


@app.command(name="detect")
@with_options
def detect_bugs(options: DetectOptions) -> None:
    """Judge suites that were written for buggy programs: do their calls tell the program from its reference?

    Examples:

    - `python -m examples.baselines detect bugs.jsonl --written random.jsonl --output random.json`
    - `python -m examples.baselines detect bugs.jsonl --output own.json`
    """
    status.finish(detect_all(options))


def detect_all(options: DetectOptions) -> Report:
    """Judge all, write the output, and report the rates.

    Raises:
        InputError: a file cannot be used, or a question has no buggy program.
        SandboxUnavailableError: something could not be judged.
    """
    questions = list(read_questions(options.file, adapter=options.adapter).questions)
    if clean := [one.id for one in questions if not one.buggy_programs]:
        raise InputError(f"{options.file}: every question must have a buggy program, {clean[0]!r} has none")
    if options.written is None:
        suites = [list(one.tests[: options.tests]) for one in questions]
    else:
        suites = first_suites(questions, read_written(options.written), options.tests)
    confinement = Confinement(limits=LIMITS)
    with confinement.judges(options.workers) as judges, LocalRunner(num_workers=1, limits=LIMITS) as runner:
        pairs = list(zip(questions, suites, strict=True))
        found = [
            detect(question, suite, judges.judge_all, runner if options.attack else None)
            for question, suite in watched(pairs, total=len(pairs), what="detect", unit="program")
        ]
    rates = {
        name: bootstrap([float(getattr(one, name)) for one in found]).text()
        for name in ("by_calls", "as_written", *(["by_attack"] if options.attack else []))
    }
    rows = [asdict(one) for one in found]
    write_whole(options.output, json.dumps({"rates": rates, "tests": options.tests, "rows": rows}, indent=1) + "\n")
    return Report(text=f"{options.output}: {len(found)} programs; {', '.join(f'{k} {v}' for k, v in rates.items())}")


@app.command()
def questions(
    output: Annotated[Path, typer.Option(help="folder")],
    functions: Annotated[Path, typer.Option(help="functions with references, such as ULT_Lite.jsonl")],
    mutated: Annotated[Path, typer.Option(help="questions whose references are mutated, such as mbpp.jsonl")],
    num_functions: Annotated[int, typer.Option(min=1)] = 20,
    num_mutated: Annotated[int, typer.Option(min=1)] = 20,
    seed: Annotated[int, typer.Option(help="of both choices")] = 0,
) -> None:
    """Choose the study's subsets and write them: functions, bugs and mutants; `seen_` files are what testers see."""
    bugs = subsets.shipped_bugs()
    with Confinement().judges(None) as judges:
        pool = read_questions(mutated).questions
        mutants = subsets.with_one_mutant(pool, num_mutated, seed, judges.judge_all)
    picked = subsets.chosen(read_questions(functions).questions, num_functions, seed)
    files = {"functions": picked, "bugs": bugs, "mutants": mutants}
    files |= {f"seen_{name}": subsets.as_seen(files[name]) for name in ("bugs", "mutants")}
    for name, rows in files.items():
        subsets.write_questions(output / f"{name}.jsonl", rows)
    numbers = ", ".join(f"{len(rows)} {name}" for name, rows in files.items())
    status.finish(Report(text=f"{output}: {numbers}"))


def _finish_rows(output: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows of a question and its responses, and say how many."""
    write_whole(output, "".join(json.dumps(row) + "\n" for row in rows))
    status.finish(Report(text=f"{output}: {len(rows)} questions"))


@app.command()
def collect(
    responses: Annotated[Path, typer.Argument(help="responses.jsonl of code-a1 eval test")],
    output: Annotated[Path, typer.Option(help="rows of a question and its responses, for --written")],
) -> None:
    """Turn stored responses of a Test LLM into a file as `write` makes it."""
    rows = [{"question": name, "responses": texts} for name, texts in read_written(responses).items()]
    _finish_rows(output, rows)


@app.command()
def observe(
    file: Annotated[Path, typer.Argument(help="questions")],
    output: Annotated[Path, typer.Option(help="as `write` makes it")],
    written: Annotated[
        Path | None, typer.Option(metavar="FILE", help="suites, also stored responses", show_default="own tests")
    ] = None,
    tests: Annotated[int, typer.Option(min=1, help="asserts of a suite that count")] = 5,
) -> None:
    """Put what the reference returns in the place of what suites expect: how good are a tester's calls alone?"""
    asked = read_questions(file).questions
    suites = [one.tests[:tests] for one in asked]
    if written is not None:
        suites = [tuple(suite) for suite in first_suites(asked, read_written(written), tests)]
    rows = []
    with LocalRunner(num_workers=1) as runner:
        for question, suite in zip(asked, suites, strict=True):
            calls = calls_of(question, suite)
            asserts = observed_asserts(
                question, question.reference, calls, num_asserts=tests, keep_failing=False, runner=runner
            )
            rows.append({"question": question.id, "responses": ["\n".join(asserts)]})
    _finish_rows(output, rows)


@app.command()
def record(
    tester: Annotated[str, typer.Argument(help="its name in the table")],
    output: Annotated[Path, typer.Option(help="a small JSON file")],
    evaluated: Annotated[Path | None, typer.Option(metavar="FOLDER", help="--output of code-a1 eval test")] = None,
    detected: Annotated[list[Path] | None, typer.Option(help="of `detect`, named after its subset; repeatable")] = None,
    written: Annotated[list[Path] | None, typer.Option(help="of `write`, for its seconds; repeatable")] = None,
    cpu_seconds: Annotated[float | None, typer.Option(help="of a suite, where no file has them")] = None,
) -> None:
    """Keep what a tester reached."""
    found = make_record(
        tester, evaluated=evaluated, detected=detected or [], written=written or [], cpu_seconds=cpu_seconds
    )
    save(found, output)
    status.finish(Report(text=f"{output}: {tester}"))


@app.command()
def table(records: Annotated[list[Path], typer.Argument(help="files of `record`, in the order of the rows")]) -> None:
    """Print the table of several testers, in percent with 95 % intervals."""
    status.finish(Report(text=table_of_records([load(path) for path in records]).markdown()))


if __name__ == "__main__":
    sys.exit(main())
