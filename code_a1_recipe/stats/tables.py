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

    def markdown(self) -> str:
        """Columns padded, so that it also reads well in a terminal."""
        rows = []
        for cells in (self.columns, *self.rows):
            rows.append([_in_markdown(cell) for cell in cells])
        widths = []
        for column in zip(*rows, strict=True):
            widths.append(max(3, *map(len, column)))  # the line below the head has at least three dashes
        rows.insert(1, ["-" * width for width in widths])
        title = f"**{self.title}**\n\n" if self.title else ""
        lines = [title]
        for row in rows:
            padded = map(str.ljust, row, widths)
            lines.append(f"| {' | '.join(padded)} |\n")
        if self.note:
            lines.append(f"\n{self.note}\n")
        return "".join(lines)


def counts_text(counts: Counter[str]) -> str:
    """``wrong_value 3, raised 1``: the most frequent first."""
    words = []
    for name, count in counts.most_common():
        words.append(f"{name} {count}")
    return ", ".join(words)


def counted(number: int, thing: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def table_with_head(rows: Iterable[Iterable[str]], *, title: str = "", note: str = "") -> Table:
    """A table whose first row names the columns."""
    head, *body = map(tuple, rows)
    return Table(
        title=title,
        columns=head,
        rows=tuple(body),
        note=note,
    )


def table_of(title: str, rows: Sequence[Mapping[str, str]], *, note: str = "") -> Table:
    """A table from rows that name their cells; columns in order of first appearance, missing cells empty."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[row.get(name, "") for name in columns] for row in rows]
    return table_with_head([columns, *cells], title=title, note=note)


def _in_markdown(cell: str) -> str:
    """One line that neither ends a cell nor begins a tag."""
    line = " ".join(cell.split())
    return line.replace("|", "\\|").replace("<", "&lt;")
