"""Text for a terminal, with colours but without control characters."""

import os

import typer

_COLOURS = {"bad": "red", "good": "green", "doubtful": "yellow"}


def paint(meaning: str, text: str) -> str:
    """Colour a text by its meaning: bad, good or doubtful. A "heading" becomes bold."""
    return typer.style(text, fg=_COLOURS.get(meaning), bold=meaning == "heading" or None)


def echo(text: str) -> None:
    """Print a text. Colours show on terminals that have them, unless NO_COLOR is set (https://no-color.org)."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    typer.echo(text, color=False if is_plain else None)


def printable(text: str) -> str:
    """Escape all characters that a terminal would not print, except line ends and tabs."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def indented(text: str, by: int) -> list[str]:
    """Return the printable lines of a text, each indented by ``by`` spaces."""
    return [f"{' ' * by}{line}".rstrip() for line in printable(text).split("\n")]
