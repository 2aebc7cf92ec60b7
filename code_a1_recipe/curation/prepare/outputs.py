"""What a preparation writes: each file appears whole or not at all, the questions last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ...algorithm.question import Question
from ...data.reader import COLUMNS
from ...files import replacing, write_whole
from .data_card import Preparation, card_text

_TEXT_COLUMNS = frozenset({"id", "prompt", "reference", "prelude", "data_source"})


def write_outputs(preparation: Preparation) -> list[Path]:
    """Write dropped rows, card and, unless nothing was kept, the questions; the files written.

    Raises:
        OSError: no space, or no permission.
    """
    options, prepared = preparation.options, preparation.prepared
    lines = "".join(json.dumps(dropped.record()) + "\n" for dropped in prepared.dropped)
    write_whole(options.dropped_output, lines)
    write_whole(options.card_output, card_text(preparation).encode("utf-8", "replace"))
    if not prepared.kept:
        return [options.dropped_output, options.card_output]
    write_questions(options.output, [entry.question for entry in prepared.kept])
    return list(options.outputs)


def write_questions(path: Path, questions: Sequence[Question]) -> None:
    """Questions as parquet with the native columns, in their order, and nothing else.

    Raises:
        OSError: no space, or no permission.
    """
    import pyarrow
    import pyarrow.parquet

    kinds = {name: pyarrow.string() if name in _TEXT_COLUMNS else pyarrow.list_(pyarrow.string()) for name in COLUMNS}
    columns = {name: [getattr(question, name) for question in questions] for name in COLUMNS}
    with replacing(path) as partial:
        pyarrow.parquet.write_table(pyarrow.table(columns, schema=pyarrow.schema(kinds)), partial)
