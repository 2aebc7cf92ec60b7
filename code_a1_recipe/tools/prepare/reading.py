"""Files and sets of the hub -> questions, row by row. A row that cannot be used is left out, with a reason."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

from ...algorithm.question import Question
from ...data.native_row import Columns, NativeRow, Row
from ...data.reader import RowReader, check_row, columns_of, iter_rows, row_reader
from ...errors import InputError, RowError
from ...files import file_digest, fingerprint
from ...jobs.progress import Progress
from .rows import Dropped, Entry, Reason, Stage

FILE_ENDINGS = (".parquet", ".jsonl", ".json", ".jsonl.gz", ".json.gz")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_RULE_END = re.compile(r"[:;] | \(|, but |,? got | of \d")
_DETAIL_CHARACTERS = 300


@dataclass(frozen=True, kw_only=True)
class Source:
    """One set of rows, and how they are read."""

    name: str
    """The text by which the user named it."""
    files: Sequence[Path]
    """The files that hold the rows; of a set of the hub the cache's."""
    rows: Callable[[], Iterable[Row]]
    """All rows, in order, a few in memory at a time; InputError where a file turns out to be damaged."""
    reader: RowReader

    @property
    def stem(self) -> str:
        """A short name: ``kodcode`` of ``data/kodcode.jsonl.gz``."""
        name = self.name.replace(":", "-").rstrip("/").rpartition("/")[2]
        return re.sub(r"(\.parquet|\.jsonl?)?(\.gz)?$", "", name) or "data"

    def fingerprint(self) -> str:
        """16 hexadecimal digits of the content of all files."""
        return fingerprint(*map(file_digest, self.files))


# ------------------------------ sources ------------------------------


def open_sources(
    names: Iterable[str], *, adapter: str = "auto", columns: Columns, is_evaluation: bool = False
) -> list[Source]:
    """The sources that are named, each once; no row is read as a question yet.

    Args:
        names: see :func:`rows_of`.
        adapter: a name in ``formats.ADAPTERS``, or "auto".
        columns: native column -> column of the files.
        is_evaluation: the prompt alone is enough, and ``columns`` are for files that no adapter knows.

    Raises:
        InputError: one cannot be read, has no rows, or lacks columns that its adapter needs.
    """
    sources = []
    for name in dict.fromkeys(names):
        files, rows = rows_of(name)
        there = columns_of(rows())
        if not there:
            raise InputError(f"{name}: no rows; a data set needs at least one")
        try:
            reader = row_reader(there, where=name, adapter=adapter, columns=None if is_evaluation else columns)
        except InputError as error:
            if not is_evaluation:
                raise InputError(f"{error}. Here: --columns id=COLUMN --columns prompt=COLUMN ...") from error
            if columns.get("prompt", "prompt").split(".")[0] not in there:
                hint = "Of an evaluation set the prompt is enough: --against-columns prompt=COLUMN"
                raise InputError(f"{error}. {hint}") from error
            reader = RowReader(adapter="native", columns=columns)
        sources.append(Source(name=name, files=files, rows=rows, reader=reader))
    return sources


def rows_of(name: str) -> tuple[Sequence[Path], Callable[[], Iterable[Row]]]:
    """Files, and a function that reads their rows.

    Args:
        name: a parquet, JSON or JSON-lines file (``.gz`` allowed for these two); or, where no such path exists,
            ``org/name`` or ``org/name:split`` of the hub.

    Raises:
        InputError: there is nothing, or it cannot be read.
    """
    path = Path(name)
    if path.is_file():
        return [path], lambda: iter_rows(path)
    if path.is_dir():
        raise InputError(f"{name} is a folder; name its files, such as {path / '*.parquet'}")
    place, _, split = name.partition(":")
    if not _HUB_ID.fullmatch(place) or name.endswith(FILE_ENDINGS):
        raise InputError(
            f"{name}: no such file (relative paths start at {Path.cwd()}), and no id of a data set on the hub either; "
            "those have the form org/name or org/name:split"
        )
    import datasets  # type: ignore[import-untyped]  # here: takes a second, and files do without

    try:
        loaded = datasets.load_dataset(place)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:  # the library's own are among these
        raise InputError(
            f"{name}: no such path, and no set of the hub that can be loaded: {type(error).__name__}: "
            f"{str(error)[:_DETAIL_CHARACTERS]}. Name files that end in {', '.join(FILE_ENDINGS)}, or an id of the hub "
            "(HF_TOKEN for sets that ask for a login)"
        ) from error
    splits = sorted(map(str, loaded))
    if not split and len(splits) == 1:
        split = splits[0]
    if split not in splits:
        shown = ", ".join(f"{place}:{known}" for known in splits)
        raise InputError(f"{name}: has splits, which do not belong in one training set; name one of {shown}")
    rows = loaded[split]
    return [Path(file["filename"]) for file in rows.cache_files], lambda: rows


