"""Text for a terminal: colours where they help, nothing that moves the cursor."""

import os

import typer

_COLOURS = {
    "bad": "red",
    "good": "green",
    "doubtful": "yellow",
    "heading": None,
}


def paint(meaning: str, text: str) -> str:
    """Text in the colour of its meaning: bad, good or doubtful; a heading is bold."""
    return typer.style(
        text,
        fg=_COLOURS[meaning],
        bold=meaning == "heading" or None,
    )


def echo(text: str) -> None:
    """Print it: in colour on a terminal, unless NO_COLOR is set (https://no-color.org) or it cannot show any."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    typer.echo(text, color=False if is_plain else None)


def printable(text: str) -> str:
    """The text with every character escaped that a terminal would obey instead of showing, line ends excepted."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def indented(text: str, by: int) -> list[str]:
    """Printable lines, each ``by`` spaces further in."""
    return [f"{' ' * by}{line}".rstrip() for line in printable(text).split("\n")]
