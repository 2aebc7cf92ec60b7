"""Reading of dataset files. Every row is checked and becomes a question."""

import ast
import functools
import gzip
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from reward_fns import lookup
from sandbox import Kind, SandboxConfigError
from sandbox.text import INPUT_ENTRY, comparison

from ..algorithm.question import Question, definitions
from ..errors import InputError, RowError
from .asserts import called_names
from .formats import ADAPTERS
from .native_row import COLUMNS as COLUMNS, Columns, NativeRow, Row, list_of, parsed, text_of

Read = TypeVar("Read")
QuestionTable = dict[str, Question]
logger = logging.getLogger(__name__)

_READABLE = (*COLUMNS, "inputs", "outputs")
"""Columns for which a file may use other names. ``inputs`` and ``outputs`` become the ``tests`` of a stdin program."""
_CALLABLES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BATCH_ROWS = 1024
"""Number of rows of a parquet file that are in memory at a time."""

_CURES = {
    "id": "give every row its own id, by which the Mistake Book finds the cases of a question",
    "prompt": "put the problem statement into it, as text; chat templates are applied later",
    "reference": "put a correct solution into it, which is the oracle of every test; without a solution, set "
    "`oracle: listed`, and the listed outputs judge the programs of the Code LLM",
    "entry_points": "list the names that a test must call; without a list, they are those that the row's tests call",
    "outputs": "give a list of texts, one for each input",
}


@dataclass(frozen=True, kw_only=True)
class QuestionFile:
    """The questions of a file, and the number of tests that were left out."""

    questions: tuple[Question, ...]
    adapter: str
    num_dropped_tests: int
    """Number of tests that cannot be written as ``assert f(literals) == literal``."""


@dataclass(frozen=True, kw_only=True)
class RowReader:
    """Converter of a file's rows to native rows."""

    adapter: str
    """A name in ``formats.ADAPTERS``."""
    columns: Columns | None = None
    """Maps native columns to the file's own column names. Columns are renamed before the adapter reads a row."""

    def native(self, row: Row) -> NativeRow:
        """Convert a row to native columns, without checks. RowError: the adapter cannot read the row."""
        if self.columns:
            row = _renamed(row, self.columns)
        return ADAPTERS[self.adapter].convert(row)


def load_questions(path: str | Path, *, adapter: str = "auto", columns: Columns | None = None) -> list[Question]:
    """Read the questions of a file as :func:`read_questions` does, and log their number."""
    loaded = read_questions(path, adapter=adapter, columns=columns)
    counts = f"questions={len(loaded.questions)} dropped_tests={loaded.num_dropped_tests}"
    logger.info("file=%s adapter=%s %s", path, loaded.adapter, counts)
    return list(loaded.questions)


def read_questions(path: str | Path, *, adapter: str = "auto", columns: Columns | None = None) -> QuestionFile:
    """Read a file of questions. A file that has not changed since its last reading comes from a cache.

    Args:
        path: the file. The file's name must end in ``.parquet``, ``.jsonl``, ``.json``, ``.jsonl.gz`` or ``.json.gz``.
        adapter: a name in ``formats.ADAPTERS``, or "auto" for the first adapter whose columns are all in the file.
        columns: maps native columns to the file's own column names, for the native adapter. A dot leads into a nested
            column (``{"reference": "reward_model.ground_truth"}``). The mapping is ignored if the file has the native
            columns and none of the mapped ones. So training and held-out files may have different columns.
    Returns:
        Questions in the order of the file.

    Raises:
        InputError: the file cannot be read, or a row breaks a rule.
        ValueError: the adapter or a native column is unknown.
    """
    path = Path(path)
    if not path.is_file():
        next(iter_rows(path))  # raises InputError with the reason
    state = path.stat()
    named = tuple((columns or {}).items())
    return _read_once(path.absolute(), adapter, named, state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=8)
def _read_once(path: Path, adapter: str, columns: tuple[tuple[str, str], ...], mtime: int, size: int) -> QuestionFile:
    """Read a file. A run needs its questions twice, and reading a million rows takes minutes."""
    del mtime, size  # The cache's key contains time and size, so a changed file is read again.
    rows = list(iter_rows(path))
    if not rows:
        raise InputError(f"{path}: no rows; a dataset needs at least one")
    reader = row_reader(columns_of(rows), where=path, adapter=adapter, columns=dict(columns))
    row_of_id: dict[str, int] = {}

    def read(row: Row) -> tuple[Question, int]:
        native = reader.native(row)
        question = check_row(native)
        if (earlier := row_of_id.get(question.id)) is not None:
            raise RowError("id", f"must be unique, but row {earlier} has the id {question.id!r} too")
        row_of_id[question.id] = len(row_of_id)
        return question, native.num_dropped_tests

    questions, dropped = zip(*read_each(rows, read, where=path), strict=True)
    return QuestionFile(questions=questions, adapter=reader.adapter, num_dropped_tests=sum(dropped))