# ------------------------------ rows ------------------------------


def read_inputs(sources: Sequence[Source], *, limit: int | None = None) -> Stage:
    """Questions of the first ``limit`` rows of each source, in order, and the rows that are none."""
    source_of_id: dict[str, Source] = {}
    for source in sources:
        for number, row in enumerate(islice(source.rows(), limit)):
            try:
                native = _native(source.reader, row)
                question = _question(native, source, source_of_id)
                others = tuple(_question(one, source, source_of_id) for one in native.alternatives)
            except RowError as error:
                yield _unusable(source, number, row, error)
                continue
            source_of_id[question.id] = source
            yield Entry(
                file=source.name,
                row=number,
                question=question,
                others=others,
                removed_tests=("unwritable",) * native.num_dropped_tests,
            )


def read_eval_sets(sources: Sequence[Source]) -> tuple[list[Question], Counter[str]]:
    """Questions of the evaluation sets; a row whose reference or tests cannot be used still gives its prompt.

    Returns:
        Questions, without a reference where the set has none. ``data_source`` is the name of the set: the row's own,
        else that of its file, a short one where no other file has the same. And by source the number of rows without a
        prompt that could be read.

    Raises:
        InputError: a source cannot be read, or no row of it.
    """
    questions: list[Question] = []
    unreadable: Counter[str] = Counter()
    num_with = Counter(source.stem for source in sources)
    for source in sources:
        label = source.stem if num_with[source.stem] == 1 else source.name
        rows = Progress("read evaluation set", source.rows(), total=None, unit="row")
        found = [_eval_question(source.reader, row, label, number) for number, row in enumerate(rows)]
        usable = [question for question in found if question is not None]
        if not usable:
            raise InputError(
                f"{source.name}: none of its rows has a prompt that can be read; name its columns with "
                "--against-columns prompt=COLUMN id=COLUMN"
            )
        questions += usable
        unreadable[source.name] += len(found) - len(usable)
    return questions, +unreadable


def _native(reader: RowReader, row: Row) -> NativeRow:
    try:
        return reader.native(row)
    except (RecursionError, MemoryError) as error:
        raise RowError("reference", f"is nested too deeply to be read: {type(error).__name__}") from error


def _question(native: NativeRow, source: Source, source_of_id: Mapping[str, Source]) -> Question:
    """The checked row. Rows of two sources may have the same id; the later one is called after its source."""
    question = check_row(native)
    for column, value in asdict(question).items():
        try:
            "".join(value).encode()
        except UnicodeEncodeError as error:
            raise RowError(column, f"must be text that UTF-8 can hold: {error}") from error
    earlier = source_of_id.get(question.id)
    if earlier is None:
        return question
    longer = f"{source.stem}/{question.id}"
    if earlier is source or longer in source_of_id:
        raise RowError("id", f"must be unique, but an earlier row of {earlier.name} has {question.id!r} too")
    return replace(question, id=longer)


def _unusable(source: Source, number: int, row: Row, error: RowError) -> Dropped:
    rule = _RULE_END.split(error.rule, maxsplit=1)[0].strip()
    ids = (row.get(column) for column in ("id", "question_id", "task_id", "problem_id"))
    return Dropped(
        file=source.name,
        row=number,
        id=str(next((one for one in ids if one is not None), ""))[:_DETAIL_CHARACTERS],
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
