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
"""The native columns; see ``Question`` for their meaning. A row needs the first three."""
Row = Mapping[str, Any]
Asserts = tuple[list[str], int]
"""Tests as asserts, and the number of further tests that cannot be written as one."""
Columns = Mapping[str, str]
"""Columns of a file by native column."""


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
    """The row with other solutions, or with other readings of its answers. The judge decides between them."""


def json_of(row: Row, column: str) -> Any:
    """The row's JSON in ``column``, which may be a text or parsed already. RowError: it is no JSON."""
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
    """The row's string in ``column``. RowError: it is something else."""
    value = row.get(column)
    if not isinstance(value, str):
        got = "nothing" if value is None else f"{type(value).__name__}: {str(value)[:60]!r}"
        raise RowError(column, f"must be a string, got {got}")
    return value


def list_of(row: Row, column: str) -> list[str]:
    """The row's list of strings in ``column``. RowError: it is something else."""
    items = row.get(column)
    if not isinstance(items, list | tuple):
        raise RowError(column, f"must be a list of strings, got {type(items).__name__}: {str(items)[:60]!r}")
    if odd := [item for item in items if not isinstance(item, str)]:
        raise RowError(column, f"must hold strings only, got {type(odd[0]).__name__}: {str(odd[0])[:60]!r}")
    return list(items)


def parsed(row: Row, column: str) -> ast.Module:
    """The row's Python source in ``column``, parsed. RowError: it is not Python 3."""
    text = text_of(row, column)
    try:
        return parse_untrusted(text)
    except PARSE_ERRORS as error:
        raise RowError(column, f"must be Python 3, but does not parse: {error}") from error