def question_table(files: Sequence[Path], *, adapter: str = "auto", columns: Columns | None = None) -> QuestionTable:
    """Read the questions of all files into one table by id.

    Raises:
        InputError: a file cannot be read, a row breaks a rule, or two different questions have the same id.
    """
    table: QuestionTable = {}
    for path in files:
        for question in load_questions(path, adapter=adapter, columns=columns):
            if table.setdefault(question.id, question) != question:
                raise InputError(
                    f"{path}: id {question.id!r} belongs to another question in an earlier file; give every question "
                    "an id that is unique over all files"
                )
    return table


def check_row(row: NativeRow) -> Question:
    """Check a row and convert it to a question. RowError: a column breaks a rule."""
    if type(row.id) not in (str, int) or row.id == "":
        raise RowError("id", f"must be a string that is not empty, or an integer, got {row.id!r}")
    columns = vars(row)
    kind, checker = _kind_of(columns)
    for name in ("prompt", "reference"):
        if not text_of(columns, name).strip():
            raise RowError(name, "must not be empty")
    program = parsed(columns, "reference")
    parsed(columns, "prelude")  # raises RowError if the prelude is not Python
    names = list(definitions(row.reference))
    callable_names = [*names, *definitions(row.prelude)]
    tests, golden_tests, buggy_programs, entry_points = (
        tuple(list_of(columns, name)) for name in ("tests", "golden_tests", "buggy_programs", "entry_points")
    )
    if kind == Kind.STDIN:
        names = callable_names = [INPUT_ENTRY]  # A stdin test calls ``run``, which no reference defines.
    elif not entry_points:  # Helpers of the reference are left out, because other programs may lack them.
        called = {name for text in tests + golden_tests for name in called_names(text)}
        entry_points = tuple(name for name in names if name in called)
    defines_callable = any(isinstance(node, _CALLABLES) for node in program.body)
    if kind != Kind.STDIN and not entry_points and not defines_callable:
        rule = "must define a function or a class at top level, or read standard input (`inputs`, or `kind: stdin`)"
        raise RowError("reference", rule)
    if unknown := [name for name in entry_points if name.split(".")[0] not in callable_names]:
        raise RowError("entry_points", f"must be names that the reference defines ({names}), got {unknown}")
    return Question(
        id=str(row.id),
        prompt=row.prompt,
        reference=row.reference,
        entry_points=entry_points,
        prelude=row.prelude,
        data_source=text_of(columns, "data_source"),
        tests=tests,
        golden_tests=golden_tests,
        buggy_programs=buggy_programs,
        kind=kind,
        checker=checker,
    )


def _kind_of(columns: Mapping[str, Any]) -> tuple[str, str]:
    kind, checker = text_of(columns, "kind"), text_of(columns, "checker")
    if kind not in list(Kind):
        raise RowError("kind", f"must be one of {', '.join(Kind)}, got {kind!r}")
    try:
        comparison(kind, checker)
    except SandboxConfigError as error:
        raise RowError("checker", str(error)) from error
    return kind, checker


def row_reader(
    there: Set[str], *, where: str | Path, adapter: str = "auto", columns: Columns | None = None
) -> RowReader:
    """Choose the reader of a file's rows.

    ``read_questions`` describes the parameters and errors that have no description here.

    Args:
        there: names of all columns of the file.
        where: name of the file in messages.
        adapter: see :func:`read_questions`.
        columns: see :func:`read_questions`.
    """
    if columns and (unknown := sorted(set(columns) - set(_READABLE))):
        raise ValueError(f"unknown native columns {unknown}; known: {', '.join(_READABLE)}")
    named = {column.split(".")[0] for native, column in (columns or {}).items() if column != native}
    if named and named.isdisjoint(there) and ADAPTERS["native"].needs <= there:
        logger.warning("%s has no column %r, so its native columns are read", where, min(named))
        columns = None
    if columns:
        there = {native for native in _READABLE if columns.get(native, native).split(".")[0] in there}
        adapter = "native" if adapter == "auto" else adapter
    name = _detect(there, where) if adapter == "auto" else adapter
    missing = sorted(lookup(name, ADAPTERS, what="dataset adapter").needs - there)
    if missing:
        raise InputError(
            f"{where}: the {name!r} adapter needs the columns {missing}, the file has {sorted(there)}; map your "
            f"columns with columns={{native: yours}}, or choose another adapter: {', '.join(ADAPTERS)}"
        )
    return RowReader(adapter=name, columns=columns)


