"""Conversion of dataset files to questions. Each row is checked."""

import ast
import functools
import gzip
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from reward_fns.lookup import lookup
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
"""Columns that may have another name. The last two become ``tests`` of programs that read standard input."""
_CALLABLES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BATCH_ROWS = 1024
"""Rows of a parquet file in memory at a time."""

_CURES = {
    "id": "give every row its own id; the Mistake Book is kept by it",
    "prompt": "put the problem statement there, as text; chat templates are applied later",
    "reference": "put a correct solution there: it is the oracle of every test; without one, `oracle: listed` lets "
    "the listed outputs judge the Code LLM alone",
    "entry_points": "list the names a test must call, or leave it empty for those that its tests call",
    "outputs": "give a list of texts, one for each of the inputs",
}


@dataclass(frozen=True, kw_only=True)
class QuestionFile:
    """The questions of a file, with the number of tests that were lost."""

    questions: tuple[Question, ...]
    adapter: str
    num_dropped_tests: int
    """Tests that cannot be written as ``assert f(literals) == literal``."""


@dataclass(frozen=True, kw_only=True)
class RowReader:
    """Conversion of a file's rows to native rows."""

    adapter: str
    """A name in ``formats.ADAPTERS``."""
    columns: Columns | None = None
    """Columns of the file by native column, applied before the adapter. None: no column has another name."""

    def native(self, row: Row) -> NativeRow:
        """The row in native columns, not yet checked. RowError: its adapter cannot read it."""
        return ADAPTERS[self.adapter].convert(_renamed(row, self.columns) if self.columns else row)


def load_questions(path: str | Path, *, adapter: str = "auto", columns: Columns | None = None) -> list[Question]:
    """The questions of a file; see :func:`read_questions`. Their counts are logged."""
    loaded = read_questions(path, adapter=adapter, columns=columns)
    counts = f"questions={len(loaded.questions)} dropped_tests={loaded.num_dropped_tests}"
    logger.info("file=%s adapter=%s %s", path, loaded.adapter, counts)
    return list(loaded.questions)


def read_questions(path: str | Path, *, adapter: str = "auto", columns: Columns | None = None) -> QuestionFile:
    """Load a file of questions. A file that was read before and has not changed is not read again.

    Args:
        path: the file. Its name must end in ``.parquet``, ``.jsonl`` or ``.json``; the last two also with ``.gz``.
        adapter: a name in ``formats.ADAPTERS``, or "auto" for the first adapter whose columns are all in the file.
        columns: columns of the file by native column, for the native adapter. A dot leads into a nested column
            (``{"reference": "reward_model.ground_truth"}``). If the file has the native columns and none of these,
            they are ignored: training and held-out files may have different columns.

    Returns:
        Questions in the order of the file.

    Raises:
        InputError: the file cannot be read, or a row breaks a rule.
        ValueError: unknown adapter or native column.
    """
    path = Path(path)
    if not path.is_file():
        next(iter_rows(path))  # raises an error with the reason
    state = path.stat()
    named = tuple((columns or {}).items())
    return _read_once(path.absolute(), adapter, named, state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=8)
def _read_once(path: Path, adapter: str, columns: tuple[tuple[str, str], ...], mtime: int, size: int) -> QuestionFile:
    """Read a file. A run needs it before and after its start, and a million rows take minutes each time."""
    del mtime, size  # part of the cache's key: a changed file is read again
    rows = list(iter_rows(path))
    if not rows:
        raise InputError(f"{path}: no rows; a dataset needs at least one")
    reader = row_reader(columns_of(rows), where=path, adapter=adapter, columns=dict(columns))
    row_of_id: dict[str, int] = {}

    def read(row: Row) -> tuple[Question, int]:
        native = reader.native(row)
        question = check_row(native)
        if question.id in row_of_id:
            raise RowError("id", f"must be unique, but {question.id!r} is that of row {row_of_id[question.id]} too")
        row_of_id[question.id] = len(row_of_id)
        return question, native.num_dropped_tests

    questions, dropped = zip(*read_each(rows, read, where=path), strict=True)
    return QuestionFile(questions=questions, adapter=reader.adapter, num_dropped_tests=sum(dropped))


def question_table(files: Sequence[Path], *, adapter: str = "auto", columns: Columns | None = None) -> QuestionTable:
    """Questions of all files by id.

    Raises:
        InputError: a file cannot be read, a row breaks a rule, or an id stands for two different questions.
    """
    table: QuestionTable = {}
    for path in files:
        for question in load_questions(path, adapter=adapter, columns=columns):
            if table.setdefault(question.id, question) != question:
                raise InputError(
                    f"{path}: id {question.id!r} stands for another question in an earlier file; questions are known "
                    "by their ids, which must be unique over all files"
                )
    return table


