"""``python -m studies.experiment``: runs a grid of arms and seeds, reports on it, compares rules for the Test LLM."""

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
    """Run one command and return its exit status."""
    return run_study(app, arguments, name="experiment")


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="a YAML file with preset, folder, seeds, overrides, arms; see studies/")],
    arms: Annotated[list[str] | None, typer.Option(help="run only this arm; repeatable")] = None,
    seeds: Annotated[list[int] | None, typer.Option(help="run only this seed; repeatable")] = None,
    parallel: Annotated[int, typer.Option(min=1, help="number of runs at the same time")] = 1,
) -> None:
    """Run a grid of arms and seeds, then report. A repeated command resumes."""
    experiment = Experiment.load(file)
    # SIGTERM comes from a scheduler, SIGHUP from a closed terminal. Both signals end the runs as Ctrl-C does. Under
    # nohup, the process ignores SIGHUP.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    with status.resumable(experiment.folder):
        run_experiment(experiment, arms=arms or [], seeds=seeds or [], parallel=parallel)
    report(experiment.folder)


@app.command()
def report(source: Annotated[Path, typer.Argument(help="folder of an experiment, or its results.json")]) -> None:
    """Write one self-contained page with curves and tables of the finished runs."""
    page, tables = write_report(source)
    typer.echo(f"{tables}\n\nreport: {page}")


@app.command()
def record(
    folder: Annotated[Path, typer.Argument(help="folder of a run with arm=golden_full and several validations")],
    output: Annotated[Path, typer.Option(help="JSONL file for data.val_files of the runs that are compared")],
) -> None:
    """Record narrow and wide buggy programs from several stages of training."""
    typer.echo(record_programs(RunRecords.open(folder), output))


@app.command()
def leaderboard(
    folder: Annotated[
        Path | None,
        typer.Argument(help="a new experiment with a report and an arm 'frozen'; default: the stored results"),
    ] = None,
    arm: Annotated[str, typer.Option(help="the arm of the new experiment that has the rule")] = "",
    rule: Annotated[str, typer.Option(help="one line that describes the rule")] = "",
) -> None:
    """Print the leaderboard, or the row for one arm of a new experiment."""
    if folder is None:
        typer.echo(leaderboard_table().markdown())
        return
    if not arm:
        raise SettingsError("--arm must name the arm of the folder that is compared with the arm 'frozen'")
    new = Rule(rule=rule or arm, results=folder.name, arm=arm, commit="")
    typer.echo(" | ".join(measured_row(new, folder / "report" / RESULTS_FILE)))


if __name__ == "__main__":
    sys.exit(main())
