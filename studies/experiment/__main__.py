"""``python -m examples.experiment``: a grid of arms and seeds is run, and reported on."""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from code_a1_recipe.cli import status
from examples.arguments import run_study, study_app

from .grid import Experiment
from .report import write_report
from .runs import run_experiment

app = study_app()


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of a command line; see ``code_a1_recipe.cli.status``."""
    return run_study(app, arguments, name="examples.experiment")


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="YAML: preset, folder, seeds, overrides, arms; see examples/")],
    arms: Annotated[list[str] | None, typer.Option(help="only this arm; repeatable")] = None,
    seeds: Annotated[list[int] | None, typer.Option(help="only this seed; repeatable")] = None,
    parallel: Annotated[int, typer.Option(min=1, help="runs at once; each needs the memory of a whole run")] = 1,
) -> None:
    """Run a grid of arms and seeds, then report; a repeated command resumes after any stop."""
    loaded = Experiment.load(file)
    # The end of a scheduler's job, or of a terminal, ends the runs as Ctrl-C does. nohup stays nohup.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    with status.resumable(loaded.folder):
        run_experiment(loaded, arms=arms or [], seeds=seeds or [], parallel=parallel)
    report(loaded.folder)


@app.command()
def report(source: Annotated[Path, typer.Argument(help="folder of an experiment, or its results.json")]) -> None:
    """Write one self-contained page with curves and tables, also while runs are going on."""
    page, tables = write_report(source)
    typer.echo(f"{tables}\n\nreport: {page}")


if __name__ == "__main__":
    sys.exit(main())
