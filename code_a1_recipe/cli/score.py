"""``code-a1 score``: rollouts on disk through extraction, judge and rewards."""

import typer

from ..evaluation.rescore.command import ScoreOptions
from ..evaluation.rescore.input import FLAT_COLUMNS
from . import status
from .declared import with_options

HELP = """Judge and reward rollouts on disk: extraction, judge and rewards, to JSON lines.

Columns of INPUT (JSON lines, JSON or parquet):

{columns}

A run folder, or its rollouts/*.jsonl, is read as it is: the run's own settings and questions are then the defaults, so
that the same command gives its rewards again, and --alpha and the rest say what differs.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    columns = "\n".join(f"- {name}: {meaning}" for name, meaning in FLAT_COLUMNS.items())
    app.command(rich_help_panel="Evaluate", help=HELP.format(columns=columns))(with_options(score))


def score(options: ScoreOptions) -> None:
    from ..evaluation.rescore.command import score as score_rollouts

    status.resume(options.output, score_rollouts, options)
