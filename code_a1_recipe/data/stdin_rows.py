"""Rows of problems whose programs read standard input and print -> native columns.

A test is ``assert run(input) == output``, as ``sandbox`` reads it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sandbox import Kind, Limits
from sandbox.text import INPUT_ENTRY

from ..algorithm.question import parsed
from ..errors import RowError
from .native_row import Asserts, NativeRow, Row, list_of, text_of

MAX_ASSERT_CHARS = Limits().assert_chars
"""Longer tests are left out and counted: the judge's default refuses them."""
_PYTHON_3 = 3
"""In CodeContests' column ``language``."""
_MAX_BUGGY_PROGRAMS = 4


def input_asserts(inputs: Sequence[Any], outputs: Sequence[Any]) -> Asserts:
    """Asserts of pairs of texts, or of lists of their lines; and how many pairs there were beside them.

    Example:
        >>> input_asserts(["3\\n", 4], ["6\\n", "8"])
        (["assert run('3\\\\n') == '6\\\\n'"], 1)
    """
    found: dict[str, None] = {}
    for pair in zip(inputs, outputs, strict=False):
        given, printed = map(_text, pair)
        text = f"assert {INPUT_ENTRY}({given!r}) == {printed!r}"
        if given is not None and printed is not None and len(text) <= MAX_ASSERT_CHARS:
            found[text] = None
    return list(found), max(len(inputs), len(outputs)) - len(found)


def _text(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    return value if isinstance(value, str) else None


def with_inputs(row: Row, native: NativeRow) -> NativeRow:
    """A native row's columns ``inputs`` and ``outputs`` as further tests; without a ``kind`` it is of ``stdin``."""
    given, printed = list_of(row, "inputs"), list_of({"outputs": [], **row}, "outputs")
    if len(given) != len(printed):
        rule = f"must be as many as the inputs, {len(given)}, got {len(printed)}; they are what the reference prints"
        raise RowError("outputs", rule)
    tests, num_dropped = input_asserts(given, printed)
    return replace(
        native,
        tests=[*list_of(vars(native), "tests"), *tests],
        num_dropped_tests=num_dropped,
        kind=row.get("kind") or Kind.STDIN,
    )


def from_codecontests(row: Row) -> NativeRow:
    """CodeContests: ``name, description, solutions, incorrect_solutions`` and three columns of tests.

    The reference is the first solution in Python 3; up to four others are alternatives. Public tests are golden, all
    others hidden; up to four incorrect solutions in Python 3 are buggy programs.
    """
    references = _python_3(row, "solutions")
    if not references:
        raise RowError("solutions", "holds none in Python 3 (language 3) that parses")
    golden, num_dropped = _tests(row, "public_tests")
    tests = []
    for column in ("private_tests", "generated_tests"):
        found, dropped = _tests(row, column)
        tests += found
        num_dropped += dropped
    native = NativeRow(
        id=row.get("name"),
        prompt=text_of(row, "description"),
        reference=references[0],
        tests=tests or golden,
        golden_tests=golden,
        buggy_programs=_python_3(row, "incorrect_solutions")[:_MAX_BUGGY_PROGRAMS],
        data_source="codecontests",
        num_dropped_tests=num_dropped,
        kind=Kind.STDIN,
    )
    return replace(native, alternatives=tuple(replace(native, reference=text) for text in references[1:5]))


def _tests(row: Row, column: str) -> Asserts:
    if row.get(column) is None:
        return [], 0
    return input_asserts(*_lists(row, column, "input", "output"))


def _lists(
    row: Row,
    column: str,
    first: str,
    second: str,
) -> tuple[Sequence[Any], Sequence[Any]]:
    value = row.get(column)
    if not isinstance(value, Mapping):
        raise RowError(column, f"must be a mapping of {first!r} and {second!r}, got {type(value).__name__}")
    return (
        value.get(first) or [],
        value.get(second) or [],
    )


def _python_3(row: Row, column: str) -> list[str]:
    pairs = zip(*_lists(row, column, "language", "solution"), strict=False)
    return [text for language, text in pairs if language == _PYTHON_3 and isinstance(text, str) and is_python(text)]


def is_python(text: str) -> bool:
    """Whether it is a program that parses."""
    return bool(parsed(text).body)
