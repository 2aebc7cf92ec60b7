"""Readers of rows whose programs read standard input and print.

A test is ``assert run(input) == output``, where ``run`` returns the program's printed output for an input.
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
"""Largest length of a test. Tests above this length are left out and counted, because the judge refuses them by
default."""
_PYTHON_3 = 3
"""Value of the column ``language`` in CodeContests for Python 3."""
_MAX_OTHERS = 4
"""Largest number of alternatives, and of buggy programs, from a row of CodeContests."""


def input_asserts(inputs: Sequence[Any], outputs: Sequence[Any]) -> Asserts:
    """Write an assert for each pair of an input and an output. An input or output is a text, or a list of lines.

    Returns:
        The asserts, and the number of pairs without an assert. A pair without an assert is incomplete, too long or
        repeated.

    Example:
        >>> input_asserts(["3\\n", 4], ["6\\n", "8"])
        (["assert run('3\\\\n') == '6\\\\n'"], 1)
    """
    tests: dict[str, None] = {}
    for pair in zip(inputs, outputs, strict=False):
        given, printed = map(_text, pair)
        if given is None or printed is None:
            continue
        test = f"assert {INPUT_ENTRY}({given!r}) == {printed!r}"
        if len(test) <= MAX_ASSERT_CHARS:
            tests[test] = None
    return list(tests), max(len(inputs), len(outputs)) - len(tests)


def _text(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    return value if isinstance(value, str) else None


def with_inputs(row: Row, native: NativeRow) -> NativeRow:
    """Add the tests in the columns ``inputs`` and ``outputs``. A row without ``kind`` gets the kind "stdin"."""
    given = list_of(row, "inputs")
    printed = list_of({"outputs": [], **row}, "outputs")
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
    """Convert a row of CodeContests: ``name, description, solutions, incorrect_solutions``, three columns of tests.

    The reference is the first solution in Python 3, and up to four further solutions are alternatives. Public tests
    become golden tests, and all other tests become hidden tests. Up to four incorrect solutions in Python 3 become
    buggy programs.
    """
    references = _python_3(row, "solutions")
    if not references:
        raise RowError("solutions", "must hold a solution in Python 3 (language 3) that parses")
    reference, *others = references
    golden, num_dropped = _tests(row, "public_tests")
    hidden = []
    for column in ("private_tests", "generated_tests"):
        tests, dropped = _tests(row, column)
        hidden += tests
        num_dropped += dropped
    native = NativeRow(
        id=row.get("name"),
        prompt=text_of(row, "description"),
        reference=reference,
        tests=hidden or golden,
        golden_tests=golden,
        buggy_programs=_python_3(row, "incorrect_solutions")[:_MAX_OTHERS],
        data_source="codecontests",
        num_dropped_tests=num_dropped,
        kind=Kind.STDIN,
    )
    alternatives = [replace(native, reference=other) for other in others[:_MAX_OTHERS]]
    return replace(native, alternatives=tuple(alternatives))


def _tests(row: Row, column: str) -> Asserts:
    if row.get(column) is None:
        return [], 0
    return input_asserts(*_lists(row, column, "input", "output"))


def _lists(row: Row, column: str, first: str, second: str) -> tuple[Sequence[Any], Sequence[Any]]:
    value = row.get(column)
    if not isinstance(value, Mapping):
        raise RowError(column, f"must be a mapping of {first!r} and {second!r}, got {type(value).__name__}")
    return value.get(first) or [], value.get(second) or []


def _python_3(row: Row, column: str) -> list[str]:
    languages, solutions = _lists(row, column, "language", "solution")
    programs = []
    for language, text in zip(languages, solutions, strict=False):
        if language == _PYTHON_3 and isinstance(text, str) and is_python(text):
            programs.append(text)
    return programs


def is_python(text: str) -> bool:
    """Whether the text is a program in Python 3."""
    return bool(parsed(text).body)
