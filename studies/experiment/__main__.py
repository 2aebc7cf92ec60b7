"""``python -m studies.experiment``: runs a grid of arms and seeds, and reports on it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from code_a1_recipe.cli import status
from code_a1_recipe.runs.reader import RunRecords
from studies.command_line import end_as_by_ctrl_c, run_study, study_app

from .grid import Experiment
from .recorded import record_programs
from .report import write_report
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
    end_as_by_ctrl_c()
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


if __name__ == "__main__":
    sys.exit(main())