def check_row(row: NativeRow) -> Question:
    """Check a row and make it a question. RowError: a column breaks a rule."""
    if type(row.id) not in (str, int) or row.id == "":
        raise RowError("id", f"must be a string that is not empty, or an integer, got {row.id!r}")
    columns = vars(row)
    kind, checker = _kind_of(columns)
    if empty := [name for name in ("prompt", "reference") if not text_of(columns, name).strip()]:
        raise RowError(empty[0], "must not be empty")
    program, _ = parsed(columns, "reference"), parsed(columns, "prelude")
    names = list(definitions(row.reference))
    callable_names = [*names, *definitions(row.prelude)]
    tests, golden_tests, buggy_programs, entry_points = (
        tuple(list_of(columns, name)) for name in ("tests", "golden_tests", "buggy_programs", "entry_points")
    )
    if kind == Kind.STDIN:
        names = callable_names = [INPUT_ENTRY]  # its tests call no function that it defines
    elif not entry_points:  # names that the tests call, since a program need not have the reference's helpers
        called = {name for text in tests + golden_tests for name in called_names(text)}
        entry_points = tuple(name for name in names if name in called)
    if kind != Kind.STDIN and not entry_points and not any(isinstance(node, _CALLABLES) for node in program.body):
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
    """Choose how a file is read. The other arguments and the errors are those of :func:`read_questions`.

    Args:
        there: names of all columns of the file.
        where: the file's name in messages.
    """
    if columns and (unknown := sorted(set(columns) - set(_READABLE))):
        raise ValueError(f"unknown native columns {unknown}; known: {', '.join(_READABLE)}")
    named = {column.split(".")[0] for native, column in (columns or {}).items() if column != native}
    if named and named.isdisjoint(there) and ADAPTERS["native"].needs <= there:
        logger.warning("%s has no column %r: its own native columns are read", where, min(named))
        columns = None
    if columns:
        there = {native for native in _READABLE if columns.get(native, native).split(".")[0] in there}
        adapter = "native" if adapter == "auto" else adapter
    name = _detect(there, where) if adapter == "auto" else adapter
    missing = sorted(lookup(name, ADAPTERS, what="dataset adapter").needs - there)
    if missing:
        raise InputError(
            f"{where}: the {name!r} adapter needs the columns {missing}, the file has {sorted(there)}; name "
            f"them with columns={{native: yours}}, or choose another adapter: {', '.join(ADAPTERS)}"
        )
    return RowReader(adapter=name, columns=columns)


def _detect(there: Set[str], where: str | Path) -> str:
    """The first adapter whose columns are all there."""
    for name, known in ADAPTERS.items():
        if known.needs <= there:
            return name
    shares = {name: len(known.needs & there) / len(known.needs) for name, known in ADAPTERS.items()}
    nearest = max(shares, key=shares.__getitem__)
    lacks = sorted(ADAPTERS[nearest].needs - there)
    looked_for = "; ".join(f"{name}: {known.columns}" for name, known in ADAPTERS.items())
    raise InputError(
        f"{where}: no adapter knows these columns: {sorted(there)}. The nearest is {nearest!r}, which lacks {lacks}. "
        f"Say which of yours are the native ones, columns={{native: yours}} (at least id, prompt and reference), or "
        f"rename them. Looked for: {looked_for}"
    )


def columns_of(rows: Iterable[Row]) -> set[str]:
    """Names of the columns of all rows. A row need not have all of them."""
    return {name for row in rows for name in row}


def _renamed(row: Row, columns: Columns) -> Row:
    """The row with native names of its columns. Columns that it does not have, or that are null, are left out."""
    renamed = {}
    for native in _READABLE:
        value: Any = row
        for name in columns.get(native, native).split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            renamed[native] = value
    return renamed


def read_each(rows: Iterable[Row], read: Callable[[Row], Read], *, where: Path, hint: str = "") -> Iterator[Read]:
    """Call ``read`` with each row of the file ``where``, and give its results.

    Raises:
        InputError: ``read`` raised a RowError. The message names the row and ends with ``hint``, or a hint for its
            column.
    """
    for index, row in enumerate(rows):
        try:
            yield read(row)
        except RowError as error:
            cure = hint or _CURES.get(error.column, "correct the row or remove it")
            raise InputError(f"{where}: row {index}, column {error.column!r}: {error.rule}; {cure}") from error


def iter_rows(path: Path) -> Iterator[Row]:
    """The rows of a ``.parquet``, ``.jsonl`` or ``.json`` file as dictionaries; the last two also with ``.gz``.

    Files may have gigabytes, so JSON lines are read one by one, and parquet in batches. A JSON array is read whole.

    Raises:
        InputError: the file cannot be read, or a row is no JSON object.
    """
    name = path.name.removesuffix(".gz")
    if not name.endswith((".parquet", ".jsonl", ".json")):
        raise InputError(f"{path}: must end in .parquet, .jsonl or .json (the last two also with .gz)")
    try:
        if name.endswith(".parquet"):
            import pyarrow.parquet  # slow to import, and only this format needs it

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
    """The rows of a JSON array or of JSON lines. The content decides, since either may be in a file of either name."""
    is_array = next((line for line in handle if line.strip()), "").lstrip().startswith("[")
    handle.seek(0)
    if is_array:
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
