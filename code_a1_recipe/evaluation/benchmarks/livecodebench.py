"""LiveCodeBench's problems as tasks for a Code LLM, from files of ``livecodebench/code_generation_lite`` as they are.

A row's private tests are JSON, or a pickled JSON text, compressed and in base64. A pickle can run anything when it is
unpickled, so this one is only read: it must hold one text and nothing else.
"""

import base64
import binascii
import json
import pickletools
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from sandbox import Runner, SandboxUnavailableError

from ...data.formats import Row, json_of, text_of
from ...data.reader import iter_rows, read_each
from ...errors import RowError
from ...jobs.progress import watched
from ..scoring.livecodebench_judge import TestCase, judge_cases
from .tasks import CodeTask, CodeVerdict, grade_each

COLUMNS = frozenset(
    {"question_id", "question_content", "starter_code", "public_test_cases", "private_test_cases", "metadata"}
)
"""Columns that must all exist; they also recognise the benchmark."""
MOST_TEST_BYTES = 1 << 30
"""Of one problem's private tests, unpacked."""
_CURE = "take the file as livecodebench/code_generation_lite has it, or remove the row"
_TEXT_OPCODES = frozenset({"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})
_HARMLESS_OPCODES = frozenset({"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"})


class _TypedCase(msgspec.Struct):
    input: str
    output: str
    testtype: Literal["stdin", "functional"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCodeBenchGrading:
    """The tests of one problem. They stay packed until it is graded: those of all problems are gigabytes."""

    row: Row
    """Its columns with the tests."""
    function: str
    """What functional tests call; empty where programs read standard input."""
    runner: Runner

    def grade(self, programs: Sequence[str]) -> list[CodeVerdict | SandboxUnavailableError]:
        """As ``tasks.Grading``."""
        cases, _ = read_cases(self.row)
        return grade_each(programs, partial(judge_cases, cases=cases, function=self.function, runner=self.runner))


def livecodebench_tasks(
    path: Path, runner: Runner, *, since: date | None = None, until: date | None = None
) -> tuple[list[CodeTask], int]:
    """The problems of a file whose contest was from ``since`` to ``until``, both included; how many others there are.

    Raises:
        InputError: the file cannot be read, or a row breaks a rule.
    """

    def read(row: Row) -> CodeTask | None:
        return _read_task(row, runner) if _is_within(row, since, until) else None

    rows = watched(iter_rows(path), total=None, what=f"read {path.name}", unit="problem")
    found = list(read_each(rows, read, where=path, hint=_CURE))
    tasks = [task for task in found if task]
    return tasks, len(found) - len(tasks)


def read_cases(row: Row) -> tuple[list[TestCase], str]:
    """Public and private tests of a row, and their kind, "stdin" or "functional".

    Raises:
        RowError: a column holds something else.
    """
    cases: list[_TypedCase] = []
    for column in ("public_test_cases", "private_test_cases"):
        try:
            cases += msgspec.convert(_items(row, column), list[_TypedCase])
        except msgspec.ValidationError as error:
            rule = "must be a list of tests with texts 'input' and 'output' and a 'testtype', stdin or functional"
            raise RowError(column, f"{rule}: {error}") from error
    kinds = {case.testtype for case in cases}
    if len(kinds) != 1:
        raise RowError("private_test_cases", "the tests must be of one type, " + ("got both" if kinds else "got none"))
    return [TestCase(input=case.input, output=case.output) for case in cases], kinds.pop()


def _items(row: Row, column: str) -> Any:
    value = row.get(column)
    if isinstance(value, str) and not value.lstrip().startswith(("[", "{")):
        value = _unpacked(value, column)
    return json_of({column: value}, column)


def _unpacked(text: str, column: str) -> str:
    try:
        stream = zlib.decompressobj()
        data = stream.decompress(base64.b64decode(text, validate=True), MOST_TEST_BYTES)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise RowError(column, f"must be JSON, or base64 of zlib of a pickled text: {error}") from error
    if not stream.eof:
        full = len(data) == MOST_TEST_BYTES
        raise RowError(column, f"holds more than {MOST_TEST_BYTES} bytes" if full else "is cut off")
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


def _read_task(row: Row, runner: Runner) -> CodeTask:
    name = row.get("question_id")
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise RowError("question_id", f"must be a text or an integer, got {name!r}")
    cases, kind = read_cases(row)
    function = _function(row) if kind == "functional" else ""
    if function:
        _check_values(cases)
    difficulty = row.get("difficulty")
    return CodeTask(
        id=f"LiveCodeBench/{name}",
        data_source=f"LiveCodeBench {difficulty}" if difficulty else "LiveCodeBench",
        prompt=_prompt(text_of(row, "question_content"), text_of(row, "starter_code"), reads_input=not function),
        grading=LiveCodeBenchGrading(
            row={column: row[column] for column in ("public_test_cases", "private_test_cases")},
            function=function,
            runner=runner,
        ),
    )


def _function(row: Row) -> str:
    metadata = json_of(row, "metadata")
    name = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not name.isidentifier():
        raise RowError("metadata", f"must name the function of functional tests as 'func_name', got {name!r}")
    return name


def _check_values(cases: Sequence[TestCase]) -> None:
    for number, case in enumerate(cases):
        try:
            for line in case.input.split("\n"):
                json.loads(line)
            json.loads(case.output)
        except (ValueError, RecursionError) as error:
            # Which of the two columns holds it does not matter for the cure.
            rule = f"test {number}: a functional test must hold a JSON value a line and a JSON result: {error}"
            raise RowError("private_test_cases", rule) from error


def _prompt(content: str, starter: str, *, reads_input: bool) -> str:
    if starter.strip():
        return f"{content.rstrip()}\n\nComplete this code:\n```python\n{starter.rstrip()}\n```"
    if reads_input:
        return f"{content.rstrip()}\n\nWrite a whole program that reads standard input and prints the answer."
    return content


def _is_within(row: Row, since: date | None, until: date | None) -> bool:
    if since is None and until is None:
        return True
    text = str(row.get("contest_date"))[:10]  # of a text in ISO form as of a timestamp of parquet
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise RowError("contest_date", f"must begin with YYYY-MM-DD to choose by date, got {text!r}") from error
    return (since is None or since <= day) and (until is None or day <= until)
