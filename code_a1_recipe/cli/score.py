"""``code-a1 score``: rollouts on disk through extraction, judge and rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reward_fns import ADVERSARIAL_READINGS

from ..evaluation.rescore.input import FLAT_COLUMNS, ROLES
from . import options as shared
from . import status

HELP = """Judge and reward rollouts on disk: extraction, judge and rewards, to JSON lines.

Columns of INPUT (JSON lines, JSON or parquet):

{columns}

A run folder, or its rollouts/*.jsonl, is read as it is: the run's own settings and questions are then the defaults, so
that the same command gives its rewards again, and --alpha and the rest say what differs.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    columns = "\n".join(f"- {name}: {meaning}" for name, meaning in FLAT_COLUMNS.items())
    app.command(rich_help_panel="Evaluate", help=HELP.format(columns=columns))(score)


def score(
    inputs: Annotated[list[Path], typer.Argument(metavar="INPUT...", help="rollout files, or a run folder")],
    output: Annotated[Path, typer.Option(help="JSON lines; a repeated command resumes")],
    questions: Annotated[list[Path], typer.Option(metavar="FILE", help="as data.train_files; repeatable")] = [],  # noqa: B006
    adapter: shared.Adapter = "auto",
    columns: shared.Columns = [],  # noqa: B006
    role: Annotated[
        str,
        typer.Option(callback=shared.one_of(("auto", *ROLES)), help="what flat rows are: auto, code or test"),
    ] = "auto",
    workers: shared.Workers = shared.NUM_CORES,
    tier: shared.Tier = None,
    allow_missing: shared.AllowMissing = [],  # noqa: B006
    alpha: Annotated[
        float | None, typer.Option(help="weight of validity in the test reward", show_default="0.5")
    ] = None,
    adversarial: Annotated[
        str | None,
        typer.Option(callback=shared.one_of(tuple(sorted(ADVERSARIAL_READINGS))), show_default="release"),
    ] = None,
    cases: Annotated[
        int | None, typer.Option(min=1, help="K, the cases a suite was asked for", show_default="8")
    ] = None,
    nonprintable_penalty: Annotated[bool | None, typer.Option(show_default="no")] = None,
    limits: Annotated[
        list[str], typer.Option(metavar="KEY=NUMBER", help="of one program, as sandbox.limits; repeatable")
    ] = [],  # noqa: B006
) -> None:
    given = {**locals(), "columns": shared.columns(columns), "limits": shared.numbers(limits)}
    from ..evaluation.rescore.command import ScoreOptions
    from ..evaluation.rescore.command import score as score_rollouts

    options = ScoreOptions(**given)
    with status.resumable(output):
        report = score_rollouts(options)
    status.finish(report)
