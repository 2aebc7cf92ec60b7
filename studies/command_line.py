"""Command lines of the studies. The help, errors and exit statuses of all studies are like those of ``code-a1``."""

import signal
from collections.abc import Sequence

import typer

from code_a1_recipe.cli import status
from code_a1_recipe.training.lifecycle.launch import configure_logging


def study_app(description: str | None = None) -> typer.Typer:
    """Make an app whose help and errors look like those of ``code-a1``."""
    return typer.Typer(
        help=description,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def end_as_by_ctrl_c() -> None:
    """Let SIGTERM (from a scheduler) and SIGHUP (from a closed terminal) end the command and its runs as Ctrl-C does.

    Under nohup, the process ignores SIGHUP, and goes on ignoring it.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def run_study(app: typer.Typer, arguments: Sequence[str] | None, *, name: str) -> int:
    """Run ``python -m studies.NAME``. Returns the exit status, see ``code_a1_recipe.cli.status``."""
    configure_logging()
    return status.run(lambda: app(arguments, prog_name=f"python -m studies.{name}"))
