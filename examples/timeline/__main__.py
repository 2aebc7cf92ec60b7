"""``python -m examples.timeline RUN``: where the time of one training step went."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from examples.arguments import run_study, study_app

from .timeline import write_timeline

HELP = """Where the time of one training step went: a picture and a table, also while the run is going on.

The table, in seconds and parts of the step:

- only the Code LLM: programs were written and no suites; likewise "only the Test LLM". The judge may work beside either
- both LLMs: both wrote at the same time, which is what streaming gains
- only the judge: programs were judged, or waited for a judge, and no LLM wrote
- nothing: dispatch, prompts, the end of the last question
- update code, test: with layout=separate both at once
- sync, save: new weights to the servers; checkpoint
- other: of the step, outside the episodes and all timers below them
- running at once: mean number of requests (programs) under way during the episodes

The picture: above, what runs at once; below, a row for each question; at the right the updates, the checkpoint and the
new weights. Two runs are drawn on the same scales.
"""

app = study_app()


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of a command line; see ``code_a1_recipe.cli.status``."""
    return run_study(app, arguments, name="examples.timeline")


@app.command(help=HELP)
def timeline(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="run folder: what was given as run_dir")],
    step: Annotated[
        int | None, typer.Option(min=1, help="training step", show_default="the last one, of both with --compare")
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(help="the same step of another run below, and the ratio of their steps' seconds")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.png", show_default="RUN/report/timeline_step<N>.png")
    ] = None,
) -> None:
    """Draw and tabulate one step."""
    written = write_timeline(run, step=step, compare=compare, output=output)
    typer.echo(f"{written.text}picture: {written.picture}")


if __name__ == "__main__":
    sys.exit(main())
