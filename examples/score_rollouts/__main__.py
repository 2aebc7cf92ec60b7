"""``python -m examples.score_rollouts``: rollouts on disk through extraction, judge and rewards, to JSON lines."""

import sys
from collections.abc import Sequence

from code_a1_recipe.cli import status
from code_a1_recipe.cli.declared import with_options
from examples.arguments import run_study, study_app

from .command import ScoreOptions, score
from .input import FLAT_COLUMNS

app = study_app()

_HELP = """Judge and reward rollouts on disk: extraction, judge and rewards, to JSON lines.

Columns of INPUT (JSON lines, JSON or parquet):

{columns}

A run folder, or its rollouts/*.jsonl, is read as it is: the run's own settings and questions are then the defaults, so
that the same command gives its rewards again, and --alpha and the rest say what differs.
"""
_COLUMNS = "\n".join(f"- {name}: {meaning}" for name, meaning in FLAT_COLUMNS.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of a command line; see ``code_a1_recipe.cli.status``."""
    return run_study(app, arguments, name="examples.score_rollouts")


@app.command(help=_HELP.format(columns=_COLUMNS))
@with_options
def score_rollouts(options: ScoreOptions) -> None:
    status.resume(options.output, score, options)


if __name__ == "__main__":
    sys.exit(main())
