"""A table of texts, and its Markdown."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table whose cells are texts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    """A paragraph that explains the figures."""

    def markdown(self) -> str:
        """Return Markdown with padded columns, which can also be read in a terminal."""
        rows = []
        for cells in (self.columns, *self.rows):
            rows.append(list(map(_in_markdown, cells)))
        widths = []
        for column in zip(*rows, strict=True):
            longest = max(map(len, column))
            widths.append(max(3, longest))  # Markdown needs at least three dashes below the head
        rows.insert(1, ["-" * width for width in widths])
        text = ""
        if self.title:
            text = f"**{self.title}**\n\n"
        for row in rows:
            padded = map(str.ljust, row, widths)
            text += f"| {' | '.join(padded)} |\n"
        if self.note:
            text += f"\n{self.note}\n"
        return text


def counts_text(counts: Counter[str]) -> str:
    """Return a text such as ``wrong_value 3, raised 1``, with the most frequent name first."""
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, such as ``1 step`` or ``2 steps``."""
    if number != 1:
        thing += "s"
    return f"{number} {thing}"


def table_with_head(
    rows: Iterable[Iterable[str]],
    *,
    title: str = "",
    note: str = "",
) -> Table:
    """Make a table. The first of ``rows`` has the names of the columns."""
    head, *body = map(tuple, rows)
    return Table(title=title, columns=head, rows=tuple(body), note=note)


def table_of(title: str, rows: Sequence[Mapping[str, str]], *, note: str = "") -> Table:
    """Make a table of rows that map columns to cells. Columns keep the order of their first appearance."""
    columns: dict[str, None] = {}
    for row in rows:
        columns |= dict.fromkeys(row)
    body = []
    for row in rows:
        cells = [row.get(name, "") for name in columns]
        body.append(cells)
    return table_with_head([columns, *body], title=title, note=note)


def _in_markdown(cell: str) -> str:
    """Put a cell on one line, and escape the characters that would end the cell or begin a tag."""
    line = " ".join(cell.split())
    return line.replace("|", "\\|").replace("<", "&lt;")
