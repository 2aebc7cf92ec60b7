"""Command lines of the studies: types of arguments, whose errors say rule and value, and an app as `code-a1` is."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import typer

from code_a1_recipe.cli import status
from code_a1_recipe.training.lifecycle.launch import configure_logging


def positive(text: str) -> int:
    """An integer of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(text)


def study_app() -> typer.Typer:
    """An app whose help and errors look like those of ``code-a1``."""
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def run_study(app: typer.Typer, arguments: Sequence[str] | None, *, name: str) -> int:
    """Exit status of ``python -m NAME``; see ``code_a1_recipe.cli.status``."""
    configure_logging()
    return status.run(lambda: app(arguments, prog_name=f"python -m {name}"))
