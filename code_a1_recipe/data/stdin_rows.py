"""Rows of problems whose programs read standard input and print -> native columns; LiveCodeBench's packed tests.

A test is ``assert run(input) == output``, as ``sandbox`` reads it.
"""

import base64
import binascii
import json
import pickletools
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import msgspec

from sandbox import INPUT_ENTRY, Kind, Limits

from ..algorithm.question import parsed
from ..errors import RowError
from .asserts import asserts_of_pairs, callee_in
from .native_row import NativeRow, Row, json_of, list_of, text_of

MAX_ASSERT_CHARS = Limits().assert_chars
"""Longer tests are left out and counted: the judge's default refuses them."""
MAX_TEST_BYTES = 1 << 30
"""Of one problem's packed tests, unpacked."""
_PYTHON_3 = 3
"""In CodeContests' column ``language``."""
_MAX_BUGGY_PROGRAMS = 4
_TEXT_OPCODES = frozenset({"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})
_HARMLESS_OPCODES = frozenset({"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"})


class TestCase(msgspec.Struct, frozen=True):
    """One test of LiveCodeBench, as the file has it."""

    __test__ = False  # no class of pytest's

    input: str
    output: str
    testtype: Literal["stdin", "functional"]


def input_asserts(inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[list[str], int]:
    """Asserts of pairs of texts, or of lists of their lines; and how many pairs there were beside them.

    Example:
        >>> input_asserts(["3\\n", 4], ["6\\n", "8"])
        (["assert run('3\\\\n') == '6\\\\n'"], 1)
    """
    pairs = [(_text(given), _text(printed)) for given, printed in zip(inputs, outputs, strict=False)]
    texts = [f"assert {INPUT_ENTRY}({pair[0]!r}) == {pair[1]!r}" for pair in pairs if None not in pair]
    found = [text for text in dict.fromkeys(texts) if len(text) <= MAX_ASSERT_CHARS]
    return found, max(len(inputs), len(outputs)) - len(found)


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
    own = list(native.tests) if isinstance(native.tests, list | tuple) else []
    kind = row.get("kind") or Kind.STDIN
    return replace(native, tests=[*own, *tests], num_dropped_tests=num_dropped, kind=kind)


def from_codecontests(row: Row) -> NativeRow:
    """CodeContests: ``name, description, solutions, incorrect_solutions`` and three columns of tests.

    The reference is the first solution in Python 3. Public tests are golden, all others hidden; up to four incorrect
    solutions in Python 3 are buggy programs.
    """
    references = _python_3(row, "solutions")
    if not references:
        raise RowError("solutions", "holds none in Python 3 (language 3) that parses")
    golden, num_dropped = _tests(row, "public_tests")
    tests: list[str] = []
    for column in ("private_tests", "generated_tests"):
        found, dropped = _tests(row, column)
        tests, num_dropped = tests + found, num_dropped + dropped
    return NativeRow(
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


def _tests(row: Row, column: str) -> tuple[list[str], int]:
    value = row.get(column)
    if value is None:
        return [], 0
    if not isinstance(value, Mapping):
        raise RowError(column, f"must be a mapping of 'input' and 'output', got {type(value).__name__}")
    return input_asserts(value.get("input") or [], value.get("output") or [])


def _python_3(row: Row, column: str) -> list[str]:
    value = row.get(column)
    if not isinstance(value, Mapping):
        raise RowError(column, f"must be a mapping of 'language' and 'solution', got {type(value).__name__}")
    pairs = zip(value.get("language") or [], value.get("solution") or [], strict=False)
    return [text for language, text in pairs if language == _PYTHON_3 and isinstance(text, str) and is_python(text)]


def is_python(text: str) -> bool:
    """Whether it is a program that parses."""
    return bool(parsed(text).body)


def from_livecodebench(row: Row) -> NativeRow:
    """LiveCodeBench with a column ``reference``, which the set itself does not have; without it there is no oracle."""
    cases, kind = read_cases(row)
    reference = text_of(row, "reference")
    native = NativeRow(
        id=f"LiveCodeBench/{row.get('question_id')}",
        prompt=text_of(row, "question_content"),
        reference=reference,
        data_source="livecodebench",
    )
    if kind == "stdin":
        tests, num_dropped = input_asserts([one.input for one in cases], [one.output for one in cases])
        return replace(native, tests=tests, num_dropped_tests=num_dropped, kind=Kind.STDIN)
    metadata = json_of(row, "metadata")
    name = str(metadata.get("func_name") if isinstance(metadata, Mapping) else "")
    callee = callee_in(reference, name)
    if not callee:
        raise RowError("reference", f"must define {name!r}, which the tests call")
    tests, num_dropped = asserts_of_pairs(callee, *functional_values(cases))
    return replace(native, tests=tests, num_dropped_tests=num_dropped, entry_points=(callee.partition("(")[0],))


def functional_values(cases: Sequence[TestCase]) -> tuple[list[Any], list[Any]]:
    """Arguments and results of functional tests, from JSON; raises RowError where they are none."""
    try:
        given = [[json.loads(line) for line in one.input.split("\n")] for one in cases]
        return given, [json.loads(one.output) for one in cases]
    except (ValueError, RecursionError) as error:
        rule = f"a functional test must hold a JSON value a line and a JSON result: {error}"
        raise RowError("private_test_cases", rule) from error


def read_cases(row: Row) -> tuple[list[TestCase], str]:
    """Public and private tests of a row of LiveCodeBench, and their kind, "stdin" or "functional".

    Private tests are JSON, or a pickled JSON text, compressed and in base64. A pickle can run anything when it is
    unpickled, so this one is only read: it must hold one text and nothing else.

    Raises:
        RowError: a column holds something else.
    """
    cases: list[TestCase] = []
    for column in ("public_test_cases", "private_test_cases"):
        try:
            cases += msgspec.convert(_items(row, column), list[TestCase])
        except msgspec.ValidationError as error:
            rule = "must be a list of tests with texts 'input' and 'output' and a 'testtype', stdin or functional"
            raise RowError(column, f"{rule}; {error}") from error
    kinds = {case.testtype for case in cases}
    if len(kinds) != 1:
        raise RowError("private_test_cases", "the tests must be of one type, " + ("got both" if kinds else "got none"))
    return cases, kinds.pop()


def _items(row: Row, column: str) -> Any:
    value = row.get(column)
    if isinstance(value, str) and not value.lstrip().startswith(("[", "{")):
        value = _unpacked(value, column)
    return json_of({column: value}, column)


def _unpacked(text: str, column: str) -> str:
    try:
        stream = zlib.decompressobj()
        data = stream.decompress(base64.b64decode(text, validate=True), MAX_TEST_BYTES)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise RowError(column, f"must be JSON, or base64 of zlib of a pickled text: {error}") from error
    if not stream.eof:
        full = len(data) == MAX_TEST_BYTES
        raise RowError(column, f"holds more than {MAX_TEST_BYTES} bytes" if full else "is cut off")
    return read_pickled_text(data, column)


def read_pickled_text(data: bytes, column: str = "") -> str:
    """The one text that a pickle holds, without unpickling it.

    Raises:
        RowError: it holds something else.
    """
    texts: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in _TEXT_OPCODES and not texts:
                texts.append(str(argument))
            elif opcode.name not in _HARMLESS_OPCODES:
                raise RowError(column, f"must be a pickled text and nothing else, found {opcode.name}")
    except RowError:
        raise
    except ValueError as error:
        raise RowError(column, f"must be a pickled text: {str(error)[:80]}") from error
    if not texts:
        raise RowError(column, "must be a pickled text, found none")
    return texts[0]
