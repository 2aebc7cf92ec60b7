"""``code-a1 data inspect``: shows questions of a run or of a data set in a terminal."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ...data.reader import QuestionFile, read_questions
from ...errors import InputError
from ...jobs import options as shared
from ...jobs.terminal import indented, paint, printable
from ...runs.reader import RunRecords
from ...runs.rollout_record import RolloutRecord
from ...stats.tables import table_with_head
from .question_view import (
    OUTCOMES,
    book_lines,
    outcome_of,
    program_lines,
    question_lines,
    questions_by_id,
)

_MAX_LISTED = 10
"""Largest number of ids or steps that a message lists."""


@dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """The options of ``data inspect``."""

    source: Annotated[
        Path,
        Argument(metavar="RUN_OR_FILE", help="folder of a run; or a parquet, JSONL or JSON file"),
    ]
    question: Annotated[
        str,
        Option(metavar="ID", help="the question to show: its id, or the beginning of its id"),
    ] = ""
    step: Annotated[
        int | None,
        Option(help="step of the run", show_default="the newest, or the question's last"),
    ] = None
    validation: Annotated[bool, Option(help="show held-out questions of the run")] = False
    outcome: Annotated[
        str,
        Option(
            callback=shared.listed_in(("", *OUTCOMES)),
            help="show only programs with this outcome, of one step of the run; "
            + "; ".join(f"{name}: {meaning}" for name, meaning in OUTCOMES.items()),
        ),
    ] = ""
    limit: Annotated[
        int,
        Option(min=1, help="most rows of a list, tests of a question, or programs of a step"),
    ] = 30
    adapter: shared.Adapter = "auto"
    columns: shared.Columns = field(default_factory=dict)


def inspect(options: InspectOptions) -> str:
    """Make the text that the command prints.

    Raises:
        InputError: the source cannot be read, or it does not hold what the options ask for.
    """
    return "\n".join(_of_run(options) if options.source.is_dir() else _of_file(options))


# ------------------------------ a run ------------------------------


def _of_run(options: InspectOptions) -> list[str]:
    run = RunRecords.open(options.source)
    steps = run.validation_steps if options.validation else run.training_steps
    if not steps:
        hint = "" if options.validation else "; try --validation"
        raise InputError(f"{options.source} has no rollouts{hint}")
    if options.step is not None and options.step not in steps:
        raise InputError(f"--step {options.step}: {options.source} has rollouts of steps {steps[0]} to {steps[-1]}")
    if options.question and not options.outcome:
        return _question_of_run(run, steps, options)
    step = steps[-1] if options.step is None else options.step
    return _programs_of_run(run, step, options)


def _records(run: RunRecords, steps: Sequence[int], options: InspectOptions) -> Iterator[RolloutRecord]:
    for step in steps:
        records = run.validation(step) if options.validation else run.training(step)
        for record in records:
            if record.question.startswith(options.question):
                yield record


def _programs_of_run(run: RunRecords, step: int, options: InspectOptions) -> list[str]:
    records = list(_records(run, [step], options))
    matching = records
    if options.outcome:
        matching = [record for record in records if outcome_of(record) == options.outcome]
    shown = matching[: options.limit]
    questions = questions_by_id(run)
    lines = []
    for record in shown:
        question = questions.get(record.question)
        prompt = question.prompt if question else "(its file does not exist any more)"
        heading = paint("heading", f"question {printable(record.question)}")
        lines += [heading, *indented(prompt, 2), *program_lines(record), ""]
    lines.append(f"{len(shown)} of {len(matching)} that match, of {len(records)} at step {step}")
    return lines


def _question_of_run(run: RunRecords, steps: Sequence[int], options: InspectOptions) -> list[str]:
    records = list(_records(run, steps, options))
    met = {record.question for record in records}
    question_id = _only_id(options.question, met, where="its rollouts")
    records = [record for record in records if record.question == question_id]
    step = records[-1].step if options.step is None else options.step
    shown = [record for record in records if record.step == step]
    if not shown:
        steps_met = sorted({record.step for record in records})
        raise InputError(f"--step {step}: question {question_id} was met in {_listed(steps_met)}")
    question = questions_by_id(run).get(question_id)
    if question:
        lines = question_lines(question, most=options.limit)
    else:
        lines = [f"question {printable(question_id)}: its file does not exist any more"]
    lines += book_lines(run.mistake_book().entries(question_id))
    for record in shown:
        lines += ["", *program_lines(record)]
    return lines


# ------------------------------ a file ------------------------------


def _of_file(options: InspectOptions) -> list[str]:
    for name in ("step", "validation", "outcome"):
        if getattr(options, name) != getattr(InspectOptions, name):
            raise InputError(f"--{name} belongs to a run, but {options.source} is no folder of a run; leave it out")
    if not options.source.exists():
        raise InputError(f"{options.source}: no such file or folder (relative paths start at {Path.cwd()})")
    loaded = read_questions(options.source, adapter=options.adapter, columns=options.columns)
    if not options.question:
        return _file_summary(loaded, options)
    matching = {}
    for question in loaded.questions:
        if question.id.startswith(options.question):
            matching[question.id] = question
    question_id = _only_id(options.question, matching.keys(), where=options.source)
    return question_lines(matching[question_id], most=options.limit)


def _file_summary(loaded: QuestionFile, options: InspectOptions) -> list[str]:
    questions = loaded.questions
    num_tests = [len(question.tests) for question in questions]
    rows = [["question", "tests", "golden", "buggy programs", "lines of the reference"]]
    shown = questions[: options.limit]
    for question in shown:
        sizes = [
            len(question.tests),
            len(question.golden_tests),
            len(question.buggy_programs),
            len(question.reference.splitlines()),
        ]
        rows.append([printable(question.id), *map(str, sizes)])
    return [
        f"{options.source}: {len(questions)} questions, read as {loaded.adapter!r}",
        f"  tests: {min(num_tests)} to {max(num_tests)}; {num_tests.count(0)} questions without tests; "
        f"{loaded.num_dropped_tests} tests could not be written as an assert",
        "",
        table_with_head(rows).markdown(),
        f"{len(shown)} of {len(questions)} shown; --limit N shows more, --question ID shows one",
    ]


def _only_id(wanted: str, candidates: Set[str], where: object) -> str:
    """Choose one of the ids that begin with ``wanted``: the id ``wanted`` itself, or else the only such id."""
    if wanted in candidates:
        return wanted
    if len(candidates) != 1:
        known = _listed(sorted(candidates)) or "leave --question out to list all questions"
        raise InputError(f"--question {wanted}: {len(candidates)} questions of {where} have ids that begin so: {known}")
    return min(candidates)


def _listed(items: Sequence[object]) -> str:
    shown = ", ".join(map(str, items[:_MAX_LISTED]))
    num_hidden = len(items) - _MAX_LISTED
    return f"{shown} and {num_hidden} more" if num_hidden > 0 else shown
