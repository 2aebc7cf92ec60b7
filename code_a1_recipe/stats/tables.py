"""One table as Markdown, CSV and HTML."""

import csv
import html
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..files import write_whole


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells as text, row by row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    """What a reader needs to know to read the figures; one paragraph."""

    def __post_init__(self) -> None:
        if odd := [row for row in self.rows if len(row) != len(self.columns)]:
            raise ValueError(f"every row must have {len(self.columns)} cells, got {len(odd[0])} in {odd[0]!r}")

    def markdown(self) -> str:
        """Columns padded, so that it also reads well in a terminal."""
        rows = [[_in_markdown(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = []
        for column in zip(*rows, strict=True):
            longest = max(map(len, column))
            widths.append(max(3, longest))  # the line below the head has at least three dashes
        lines = []
        for row in rows:
            padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append(f"| {' | '.join(padded)} |\n")
        dashes = ["-" * width for width in widths]
        lines.insert(1, f"| {' | '.join(dashes)} |\n")
        if self.title:
            lines.insert(0, f"**{self.title}**\n\n")
        if self.note:
            lines.append(f"\n{self.note}\n")
        return "".join(lines)

    def csv(self) -> str:
        """Comma separated, the columns' names first."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()

    def html(self) -> str:
        """A whole small page."""
        head = _in_html(self.columns, "th")
        body = "\n".join(_in_html(row, "td") for row in self.rows)
        return (
            '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
            f"<title>{html.escape(self.title)}</title>\n"
            "<style>body{font:15px system-ui,sans-serif;margin:2em}table{border-collapse:collapse}"
            "th,td{border-bottom:1px solid #ccc;padding:.3em .8em;text-align:left}</style>\n"
            f"<h1>{html.escape(self.title)}</h1>\n<table>\n{head}\n{body}\n</table>\n"
            f"<p>{html.escape(self.note)}</p>\n</html>\n"
        )

    def write(self, folder: Path, name: str) -> None:
        """``<name>.md``, ``.csv`` and ``.html`` in ``folder``."""
        write_whole(folder / f"{name}.md", self.markdown())
        write_whole(folder / f"{name}.csv", self.csv())
        write_whole(folder / f"{name}.html", self.html())


def counts_text(counts: Counter[str]) -> str:
    """``wrong_value 3, raised 1``: the most frequent first."""
    words = [f"{name} {count}" for name, count in counts.most_common()]
    return ", ".join(words)


def counted(number: int, thing: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def table_with_head(rows: Iterable[Sequence[str]], *, title: str = "", note: str = "") -> Table:
    """A table whose first row names the columns."""
    head, *body = map(tuple, rows)
    return Table(title=title, columns=head, rows=tuple(body), note=note)


def table_of(title: str, rows: Sequence[Mapping[str, str]], *, note: str = "") -> Table:
    """A table from rows that name their cells; columns in order of first appearance, missing cells empty."""
    columns: dict[str, None] = {}
    for row in rows:
        columns |= dict.fromkeys(row)
    cells = [tuple(row.get(name, "") for name in columns) for row in rows]
    return Table(
        title=title,
        columns=tuple(columns),
        rows=tuple(cells),
        note=note,
    )


def _in_markdown(cell: str) -> str:
    """One line that neither ends a cell nor begins a tag."""
    line = " ".join(cell.split())
    return line.replace("|", "\\|").replace("<", "&lt;")


def _in_html(row: Sequence[str], tag: str) -> str:
    cells = [f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row]
    return f"<tr>{''.join(cells)}</tr>"
