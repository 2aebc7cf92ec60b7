"""``python -m examples.validate_again RUN``: a run's own validation on a checkpoint, outside training."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from code_a1_recipe.cli.status import finish, resumable
from code_a1_recipe.cli.tables import print_table
from code_a1_recipe.jobs.outputs import Report
from examples.arguments import run_study, study_app

from .validation import run_validation

app = study_app()


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of a command line; see ``code_a1_recipe.cli.status``."""
    return run_study(app, arguments, name="examples.validate_again")


@app.command()
def validate_again(
    run: Annotated[Path, typer.Argument(help="run folder")],
    output: Annotated[Path, typer.Option(help="folder; responses in it are not sampled again")],
    step: Annotated[str, typer.Option(help="latest, best, a saved step, or 0: the base models")] = "latest",
    limit: Annotated[
        int | None, typer.Option(min=1, help="only the first so many questions; nothing is compared then")
    ] = None,
    judge_only: Annotated[
        bool, typer.Option("--judge-only", help="judge stored responses; no model is started")
    ] = False,
) -> None:
    """Validate both policies of a run's checkpoint on its held-out questions, beside the figures of training.

    Example: `python -m examples.validate_again outputs/cpu-20260101-120000 --step 40 --output outputs/validation`
    """
    with resumable(output):
        figures, num_different = run_validation(run, step=step, output=output, limit=limit, stored_only=judge_only)
    print_table(figures)
    finish(Report(text="", failure=f"{num_different} figures are not those of training" if num_different else ""))


if __name__ == "__main__":
    sys.exit(main())
