"""Tables for the terminal. In a terminal, rich draws the table. In a pipe, the table is Markdown."""

import sys

import typer
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ..stats.tables import Table


def print_table(table: Table) -> None:
    """Print a table on stdout."""
    if not sys.stdout.isatty():
        typer.echo(table.markdown(), nl=False)
        return
    drawn = RichTable(
        title=Text(table.title) if table.title else None,
        caption=Text(table.note),
        caption_justify="left",
    )
    for column in table.columns:
        drawn.add_column(Text(column))
    for row in table.rows:
        drawn.add_row(*map(Text, row))
    Console().print(drawn)
