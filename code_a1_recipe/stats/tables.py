"""One table as Markdown, CSV and HTML."""

import csv
import html
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..files import write_whole


@dataclass(frozen=True, slots=True, kw_only=True)
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
        cells = [self.columns, *self.rows]
        escaped = [[_in_markdown(cell) for cell in row] for row in cells]
        widths = [max(3, *(len(row[place]) for row in escaped)) for place in range(len(self.columns))]
        lines = [
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
            for row in escaped
        ]
        lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
        head = f"**{self.title}**\n\n" if self.title else ""
        tail = f"\n{self.note}\n" if self.note else ""
        return head + "\n".join(lines) + "\n" + tail

    def csv(self) -> str:
        """Comma separated, the columns' names first."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()

    def html(self) -> str:
        """A whole small page."""
        head = "".join(f"<th>{html.escape(column)}</th>" for column in self.columns)
        body = "\n".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        return (
            '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
            f"<title>{html.escape(self.title)}</title>\n"
            "<style>body{font:15px system-ui,sans-serif;margin:2em}table{border-collapse:collapse}"
            "th,td{border-bottom:1px solid #ccc;padding:.3em .8em;text-align:left}</style>\n"
            f"<h1>{html.escape(self.title)}</h1>\n<table>\n<tr>{head}</tr>\n{body}\n</table>\n"
            f"<p>{html.escape(self.note)}</p>\n</html>\n"
        )

    def write(self, folder: Path, name: str) -> None:
        """``<name>.md``, ``.csv`` and ``.html`` in ``folder``."""
        for suffix, text in ((".md", self.markdown()), (".csv", self.csv()), (".html", self.html())):
            write_whole(folder / f"{name}{suffix}", text)


def counts_text(counts: Counter[str]) -> str:
    """``wrong_value 3, raised 1``: the most frequent first."""
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def counted(number: int, thing: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def table_with_head(rows: Iterable[Sequence[str]], *, title: str = "", note: str = "") -> Table:
    """A table whose first row names the columns."""
    head, *body = map(tuple, rows)
    return Table(title=title, columns=head, rows=tuple(body), note=note)


def table_of(title: str, rows: Sequence[Mapping[str, str]], *, note: str = "") -> Table:
    """A table from rows that name their cells; columns in order of first appearance, missing cells empty."""
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    cells = tuple(tuple(row.get(name, "") for name in columns) for row in rows)
    return Table(title=title, columns=columns, rows=cells, note=note)


def _in_markdown(cell: str) -> str:
    """One line that neither ends a cell nor begins a tag."""
    return " ".join(cell.split()).replace("|", "\\|").replace("<", "&lt;")