def _detect(there: Set[str], where: str | Path) -> str:
    """Return the first adapter whose columns are all in the file."""
    shares = {}
    for name, known in ADAPTERS.items():
        shares[name] = len(known.needs & there) / len(known.needs)
        if shares[name] == 1:
            return name
    nearest = max(shares, key=shares.__getitem__)
    lacks = sorted(ADAPTERS[nearest].needs - there)
    known_columns = "; ".join(f"{name}: {known.columns}" for name, known in ADAPTERS.items())
    raise InputError(
        f"{where}: no adapter knows these columns: {sorted(there)}. The nearest is {nearest!r}, which also needs "
        f"{lacks}. Map your columns to the native ones with columns={{native: yours}} (at least id, prompt and "
        f"reference), or rename them. The columns of each adapter: {known_columns}"
    )


def columns_of(rows: Iterable[Row]) -> set[str]:
    """Collect the names of all columns. A row may lack some of these columns."""
    return {name for row in rows for name in row}


def _renamed(row: Row, columns: Columns) -> Row:
    """Rename the columns of a row to native names. Missing columns and null values are left out."""
    renamed = {}
    for native in _READABLE:
        value: Any = row
        for name in columns.get(native, native).split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            renamed[native] = value
    return renamed


def read_each(rows: Iterable[Row], read: Callable[[Row], Read], *, where: Path, hint: str = "") -> Iterator[Read]:
    """Call ``read`` with each row of the file ``where``, and yield the results.

    Raises:
        InputError: ``read`` raised a RowError. The message has the row's number and ends with ``hint``, or else with a
            hint for the column.
    """
    for index, row in enumerate(rows):
        try:
            yield read(row)
        except RowError as error:
            cure = hint or _CURES.get(error.column, "correct the row or remove it")
            raise InputError(f"{where}: row {index}, column {error.column!r}: {error.rule}; {cure}") from error


def iter_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a ``.parquet``, ``.jsonl`` or ``.json`` file as dictionaries.

    JSON files may also be gzipped (``.gz``). A file may have gigabytes, so JSON lines are read one by one, and parquet
    in batches. A JSON array is read whole.

    Raises:
        InputError: the file cannot be read, or a row is not a JSON object.
    """
    name = path.name.removesuffix(".gz")
    if not name.endswith((".parquet", ".jsonl", ".json")):
        raise InputError(f"{path}: must end in .parquet, .jsonl or .json (the last two also with .gz)")
    try:
        if name.endswith(".parquet"):
            import pyarrow.parquet  # pyarrow is slow to import, and only parquet needs it

            with pyarrow.parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(_BATCH_ROWS):
                    yield from batch.to_pylist()
        else:
            opener = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rt", encoding="utf-8-sig", newline="\n") as handle:
                yield from _json_rows(handle, path)
    except InputError:
        raise
    except (OSError, EOFError, ValueError) as error:  # pyarrow's errors are OSErrors and ValueErrors
        raise InputError(f"{path}: cannot be read: {error}") from error


def _json_rows(handle: IO[str], path: Path) -> Iterator[Row]:
    """Yield the rows of a JSON array or of JSON lines. The file's content shows whether it is an array or lines."""
    first_line = next((line for line in handle if line.strip()), "")
    handle.seek(0)
    if first_line.lstrip().startswith("["):
        for index, value in enumerate(_parsed_json(handle.read(), f"{path}:")):
            yield _json_object(value, f"{path}: row {index}")
        return
    for number, line in enumerate(handle, 1):
        place = f"{path}: line {number}"
        if line.strip():
            yield _json_object(_parsed_json(line, place), place)


def _json_object(value: Any, place: str) -> Row:
    if not isinstance(value, dict):
        raise InputError(f"{place} must be a JSON object, got {type(value).__name__}")
    return value


def _parsed_json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{place} is not JSON: {error}") from error
