"""One table, written as Markdown."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


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
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[row.get(name, "") for name in columns] for row in rows]
    return table_with_head([columns, *cells], title=title, note=note)


def _in_markdown(cell: str) -> str:
    """One line that neither ends a cell nor begins a tag."""
    line = " ".join(cell.split())
    return line.replace("|", "\\|").replace("<", "&lt;")
