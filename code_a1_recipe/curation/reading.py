"""Files, folders and sets of the hub -> questions, row by row. A row that cannot be used is left out, with a reason."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..algorithm.question import Question
from ..data.native_row import NativeRow
from ..data.reader import RowReader, check_row, columns_of, iter_rows, row_reader
from ..errors import InputError, RowError
from ..files import file_digest, fingerprint
from ..jobs.progress import watched
from .rows import Dropped, Entry, Reason, Stage

Row = Mapping[str, Any]
Rows = tuple[Sequence[Path], Callable[[], Iterable[Row]]]
Columns = Mapping[str, str]

FILE_ENDINGS = (".parquet", ".jsonl", ".json", ".jsonl.gz", ".json.gz")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_RULE_END = re.compile(r"[,:;(]| got | of \d")
_DETAIL_CHARACTERS = 300
_NO_COLUMNS: Columns = {}


@dataclass(frozen=True, slots=True, kw_only=True)
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
        for ending in (".gz", ".parquet", ".jsonl", ".json"):
            name = name.removesuffix(ending)
        return name or "data"

    def fingerprint(self) -> str:
        """16 hexadecimal digits of the content of all files."""
        return fingerprint(*map(file_digest, self.files))


# ------------------------------ sources ------------------------------


def open_sources(
    names: Iterable[str], *, adapter: str = "auto", columns: Columns = _NO_COLUMNS, is_evaluation: bool = False
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


def rows_of(name: str) -> Rows:
    """Files, and a function that reads their rows.

    Args:
        name: a parquet, JSON or JSON-lines file (``.gz`` allowed for these two); a folder that
            ``datasets.save_to_disk`` wrote or that holds such files, ``FOLDER:split`` where it has several splits; or,
            where no such path exists, ``org/name`` or ``org/name:split`` of the hub.

    Raises:
        InputError: there is nothing, or it cannot be read.
    """
    if Path(name).is_file():
        return _rows_of_files([Path(name)])
    place, split = name, ""
    if not Path(name).exists() and ":" in name:
        place, _, split = name.rpartition(":")
    if Path(place).is_dir():
        return _rows_of_library(name, place, split, "the folder holds no data set")
    if _HUB_ID.fullmatch(place) and not name.endswith(FILE_ENDINGS):
        return _rows_of_library(name, place, split, "no such path, and no set of the hub that can be loaded")
    raise InputError(
        f"{name}: no such file or folder (relative paths start at {Path.cwd()}), and no id of a data set on the hub "
        "either; those have the form org/name or org/name:split"
    )


def _rows_of_files(paths: Sequence[Path]) -> Rows:
    return paths, lambda: chain.from_iterable(map(iter_rows, paths))


def _rows_of_library(name: str, place: str, split: str, problem: str) -> Rows:
    """Rows of a folder or a set of the hub; its splits are those that ``datasets`` finds.

    Files of a folder are read as any others are, row by row: the library wants one type a column.
    """
    import datasets  # type: ignore[import-untyped]  # here: takes a second, and files do without

    folder = Path(place)
    is_saved = (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file()
    try:
        if is_saved:
            loaded = datasets.load_from_disk(place)
        elif folder.is_dir():
            loaded = datasets.load_dataset_builder(place).config.data_files
        else:
            loaded = datasets.load_dataset(place)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:  # the library's own are among these
        raise InputError(
            f"{name}: {problem}: {type(error).__name__}: {str(error)[:_DETAIL_CHARACTERS]}. Name a folder of "
            f"datasets.save_to_disk or of files that end in {', '.join(FILE_ENDINGS)}, or an id of the hub (HF_TOKEN "
            "for sets that ask for a login)"
        ) from error
    if isinstance(loaded, Mapping):
        splits = sorted(map(str, loaded))
        if not split and len(splits) == 1:
            split = splits[0]
        if split not in splits:
            shown = ", ".join(f"{place}:{known}" for known in splits)
            raise InputError(f"{name}: has splits, which do not belong in one training set; name one of {shown}")
        loaded = loaded[split]
    if folder.is_dir() and not is_saved:
        return _rows_of_files([Path(file) for file in loaded if file.endswith(FILE_ENDINGS)])
    return [Path(file["filename"]) for file in loaded.cache_files], lambda: loaded


# ------------------------------ rows ------------------------------


def read_inputs(sources: Sequence[Source], *, limit: int | None = None) -> Stage:
    """Questions of the first ``limit`` rows of each source, in order, and the rows that are none."""
    source_of_id: dict[str, Source] = {}
    for source in sources:
        rows = watched(islice(source.rows(), limit), total=None, what="read", unit="row")
        for number, row in enumerate(rows):
            try:
                native = _native(source.reader, row)
                question = _with_new_id(_checked(native), source, source_of_id)
            except RowError as error:
                yield _unusable(source, number, row, error)
                continue
            source_of_id[question.id] = source
            unwritable = ("unwritable",) * native.num_dropped_tests
            yield Entry(file=source.name, row=number, question=question, removed_tests=unwritable)


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
        num_before = len(questions)
        rows = watched(source.rows(), total=None, what="read evaluation set", unit="row")
        for number, row in enumerate(rows):
            question = _eval_question(source.reader, row, label, number)
            if question is not None:
                questions.append(question)
            else:
                unreadable[source.name] += 1
        if len(questions) == num_before:
            raise InputError(
                f"{source.name}: none of its rows has a prompt that can be read; name its columns with "
                "--against-columns prompt=COLUMN id=COLUMN"
            )
    return questions, unreadable


def _native(reader: RowReader, row: Row) -> NativeRow:
    try:
        return reader.native(row)
    except (RecursionError, MemoryError) as error:
        raise RowError("reference", f"is nested too deeply to be read: {type(error).__name__}") from error


def _checked(native: NativeRow) -> Question:
    question = check_row(native)
    for column, value in asdict(question).items():
        try:
            "".join(value).encode()
        except UnicodeEncodeError as error:
            raise RowError(column, f"must be text that UTF-8 can hold: {error}") from error
    return question


def _with_new_id(question: Question, source: Source, source_of_id: Mapping[str, Source]) -> Question:
    """Rows of two sources may have the same id; the later one is called after its source."""
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
        id=str(next(filter(None, ids), ""))[:_DETAIL_CHARACTERS],
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
