"""``code-a1``, a Typer app. Each command only reads its options, calls a function of another room and prints."""

import difflib
import importlib.metadata
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ..config.compose import preset_names
from ..errors import InputError
from . import curate, evaluate, recorded, runs, status, train, use

app = typer.Typer(
    name="code-a1",
    help="Train a Code LLM and a Test LLM against each other, evaluate them, and use them.\n\n"
    "`code-a1 train` trains two tiny models. Before a preset, a file or a setting, the word `train` may be left "
    "out: `code-a1 PRESET [KEY=VALUE]...`",
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS = {
    "Train": (train.train, train.plan, train.doctor),
    "Runs": (runs.watch, runs.report, runs.export, recorded.score, recorded.harvest, recorded.validate),
    "Use": (use.select, use.attack),
}
for panel, commands in _COMMANDS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(evaluate.group, rich_help_panel="Evaluate")
app.add_typer(curate.group, rich_help_panel="Data")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"code-a1 {importlib.metadata.version('code-a1-recipe')}")
        raise typer.Exit


@app.callback()
def code_a1(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True)] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, and return its exit status. ``cli.status`` explains the statuses."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    train.configure_logging()
    return status.run(lambda: app(_with_command(words), prog_name="code-a1"))


def _with_command(words: list[str]) -> list[str]:
    """Put ``train`` first if the first word is a preset, a YAML file or a setting. No words ask for help.

    Raises:
        InputError: the first word looks like a misspelled command, or a setting is written as an option.
    """
    if not words:
        return ["--help"]
    first = words[0]
    if first.startswith("-"):
        return words
    commands = typer.main.get_group(app).commands
    names = list(commands)
    if first in names:
        if first in ("train", "plan"):
            _refuse_dashes(
                words, options={"--help", *(one for parameter in commands[first].params for one in parameter.opts)}
            )
        return words
    is_training = "=" in first or first in preset_names() or first.endswith((".yaml", ".yml"))
    if not is_training and (near := difflib.get_close_matches(first, names, n=1)):
        raise InputError(f"unknown command {first!r}; did you mean {near[0]!r}? `code-a1 --help` lists all commands")
    return _with_command(["train", *words])


def _refuse_dashes(words: list[str], *, options: set[str]) -> None:
    """Raise InputError for ``--key value``, which is no option and does not look like one."""
    for word in words:
        key = word.partition("=")[0]
        if word.startswith("--") and not difflib.get_close_matches(key, options):
            raise InputError(f"{key} is no option of `code-a1 {words[0]}`; a setting has no dashes: {key[2:]}=VALUE")
