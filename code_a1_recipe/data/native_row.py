"""A row in native columns, and readers for the columns of any row: texts, lists, JSON and programs."""

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sandbox import Kind
from sandbox.text import DEFAULT_CHECKER, parse_untrusted

from ..algorithm.question import Question
from ..errors import PARSE_ERRORS, RowError

COLUMNS = tuple(column.name for column in fields(Question))
"""Native columns, which ``Question`` explains. Every row needs the first three columns."""
Row = Mapping[str, Any]
Asserts = tuple[list[str], int]
"""Tests in the form of asserts, and the number of tests that were left out."""
Columns = Mapping[str, str]
"""Maps native columns to the file's own column names."""


@dataclass(frozen=True, kw_only=True)
class NativeRow:
    """A row in native columns, before it is checked."""

    id: Any = None
    prompt: Any = None
    reference: Any = None
    entry_points: Any = ()
    prelude: Any = ""
    tests: Any = ()
    golden_tests: Any = ()
    buggy_programs: Any = ()
    data_source: Any = ""
    kind: Any = Kind.FUNCTIONS
    checker: Any = DEFAULT_CHECKER
    num_dropped_tests: int = 0
    """Number of the row's tests that cannot be written as ``assert f(literals) == literal``."""
    alternatives: tuple["NativeRow", ...] = ()
    """The same row with other solutions, or with other readings of its answers. The judge finds the right
    alternative."""


def json_of(row: Row, column: str) -> Any:
    """Return the JSON value in ``column``, decoded if it is a text. RowError: the column holds no JSON."""
    value: Any = row.get(column)
    if not isinstance(value, str):
        if not isinstance(value, list | Mapping):
            raise RowError(column, f"must be JSON, got {type(value).__name__}")
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise RowError(column, f"must be JSON: {str(error)[:80]}") from error


def text_of(row: Row, column: str) -> str:
    """Return the string in ``column``. RowError: the column holds no string."""
    value = row.get(column)
    if not isinstance(value, str):
        got = "nothing" if value is None else _described(value)
        raise RowError(column, f"must be a string, got {got}")
    return value


def list_of(row: Row, column: str) -> list[str]:
    """Return the list of strings in ``column``. RowError: the column holds something else."""
    items = row.get(column)
    if not isinstance(items, list | tuple):
        raise RowError(column, f"must be a list of strings, got {_described(items)}")
    for item in items:
        if not isinstance(item, str):
            raise RowError(column, f"must hold strings only, got {_described(item)}")
    return list(items)


def _described(value: object) -> str:
    return f"{type(value).__name__}: {str(value)[:60]!r}"


def parsed(row: Row, column: str) -> ast.Module:
    """Parse the Python source in ``column``. RowError: the source is not Python 3."""
    text = text_of(row, column)
    try:
        return parse_untrusted(text)
    except PARSE_ERRORS as error:
        raise RowError(column, f"must be Python 3, but does not parse: {error}") from error
