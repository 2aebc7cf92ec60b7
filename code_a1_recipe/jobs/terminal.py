"""Text for a terminal: colours where they help, nothing that moves the cursor."""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_CODES = {"bad": "31", "good": "32", "doubtful": "33", "heading": "1", "faint": "2"}


@dataclass(frozen=True)
class Paint:
    """Colours by meaning; plain text where they are off."""

    is_on: bool = False

    @classmethod
    def for_stdout(cls) -> "Paint":
        """On for a terminal, unless NO_COLOR is set (https://no-color.org) or it cannot show any."""
        wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return cls(wanted and sys.stdout.isatty())

    def __call__(
        self,
        meaning: str,
        text: str,
    ) -> str:
        """``meaning`` is one of bad, good, doubtful, heading and faint."""
        return f"\x1b[{_CODES[meaning]}m{text}\x1b[0m" if self.is_on and text else text


def printable(text: str) -> str:
    """The text with every character escaped that a terminal would obey instead of showing, line ends excepted."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def indented(text: str, by: int) -> list[str]:
    """Printable lines, each ``by`` spaces further in."""
    return [f"{' ' * by}{line}".rstrip() for line in printable(text).split("\n")]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of a table: the first column to the left, the others to the right."""
    cells = [head, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(head))]
    return [
        "  ".join(
            text.ljust(width) if place == 0 else text.rjust(width)
            for place, (text, width) in enumerate(
                zip(
                    row,
                    widths,
                    strict=True,
                )
            )
        ).rstrip()
        for row in cells
    ]
