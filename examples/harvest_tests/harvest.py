"""Tests that a run's Test LLM wrote, as fixed tests of their questions: the `static` arm.

As few of a question's tests stay as kill the same programs, or all of them, the best first.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.algorithm.settings import SandboxSettings
from code_a1_recipe.curation.dataset_card import card_path, dataset_card
from code_a1_recipe.errors import InputError
from code_a1_recipe.files import file_fingerprint, fingerprint, write_whole
from code_a1_recipe.jobs import options as shared
from code_a1_recipe.jobs.confinement import Confinement, judge_confined
from code_a1_recipe.jobs.jsonl_store import JsonlStore, files_of
from code_a1_recipe.jobs.outputs import Report, check_outputs, note_work
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.runs.rollout_record import RolloutRecord
from code_a1_recipe.test_quality.mutants import require_mutants
from sandbox import CaseOutcome, syntax_key

from .minimal_tests import Found, Harvested, minimal_row, summary

MAX_TESTS = 32
"""Per question, those that broke most programs first, where nothing is minimised."""
_SETTINGS = ("min_tests", "max_mutants", "seed")
"""What decides on the tests that stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestOptions:
    """The options of ``python -m examples.harvest_tests``."""

    run: Annotated[Path, typer.Argument(help="folder of a finished run")]
    output: Annotated[Path, typer.Option(help="JSON lines, for data.train_files with arm=static")]
    overwrite: shared.Overwrite = False
    minimise: Annotated[
        bool,
        typer.Option(help=f"drop tests that kill nothing new; otherwise the best {MAX_TESTS} stay, not judged again"),
    ] = True
    min_tests: Annotated[int, typer.Option(min=1, help="tests of a question that stay at least")] = 1
    max_mutants: Annotated[int, typer.Option(min=1, help="mutants of a reference at most")] = 200
    seed: shared.ChoiceSeed = 0
    workers: shared.Workers = shared.NUM_CORES
    tier: shared.RunTier = None
    allow_missing: shared.AllowMissing = ()

    @property
    def work_output(self) -> Path:
        """What is done, for a repeated command."""
        return self.output.with_name(f"{self.output.name}.kills.jsonl")


def collect(run: RunRecords) -> list[Harvested]:
    """The questions of a run that have a valid case, in the order of their files.

    The suites of the second half of its steps are taken: by then the Test LLM is trained. A question that has no valid
    case there has those of the earlier steps.

    Raises:
        InputError: the run has no suites, or its questions are not there any more.
    """
    steps = run.training_steps
    first = len(steps) // 2
    late, early = _found(run, steps[first:]), _found(run, steps[:first])
    for question_id, before in early.items():
        since = late.setdefault(question_id, before)
        if not since.broken:  # no valid case since
            since.broken, since.keys = before.broken, before.keys
        since.buggy_programs = before.buggy_programs | since.buggy_programs
    if not any(one.broken for one in late.values()):
        raise InputError(f"{run.folder}: no valid case in its rollouts; harvest a run in which a Test LLM took part")
    return [
        (question, late[question.id])
        for question in run.questions("train_files")
        if question.id in late and late[question.id].broken
    ]


def _found(run: RunRecords, steps: Sequence[int]) -> dict[str, Found]:
    found: dict[str, Found] = {}
    for step in steps:
        for record in run.training(step):
            one = found.setdefault(record.question, Found())
            for case in (case for suite in record.suites if suite.verdict for case in suite.verdict.cases):
                text = f"assert {case.call} == {case.reference_value}"
                one.broken[text] += case.outcome not in (CaseOutcome.PASSED, CaseOutcome.NOT_LOADED)
                one.keys.setdefault(text, case.key or case.call)
            if record.source is not None and is_wrong(record):
                one.buggy_programs.setdefault(syntax_key(record.source), record.source)
    return found


def is_wrong(record: RolloutRecord) -> bool:
    """The recorded program loads, and a valid case broke it: new, given, pooled, replayed or hidden."""
    if record.outage or record.source is None or not record.is_loaded:
        return False
    return record.is_broken() or (record.hidden_tests is not None and record.hidden_tests.num_failed > 0)


