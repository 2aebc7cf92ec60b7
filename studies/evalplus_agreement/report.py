"""The report of a comparison with EvalPlus: counts by kind of program, and every difference."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from code_a1_recipe.files import write_whole
from code_a1_recipe.jobs.jsonl_store import Row
from code_a1_recipe.stats.tables import Table

from .opinions import CLASSES, PASS
from .samples import KINDS

_CELLS = ((True, True), (False, False), (True, False), (False, True))
"""(we pass it, EvalPlus passes it), in the order of the columns."""
_MAX_LINES = 60


def agreement_table(rows: Sequence[Row]) -> Table:
    """Programs by kind and by what the two judges say. Rows of outages do not count."""
    counts = Counter((row["kind"], row["ours"]["passed"], row["theirs"]["status"] == PASS) for row in _judged(rows))
    lines = []
    for kind in [*(kind for kind in KINDS if any(key[0] == kind for key in counts)), "all"]:
        cells = [sum(counts[key] for key in counts if kind in (key[0], "all") and key[1:] == cell) for cell in _CELLS]
        total = sum(cells)
        share = f"{100 * (cells[0] + cells[1]) / total:.2f} %" if total else "–"
        lines.append((kind, str(total), *map(str, cells), share))
    columns = ("programs", "number", "both pass", "both fail", "only ours passes", "only EvalPlus passes", "agreement")
    outages = len(rows) - len(_judged(rows))
    note = f"{outages} programs met an outage of the sandbox and are not counted." if outages else ""
    return Table(title="Our judge and EvalPlus's", columns=columns, rows=tuple(lines), note=note)


def class_table(rows: Sequence[Row]) -> Table:
    """Differences by reason."""
    counts = Counter((row["class"], row["ours"]["passed"]) for row in _differing(rows))
    lines = [
        (name, str(counts[name, True]), str(counts[name, False]), meaning)
        for name, meaning in CLASSES.items()
        if counts[name, True] or counts[name, False]
    ]
    columns = ("reason", "only ours passes", "only EvalPlus passes", "meaning")
    return Table(title="Differences", columns=columns, rows=tuple(lines))


def write_report(folder: Path, rows: Sequence[Row], *, settings: Mapping[str, Any]) -> str:
    """Write ``agreement.md`` and ``differences.jsonl`` into ``folder``; the counts as Markdown."""
    differing = _differing(rows)
    tables = f"{agreement_table(rows).markdown()}\n{class_table(rows).markdown() if differing else 'No difference.'}"
    described = ", ".join(f"{name} {value}" for name, value in settings.items())
    text = (
        f"# Agreement with EvalPlus's own judge\n\n{described}\n\n{tables}\n"
        + "".join(f"- `{kind}`: {meaning}\n" for kind, meaning in KINDS.items())
        + "\n## Each difference\n\n"
        + ("\n".join(map(_line, differing)) or "None.")
        + "\n"
    )
    write_whole(folder / "agreement.md", text)
    write_whole(folder / "differences.jsonl", "".join(json.dumps(row) + "\n" for row in differing))
    return tables


def _line(row: Row) -> str:
    ours, theirs = row["ours"], row["theirs"]
    place = f" at {row['calls'][0][:80]}" if row.get("calls") else ""
    made = f"{row['kind']} {row['detail']}".strip()
    program = "".join(f"    {line}\n" for line in row["program"].strip().split("\n")[:_MAX_LINES])
    return (
        f"- **{row['id']}**, sample {row['item']} ({made}): ours *{ours['outcome']}* {ours['detail'][:100]}, "
        f"EvalPlus *{theirs['status']}*{place}. Reason: {row['class']}\n\n{program}"
    )


def _judged(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if not row["outage"]]


def _differing(rows: Sequence[Row]) -> list[Row]:
    return [row for row in _judged(rows) if row["class"]]
