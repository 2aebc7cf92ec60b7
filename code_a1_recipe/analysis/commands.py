"""The commands ``experiment``, ``harvest`` and ``rollouts`` of ``code-a1``."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from ..questions import QuestionError
from ..settings import SettingsError
from . import report
from .episodes import OUTCOMES, matching, view_of
from .experiment import Experiment, ExperimentError
from .experiment_runs import run_experiment
from .harvest import harvest
from .records import RecordsError, RunRecords

DONE, BROKE_OFF, REFUSED, INTERRUPTED = 0, 1, 2, 130


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
        "--parallel", type=_positive, default=1, help="runs at once (default 1); each needs the memory of a whole run"
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
    """Exit status: 0 written, 2 refused."""
    parser = argparse.ArgumentParser(
        prog="code-a1 harvest",
        description="Writes a run's training questions with the tests that its Test LLM wrote as golden_tests.",
    )
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("--output", type=Path, required=True, help="JSON lines, for data.train_files with arm=static")
    parsed = parser.parse_args(arguments)
    try:
        number = harvest(parsed.run, parsed.output)
        run = RunRecords.open(parsed.run)
        step, total = (run.steps or [0])[-1], run.config["trainer"].get("total_training_steps")
        if total and step < total:
            sys.stderr.write(f"note: {parsed.run} is at step {step} of {total}; these are the tests so far\n")
    except (RecordsError, OSError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    sys.stdout.write(f"{parsed.output}: {number} questions\n")
    return DONE


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
    parser.add_argument("--limit", type=_positive, default=10, help="programs to show (default 10)")
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


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(text)


def _span(steps: Sequence[int]) -> str:
    return "none" if not steps else f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
