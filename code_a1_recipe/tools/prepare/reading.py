"""Reads files, and data sets of the hub, as questions. An unusable row is dropped with a reason."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

from ...algorithm.question import Question
from ...data.hub import hub_splits
from ...data.native_row import Columns, NativeRow, Row
from ...data.reader import RowReader, check_row, columns_of, iter_rows, row_reader
from ...errors import InputError, RowError
from ...files import file_digest, fingerprint
from ...jobs.progress import Progress
from .rows import Dropped, Entry, Reason, Stage

FILE_ENDINGS = (".parquet", ".jsonl", ".json", ".jsonl.gz", ".json.gz")
_ID_COLUMNS = ("id", "question_id", "task_id", "problem_id")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_RULE_END = re.compile(r"[:;] | \(|, but |,? got | of \d")
_DETAIL_CHARACTERS = 300


@dataclass(frozen=True, kw_only=True)
class Source:
    """One set of rows and the reader of its columns."""

    name: str
    """The name that the user gave: a path, or an id of the hub."""
    files: Sequence[Path]
    """The files that hold the rows. The files of a data set from the hub lie in a cache on this machine."""
    rows: Callable[[], Iterable[Row]]
    """Returns all rows in order, and holds only a few rows in memory at a time. Iteration raises InputError if a file
    is damaged."""
    reader: RowReader

    @property
    def stem(self) -> str:
        """A short name, such as ``kodcode`` for ``data/kodcode.jsonl.gz``."""
        name = self.name.replace(":", "-").rstrip("/").rpartition("/")[2]
        return re.sub(r"(\.parquet|\.jsonl?)?(\.gz)?$", "", name) or "data"

    def fingerprint(self) -> str:
        """Hash the content of all files to 16 hexadecimal digits."""
        return fingerprint(*map(file_digest, self.files))


# ------------------------------ sources ------------------------------


def open_sources(
    names: Iterable[str], *, adapter: str = "auto", columns: Columns, is_evaluation: bool = False
) -> list[Source]:
    """Open each named source once, and choose the reader of its columns. Rows are not checked yet.

    Args:
        names: paths or ids of the hub, see :func:`rows_of`.
        adapter: a name in ``formats.ADAPTERS``, or "auto".
        columns: native column -> column of the files. For evaluation sets, ``columns`` applies only to files that no
            adapter recognizes.
        is_evaluation: True for evaluation sets, which need only the column of the prompt.

    Raises:
        InputError: a source cannot be read, has no rows, or lacks columns that its adapter needs.
    """
    sources = []
    for name in dict.fromkeys(names):
        files, rows = rows_of(name)
        file_columns = columns_of(rows())
        if not file_columns:
            raise InputError(f"{name}: no rows; a data set needs at least one")
        try:
            reader = row_reader(file_columns, where=name, adapter=adapter, columns=None if is_evaluation else columns)
        except InputError as error:
            if not is_evaluation:
                hint = "Name its columns: --columns id=COLUMN --columns prompt=COLUMN ..."
                raise InputError(f"{error}. {hint}") from error
            if columns.get("prompt", "prompt").split(".")[0] not in file_columns:
                hint = "For an evaluation set, the prompt is enough: --against-columns prompt=COLUMN"
                raise InputError(f"{error}. {hint}") from error
            reader = RowReader(adapter="native", columns=columns)
        sources.append(Source(name=name, files=files, rows=rows, reader=reader))
    return sources


def rows_of(name: str) -> tuple[Sequence[Path], Callable[[], Iterable[Row]]]:
    """Find the files of a source, and make a function that reads their rows.

    Args:
        name: a parquet, JSON or JSON-lines file; JSON and JSON-lines files may end in ``.gz``. If no such path exists,
            the name stands for a data set of the hub: ``org/name`` or ``org/name:split``.

    Raises:
        InputError: there is no such source, or it cannot be read.
    """
    path = Path(name)
    if path.is_file():
        return [path], lambda: iter_rows(path)
    if path.is_dir():
        raise InputError(f"{name} is a folder; name its files, such as {path / '*.parquet'}")
    place, _, split = name.partition(":")
    if not _HUB_ID.fullmatch(place) or name.endswith(FILE_ENDINGS):
        raise InputError(
            f"{name}: no such file (relative paths start at {Path.cwd()}), and not the id of a data set on the hub; "
            "an id has the form org/name or org/name:split"
        )
    loaded = hub_splits(place)
    splits = sorted(map(str, loaded))
    if not split and len(splits) == 1:
        split = splits[0]
    if split not in splits:
        shown = ", ".join(f"{place}:{known}" for known in splits)
        raise InputError(f"{name}: has several splits, which must not be mixed; name one of {shown}")
    rows = loaded[split]
    return [Path(file["filename"]) for file in rows.cache_files], lambda: rows


# ------------------------------ rows ------------------------------


def read_inputs(sources: Sequence[Source], *, limit: int | None = None) -> Stage:
    """Read the first ``limit`` rows of each source as questions, in order. Rows that break a rule are dropped."""
    source_of_id: dict[str, Source] = {}
    for source in sources:
        for number, row in enumerate(islice(source.rows(), limit)):
            try:
                native = _native(source.reader, row)
                question, *others = [
                    _question(reading, source, source_of_id) for reading in (native, *native.alternatives)
                ]
            except RowError as error:
                yield _unusable(source, number, row, error)
                continue
            source_of_id[question.id] = source
            yield Entry(
                file=source.name,
                row=number,
                question=question,
                others=tuple(others),
                removed_tests=("unwritable",) * native.num_dropped_tests,
            )


def read_eval_sets(sources: Sequence[Source]) -> tuple[list[Question], Counter[str]]:
    """Read the questions of evaluation sets. A row needs only a prompt. An unusable reference or test is ignored.

    Returns:
        All questions, and source -> number of rows whose prompt cannot be read. A question has an empty reference if
        its row has no usable reference. A question takes the ``data_source`` of its row. For a row without a
        ``data_source``, it is the stem of the source's name, or the whole name if several sources have the same stem.

    Raises:
        InputError: a source cannot be read, or no row of a source has a readable prompt.
    """
    questions: list[Question] = []
    unreadable: Counter[str] = Counter()
    num_with_stem = Counter(source.stem for source in sources)
    for source in sources:
        label = source.stem if num_with_stem[source.stem] == 1 else source.name
        num_before = len(questions)
        rows = Progress("read evaluation set", source.rows(), total=None, unit="row")
        for number, row in enumerate(rows):
            if question := _eval_question(source.reader, row, label, number):
                questions.append(question)
            else:
                unreadable[source.name] += 1
        if len(questions) == num_before:
            raise InputError(
                f"{source.name}: no row has a readable prompt; name its columns with "
                "--against-columns prompt=COLUMN --against-columns id=COLUMN"
            )
    return questions, unreadable


def _native(reader: RowReader, row: Row) -> NativeRow:
    try:
        return reader.native(row)
    except (RecursionError, MemoryError) as error:
        raise RowError("reference", f"is nested too deeply to be read: {type(error).__name__}") from error


def _question(native: NativeRow, source: Source, source_of_id: Mapping[str, Source]) -> Question:
    """Check a row. If an earlier row of another source has the same id, the new id is ``STEM_OF_SOURCE/ID``."""
    question = check_row(native)
    for column, value in asdict(question).items():
        try:
            "".join(value).encode()
        except UnicodeEncodeError as error:
            raise RowError(column, f"must be text that can be written as UTF-8: {error}") from error
    earlier = source_of_id.get(question.id)
    if earlier is None:
        return question
    longer = f"{source.stem}/{question.id}"
    if earlier is source or longer in source_of_id:
        raise RowError("id", f"must be unique, but an earlier row of {earlier.name} has {question.id!r} too")
    return replace(question, id=longer)


def _unusable(source: Source, number: int, row: Row, error: RowError) -> Dropped:
    # Rows are counted by reason, so the reason has the rule without the values of this row.
    rule = _RULE_END.split(error.rule, maxsplit=1)[0].strip()
    ids = [row[column] for column in _ID_COLUMNS if row.get(column) is not None]
    return Dropped(
        file=source.name,
        row=number,
        id=str(ids[0] if ids else "")[:_DETAIL_CHARACTERS],
        reason=f"{Reason.UNUSABLE_ROW.value}: {error.column}: {rule}",
        detail=f"column {error.column!r}: {error.rule}"[:_DETAIL_CHARACTERS],
    )


def _eval_question(reader: RowReader, row: Row, label: str, number: int) -> Question | None:
    try:
        native = _native(reader, row)
    except RowError:
        return None
    if not isinstance(native.prompt, str) or not native.prompt.strip():
        return None
    place = f"row {number} of {label}" if native.data_source else f"row {number}"
    tests = native.tests if isinstance(native.tests, list | tuple) else ()
    return Question(
        data_source=str(native.data_source or label),
        id=place if native.id is None else str(native.id),
        prompt=native.prompt,
        reference=native.reference if isinstance(native.reference, str) else "",
        tests=tuple(test for test in tests if isinstance(test, str)),
    )