def harvest_tests(options: HarvestOptions) -> Report:
    """Write the run's questions with the tests of its Test LLM; a repeated call resumes.

    Raises:
        InputError, SandboxConfigError: something cannot be used; nothing was written.
        OutageError: the sandbox is down.
    """
    if options.output.is_dir():
        raise InputError(f"{options.output} is a folder; name the file to write")
    run = RunRecords.open(options.run)
    outputs, work_files = [options.output, card_path(options.output)], files_of(options.work_output)
    check_outputs(outputs, inputs=run.files(), overwrite=options.overwrite, work_files=work_files)
    found = collect(run)
    if options.minimise:
        return _minimised(options, run, found)
    number = _write(options, run, [(question, one.tests[:MAX_TESTS]) for question, one in found])
    return Report(text=f"{options.output}: {number} questions", note=_unfinished(run))


def _write(
    options: HarvestOptions, run: RunRecords, kept: Sequence[tuple[Question, Sequence[str]]], effect: str = ""
) -> int:
    """Write the questions, with ``golden_tests``, and their card; returns how many. ``effect``: of minimising."""
    rows = [asdict(replace(question, golden_tests=tuple(tests))) for question, tests in kept]
    write_whole(options.output, "".join(json.dumps(row) + "\n" for row in rows))
    card = dataset_card(
        options.output,
        Path(__file__).with_name("harvest_card.md.jinja"),
        num_rows=len(rows),
        sources=[(file, file_fingerprint(file)) for file in run.question_files("train_files")],
        run=run,
        num_tests=sum(len(tests) for _, tests in kept),
        effect=effect,
        settings=[(f"`--{name.replace('_', '-')}`", getattr(options, name)) for name in ("minimise", *_SETTINGS)],
        command=run.paths.commands(),
    )
    write_whole(card_path(options.output), card)
    return len(rows)


def _minimised(options: HarvestOptions, run: RunRecords, found: Sequence[Harvested]) -> Report:
    started = time.monotonic()
    sandbox = SandboxSettings.read(run.config.get("sandbox") or {}, where=f"the run in {run.folder}: sandbox")
    confinement = Confinement.of_run(sandbox, tier=options.tier, allow_missing=options.allow_missing)
    settings = {name: getattr(options, name) for name in _SETTINGS}
    require_mutants()
    decisive = {**settings, **confinement.described(), "run": _fingerprint(found)}
    with JsonlStore(options.work_output, settings=decisive, key="question") as store:
        judge_confined(
            store,
            found,
            lambda one, judge_all: minimal_row(one, judge_all, **settings),
            key=lambda one: one[0].id,
            confinement=confinement,
            num_workers=options.workers,
            what="harvest",
        )
        rows = [store.row(question.id) for question, _ in found]
        kept = [(question, row["kept"]) for (question, _), row in zip(found, rows, strict=True) if row["kept"]]
        number = _write(options, run, kept, summary(rows))
        num_outages = sum(bool(row["outage"]) for row in rows)
        if not num_outages:
            store.delete()
        note_work([options.output, card_path(options.output)], is_finished=not num_outages)
    text = f"{options.output}: {number} questions in {time.monotonic() - started:.0f} s\n{summary(rows)}"
    failure = (
        f"{num_outages} questions met an outage of the sandbox and kept all their tests; repeat the command to judge "
        "them again"
    )
    return Report(text=text, note=_unfinished(run), failure=failure if num_outages else "")


def _unfinished(run: RunRecords) -> str:
    step, total = (run.steps or [0])[-1], run.config["trainer"].get("total_training_steps")
    return f"note: {run.folder} is at step {step} of {total}; these are the tests so far" if step < (total or 0) else ""


def _fingerprint(found: Sequence[Harvested]) -> str:
    rows = []
    for question, one in found:
        num_broken = [one.broken[text] for text in one.tests]
        rows.append([question.id, question.reference, one.tests, num_broken, [*one.buggy_programs.values()]])
    return fingerprint(json.dumps(rows))
