"""The commands ``experiment``, ``harvest`` and ``rollouts`` of ``code-a1``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from sandbox import SandboxConfigError
from sandbox.confine import OPTIONAL_FEATURES
from sandbox.tiers import LOCAL_TIERS

from ..argument_types import positive
from ..questions import QuestionError
from ..score_file import ScoreFile
from ..settings import SettingsError
from . import report
from .episodes import OUTCOMES, matching, view_of
from .experiment import Experiment, ExperimentError
from .experiment_runs import run_experiment
from .harvest import (
    MOST_TESTS,
    Harvested,
    MinimiseSettings,
    check_target,
    collect,
    digest_of,
    harvest,
    harvest_text,
    minimal_row,
    require_mutants,
    write_questions,
)
from .judged_rows import (
    BROKE_OFF,
    DONE,
    INTERRUPTED,
    REFUSED,
    Confinement,
    exit_status,
    judge_rows,
    remove_work_file,
)
from .own_files import check_outputs, forget_unfinished, note_unfinished
from .records import RecordsError, RunRecords


def experiment(arguments: Sequence[str]) -> int:
    """Exit status: 0 all runs finished, 1 a run broke off, 2 refused, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="code-a1 experiment",
        description="Runs a grid of arms and seeds; repeat the command to go on after any stop.",
    )
    parser.add_argument("file", type=Path, help="YAML: preset, folder, seeds, overrides, arms; see examples/")
    parser.add_argument("--arms", nargs="+", default=[], help="only these")
    parser.add_argument("--seeds", nargs="+", type=int, default=[], help="only these")
    parser.add_argument(
        "--parallel", type=positive, default=1, help="runs at once (default 1); each needs the memory of a whole run"
    )
    parsed = parser.parse_args(arguments)
    try:
        loaded = Experiment.load(parsed.file)
    except ExperimentError as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    # A scheduler's end, or a terminal's, is an end like Ctrl-C: the runs are ended with it. nohup stays nohup.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        run_experiment(loaded, arms=parsed.arms, seeds=parsed.seeds, parallel=parsed.parallel)
    except SettingsError as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    except (ExperimentError, RecordsError, QuestionError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return BROKE_OFF
    except KeyboardInterrupt:
        sys.stderr.write(f"\ninterrupted; repeat the command to go on. What is finished is in {loaded.folder}\n")
        return INTERRUPTED
    return report.main([str(loaded.folder)])


def harvest_tests(arguments: Sequence[str]) -> int:
    """Exit status: 0 written, 1 outages are left or it broke off, 2 refused before any work, 130 interrupted."""
    parsed = _harvest_parser().parse_args(arguments)
    try:
        check_target(parsed.output)
        run = RunRecords.open(parsed.run)
        work_path = parsed.output.with_name(f"{parsed.output.name}.kills.jsonl")
        work_paths = (work_path, work_path.with_name(f"{work_path.name}.settings.json"))
        check_outputs([parsed.output], inputs=run.files(), overwrite=parsed.overwrite, work_files=work_paths)
        found = collect(run)
        confinement = Confinement.of_run(run.config, tier=parsed.tier, allow_missing=parsed.allow_missing)
        if not parsed.minimise:
            number = harvest(parsed.run, parsed.output)
            sys.stdout.write(f"{parsed.output}: {number} questions\n")
            _note_unfinished(run)
            return DONE
        settings = MinimiseSettings(min_tests=parsed.min_tests, max_mutants=parsed.max_mutants, seed=parsed.seed)
        require_mutants()
        work_file = ScoreFile(
            work_path,
            settings={**asdict(settings), **confinement.described(), "run": digest_of(found)},
            key="question",
        )
    except (RecordsError, SandboxConfigError, OSError, ValueError, ModuleNotFoundError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    status = exit_status(
        lambda: _minimised(found, settings, confinement, work_file, parsed), output=work_file, num_items=len(found)
    )
    if status != INTERRUPTED:
        _note_unfinished(run)
    return status


def _minimised(
    found: Sequence[Harvested],
    settings: MinimiseSettings,
    confinement: Confinement,
    work_file: ScoreFile,
    parsed: argparse.Namespace,
) -> int:
    started = time.monotonic()
    judge_rows(
        found,
        lambda one, judge_all: minimal_row(one, settings, judge_all),
        work_file,
        key=lambda one: one.question.id,
        confinement=confinement,
        num_workers=parsed.workers,
        what="harvest",
    )
    rows = [work_file.row(one.question.id) for one in found]
    kept = [(one.question, row["kept"]) for one, row in zip(found, rows, strict=True)]
    number = write_questions(parsed.output, [(question, tests) for question, tests in kept if tests])
    seconds = time.monotonic() - started
    sys.stdout.write(f"{parsed.output}: {number} questions in {seconds:.0f} s\n{harvest_text(rows)}\n")
    if any(row["outage"] for row in rows):
        note_unfinished([parsed.output])
        return BROKE_OFF
    remove_work_file(work_file)
    forget_unfinished(parsed.output)
    return DONE


def _note_unfinished(run: RunRecords) -> None:
    step, total = (run.steps or [0])[-1], run.config["trainer"].get("total_training_steps")
    if total and step < total:
        sys.stderr.write(f"note: {run.folder} is at step {step} of {total}; these are the tests so far\n")


def _harvest_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="code-a1 harvest",
        description="Writes a run's training questions with the tests that its Test LLM wrote as golden_tests.\n\n"
        "Of the tests of a question only as few are kept as kill the same programs: mutants of its reference (small\n"
        "mistakes, made by cosmic-ray) and the wrong programs that the run recorded. The best come first.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  code-a1 harvest outputs/my-run --output tests.jsonl\n"
        "  code-a1 harvest outputs/my-run --output tests.jsonl --no-minimise\n\n"
        "Train on them: code-a1 cpu arm=static data.train_files=tests.jsonl. A command that was stopped goes on where\n"
        "it was when it is repeated; what it has so far is in OUTPUT.kills.jsonl.\n"
        "A file that exists already is replaced with --overwrite only, and a file of the run never.",
    )
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("--output", type=Path, required=True, help="JSON lines, for data.train_files with arm=static")
    parser.add_argument("--overwrite", action="store_true", help="replace OUTPUT where it exists")
    parser.add_argument(
        "--minimise",
        action=argparse.BooleanOptionalAction,
        default=True,
        help=f"drop tests that kill nothing new (default); --no-minimise: the {MOST_TESTS} that broke most programs, "
        "as the run recorded them and not judged again",
    )
    parser.add_argument(
        "--min-tests", type=positive, default=1, metavar="N", help="keep at least N of a question (default 1)"
    )
    parser.add_argument(
        "--max-mutants", type=positive, default=200, metavar="N", help="at most N of a reference (default 200)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the choice of mutants where there are more (default 0)")
    parser.add_argument(
        "--workers", type=positive, default=os.cpu_count() or 1, help="judge processes (default: one a core)"
    )
    parser.add_argument("--tier", type=int, choices=LOCAL_TIERS, help="how programs are confined (default: as the run)")
    parser.add_argument(
        "--allow-missing",
        nargs="+",
        default=[],
        choices=OPTIONAL_FEATURES,
        metavar="NAME",
        help="protections this kernel lacks: landlock, seccomp (default: as the run)",
    )
    return parser


def rollouts(arguments: Sequence[str]) -> int:
    """Exit status: 0 shown, 2 refused."""
    outcomes = "\n".join(f"  {name:8} {meaning}" for name, meaning in OUTCOMES.items())
    parser = argparse.ArgumentParser(
        prog="code-a1 rollouts",
        description="Shows a run's programs with their suites and what came of them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"outcomes:\n{outcomes}",
    )
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--step", type=int, help="default: the last one")
    parser.add_argument("--question", default="", help="id, or how it begins")
    parser.add_argument("--outcome", default="", choices=["", *OUTCOMES], metavar="OUTCOME", help="see below")
    parser.add_argument("--validation", action="store_true", help="of held-out questions")
    parser.add_argument("--limit", type=positive, default=10, help="programs to show (default 10)")
    parsed = parser.parse_args(arguments)
    try:
        run = RunRecords.open(parsed.run)
        steps = run.validation_steps if parsed.validation else run.training_steps
        step = parsed.step if parsed.step is not None else (steps or [0])[-1]
        if step not in steps:
            hint = "" if parsed.validation or not run.validation_steps else "; try --validation"
            raise RecordsError(f"{parsed.run} has no rollouts of step {step}; it has {_span(steps)}{hint}")
        records = run.validation(step) if parsed.validation else run.training(step)
        questions = report.questions_by_id(run)
    except RecordsError as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    found = list(matching(records, question=parsed.question, outcome=parsed.outcome))
    for record in found[: parsed.limit]:
        sys.stdout.write(view_of(record, questions).text() + "\n\n")
    sys.stdout.write(f"{min(len(found), parsed.limit)} of {len(found)} that match, of {len(records)} at step {step}\n")
    return DONE


def _span(steps: Sequence[int]) -> str:
    return "none" if not steps else f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
