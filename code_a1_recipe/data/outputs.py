"""What a preparation writes: each file appears whole or not at all, the questions last."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from ..questions import COLUMNS, Question
from .data_card import Preparation, card_text

_TEXT_COLUMNS = frozenset({"id", "prompt", "reference", "prelude", "data_source"})


def card_path(output: Path) -> Path:
    """The data card of an output."""
    return output.with_name(output.name + ".card.md")


def dropped_path(output: Path) -> Path:
    """One JSON line a row that was left out."""
    return output.with_name(output.name + ".dropped.jsonl")


def judged_path(output: Path) -> Path:
    """What the judge said, for going on."""
    return output.with_name(output.name + ".judged.jsonl")


def write_outputs(preparation: Preparation) -> list[Path]:
    """Write dropped rows, card and, unless nothing was kept, the questions; the files written.

    Raises:
        OSError: no space, or no permission.
    """
    output, prepared = preparation.output, preparation.prepared
    lines = "".join(json.dumps(dropped.record()) + "\n" for dropped in prepared.dropped)
    _write_whole(dropped_path(output), lines.encode())
    _write_whole(card_path(output), card_text(preparation).encode("utf-8", "replace"))
    if not prepared.kept:
        return [dropped_path(output), card_path(output)]
    write_questions(output, [entry.question for entry in prepared.kept])
    return [output, card_path(output), dropped_path(output)]


def write_questions(path: Path, questions: Sequence[Question]) -> None:
    """Questions as parquet with the native columns, in their order, and nothing else.

    Raises:
        OSError: no space, or no permission.
    """
    import pyarrow
    import pyarrow.parquet

    kinds = {name: pyarrow.string() if name in _TEXT_COLUMNS else pyarrow.list_(pyarrow.string()) for name in COLUMNS}
    columns = {name: [getattr(question, name) for question in questions] for name in COLUMNS}
    partial = _partial(path)
    pyarrow.parquet.write_table(pyarrow.table(columns, schema=pyarrow.schema(kinds)), partial)
    _move(partial, path)


def _write_whole(path: Path, data: bytes) -> None:
    partial = _partial(path)
    partial.write_bytes(data)
    _move(partial, path)


def _partial(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(path.name + ".partial")


def _move(partial: Path, path: Path) -> None:
    with partial.open("rb") as handle:
        os.fsync(handle.fileno())
    partial.replace(path)
