"""A row in native columns, and how texts, lists, JSON and programs are read from the columns of any row."""

import ast
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox import Kind
from sandbox.text import DEFAULT_CHECKER

from ..errors import PARSE_ERRORS, RowError

Row = Mapping[str, Any]
Asserts = tuple[list[str], int]
"""Tests as asserts, and how many more there are that cannot be written as one."""
Columns = Mapping[str, str]
"""Native column -> column of a file."""


@dataclass(frozen=True, kw_only=True)
class NativeRow:
    """A row in native columns, not yet checked."""

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
    """Tests of the row that cannot be written as ``assert f(literals) == literal``."""
    alternatives: tuple["NativeRow", ...] = ()
    """The row with another of its solutions, or another reading of its answers: the judge says which one holds."""


def json_of(row: Row, column: str) -> Any:
    """The row's JSON in ``column``, as text or read already; RowError when it is none."""
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
    """The row's string in ``column``; RowError when it is something else."""
    value = row.get(column)
    if not isinstance(value, str):
        got = "nothing" if value is None else f"{type(value).__name__}: {str(value)[:60]!r}"
        raise RowError(column, f"must be a string, got {got}")
    return value


def list_of(row: Row, column: str) -> list[str]:
    """The row's list of strings in ``column``; RowError otherwise."""
    items = row.get(column)
    if not isinstance(items, list | tuple):
        raise RowError(column, f"must be a list of strings, got {type(items).__name__}: {str(items)[:60]!r}")
    if odd := [item for item in items if not isinstance(item, str)]:
        raise RowError(column, f"must hold strings only, got {type(odd[0]).__name__}: {str(odd[0])[:60]!r}")
    return list(items)


def parsed(row: Row, column: str) -> ast.Module:
    """The row's Python source in ``column``, parsed; RowError when it is not Python 3."""
    text = text_of(row, column)
    try:
        with warnings.catch_warnings(action="ignore"):  # the compiler's remarks on the style of others
            return ast.parse(text)
    except PARSE_ERRORS as error:
        raise RowError(column, f"must be Python 3, but does not parse: {error}") from error
