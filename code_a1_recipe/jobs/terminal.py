"""Text for a terminal, with colours but without control characters."""

import os

import typer

_COLOURS = {
    "bad": "red",
    "good": "green",
    "doubtful": "yellow",
}


def paint(meaning: str, text: str) -> str:
    """Add the colour of a meaning to a text: bad, good or doubtful. A "heading" becomes bold."""
    if meaning == "heading":
        return typer.style(text, bold=True)
    return typer.style(text, fg=_COLOURS.get(meaning))


def echo(text: str) -> None:
    """Print a text, with colours if the terminal has them and NO_COLOR is not set (https://no-color.org)."""
    color = None  # typer decides
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        color = False
    typer.echo(text, color=color)


def printable(text: str) -> str:
    """Escape the characters that a terminal cannot print, except line ends and tabs."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else character.encode("unicode_escape").decode()
        for character in text
    )


def indented(text: str, by: int) -> list[str]:
    """Return the printable lines of a text, each indented by ``by`` spaces."""
    margin = " " * by
    lines = printable(text).split("\n")
    return [f"{margin}{line}".rstrip() for line in lines]
