"""The Mistake Book's file: rows of cases by question, with a digest that reveals damage."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import write_whole

FORMAT_NAME = "code-a1-mistake-book"
FORMAT_VERSION = 7

Rows = dict[str, list[list[Any]]]
"""Question id -> rows ``[id, call, answer, frequency]``, oldest first."""


def digest_of(rows: Any) -> str:
    """SHA-256 of the rows as hex digits; it does not depend on the order of the questions."""
    # Keys are sorted, because two equal books may have met their questions in different orders.
    text = json.dumps(rows, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def write_rows(path: Path, rows: Rows) -> None:
    """Write the file atomically: after a crash it holds either the old or the new rows."""
    document = {
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "digest": digest_of(rows),
        "questions": rows,
    }
    # Without an indent, json uses its fast encoder, which is written in C.
    write_whole(path, json.dumps(document, separators=(",", ":")))


def read_rows(path: Path) -> Rows:
    """Read and check the rows of a file; ``MistakeBook.load`` lists the errors."""
    try:
        document = json.loads(path.read_text(encoding="ascii"))
    except ValueError as error:  # JSON and Unicode errors are both ValueErrors
        hint = "restore it from the checkpoint it belongs to"
        raise InputError(f"{path} is not readable JSON ({error}); {hint}") from error
    return _checked_rows(document, path)


def _checked_rows(document: Any, path: Path) -> Rows:
    if not isinstance(document, dict) or document.get("format") != FORMAT_NAME:
        raise InputError(f"{path} is not a Mistake Book: its 'format' must be {FORMAT_NAME!r}")
    if document.get("version") != FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {document.get('version')!r}, this code reads {FORMAT_VERSION}; "
            "load it with the release that wrote it"
        )
    rows = document.get("questions")
    if not isinstance(rows, dict) or not all(map(_is_question, rows.values())):
        raise InputError(f"{path} is damaged: 'questions' must map ids to lists of [id, call, answer, frequency >= 1]")
    if digest_of(rows) != document.get("digest"):
        raise InputError(f"{path} is damaged or was edited: its content does not match its digest")
    return rows


def _is_question(cases: Any) -> bool:
    return isinstance(cases, list) and all(map(_is_case, cases))


def _is_case(row: Any) -> bool:
    if not isinstance(row, list):
        return False
    # `isinstance` would accept True as an integer, so the types themselves are compared.
    types = [type(value) for value in row]
    return types == [str, str, str, int] and row[3] >= 1
