"""``python -m studies.experiment``: run a grid of arms and seeds, report on it, compare rules for the Test LLM."""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from code_a1_recipe.cli import status
from code_a1_recipe.errors import SettingsError
from code_a1_recipe.runs.reader import RunRecords
from studies.command_line import run_study, study_app

from .grid import Experiment
from .leaderboard import Rule, leaderboard_table, measured_row
from .recorded import record_programs
from .report import write_report
from .results import RESULTS_FILE
from .runs import run_experiment

app = study_app()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    return run_study(app, arguments, name="experiment")


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="YAML: preset, folder, seeds, overrides, arms; see studies/")],
    arms: Annotated[list[str] | None, typer.Option(help="only this arm; repeatable")] = None,
    seeds: Annotated[list[int] | None, typer.Option(help="only this seed; repeatable")] = None,
    parallel: Annotated[int, typer.Option(min=1, help="runs at once; each needs the memory of a whole run")] = 1,
) -> None:
    """Run a grid of arms and seeds, then report; a repeated command resumes after any stop."""
    experiment = Experiment.load(file)
    # The end of a scheduler's job, or of a terminal, ends the runs as Ctrl-C does. nohup stays nohup.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    with status.resumable(experiment.folder):
        run_experiment(experiment, arms=arms or [], seeds=seeds or [], parallel=parallel)
    report(experiment.folder)


@app.command()
def report(source: Annotated[Path, typer.Argument(help="folder of an experiment, or its results.json")]) -> None:
    """Write one self-contained page with curves and tables, also while runs are going on."""
    page, tables = write_report(source)
    typer.echo(f"{tables}\n\nreport: {page}")


@app.command()
def record(
    folder: Annotated[Path, typer.Argument(help="run with arm=golden_full, validated at several steps")],
    output: Annotated[Path, typer.Option(help="JSONL, for data.val_files of the runs that are compared")],
) -> None:
    """Record narrow and wide buggy programs of several stages of training."""
    typer.echo(record_programs(RunRecords.open(folder), output))


@app.command()
def leaderboard(
    folder: Annotated[
        Path | None, typer.Argument(help="reported experiment with the arm frozen; default: stored")
    ] = None,
    arm: Annotated[str, typer.Option(help="arm of the rule, with a folder")] = "",
    rule: Annotated[str, typer.Option(help="the rule in a line, with a folder")] = "",
) -> None:
    """Print the leaderboard, or the row of one arm of a new experiment."""
    if folder is None:
        typer.echo(leaderboard_table().markdown())
        return
    if not arm:
        raise SettingsError("a folder needs --arm, the arm that is compared with the arm frozen")
    new = Rule(rule=rule or arm, results=folder.name, arm=arm, commit="")
    typer.echo(" | ".join(measured_row(new, folder / "report" / RESULTS_FILE)))


if __name__ == "__main__":
    sys.exit(main())
