"""Files, folders and sets of the hub -> questions, row by row. A row that cannot be used is left out with its reason."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..algorithm.question import Question
from ..data.native_row import NativeRow
from ..data.reader import RowReader, check_row, iter_rows, row_reader
from ..errors import InputError, RowError
from ..files import file_digest, fingerprint
from ..jobs.progress import watched
from .rows import Dropped, Entry, Reason, Stage

Row = Mapping[str, Any]
Columns = Mapping[str, str]

FILE_ENDINGS = (".parquet", ".jsonl", ".json", ".jsonl.gz", ".json.gz")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_RULE_END = re.compile(r"[,:;(]| got | of \d")
_DETAIL_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One set of rows, and how they are read."""

    name: str
    """The text by which the user named it."""
    columns: Set[str]
    num_rows: int
    files: Sequence[Path]
    """The files that hold the rows; of a set of the hub the cache's."""
    rows: Callable[[], Iterable[Row]]
    """All rows, in order, a few in memory at a time; InputError where a file turns out to be damaged."""
    reader: RowReader = RowReader(adapter="native")

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

    def numbered_rows(self, what: str) -> Iterator[tuple[int, Row]]:
        """The first ``num_rows`` rows with their numbers, from 0; ``what`` is shown as the work that is done."""
        rows = islice(self.rows(), self.num_rows)
        return enumerate(watched(rows, total=self.num_rows, what=what, unit="row"))


@dataclass(slots=True, kw_only=True)
class EvalSets:
    """The evaluation sets that training data must not meet."""

    questions: list[Question] = field(default_factory=list)
    """As far as they could be read; without a reference where the set has none. ``data_source`` is the name of the set:
    the row's own, else that of its file, a short one where no other file has the same."""
    num_unreadable: Counter[str] = field(default_factory=Counter)
    """Rows without a prompt that could be read, by source."""


# ------------------------------ sources ------------------------------


def open_inputs(names: Iterable[str], *, adapter: str = "auto", columns: Columns, limit: int | None) -> list[Source]:
    """The sources that are named, each once, cut to their first ``limit`` rows; no row is read as a question yet.

    Raises:
        InputError: one cannot be read, or lacks columns that its adapter needs.
    """
    sources = []
    for source in map(open_source, dict.fromkeys(names)):
        try:
            reader = row_reader(source.columns, where=source.name, adapter=adapter, columns=columns)
        except InputError as error:
            hint = "Here columns are named so: --columns id=COLUMN prompt=COLUMN ..."
            raise InputError(f"{error}. {hint}") from error
        num_rows = min(source.num_rows, limit or source.num_rows)
        sources.append(replace(source, reader=reader, num_rows=num_rows))
    return sources


def open_eval_sets(names: Iterable[str], columns: Columns) -> list[Source]:
    """The evaluation sets that are named, each once; of these the prompt alone is enough.

    Raises:
        InputError: one cannot be read, no adapter knows it, and ``columns`` names no prompt that it has.
    """
    sources = []
    for source in map(open_source, dict.fromkeys(names)):
        try:
            reader = row_reader(source.columns, where=source.name)
        except InputError as error:
            if columns.get("prompt", "prompt").split(".")[0] not in source.columns:
                hint = "Of an evaluation set the prompt is enough: --against-columns prompt=COLUMN id=COLUMN"
                raise InputError(f"{error}. {hint}") from error
            reader = RowReader(adapter="native", columns=columns)
        sources.append(replace(source, reader=reader))
    return sources


def open_source(name: str) -> Source:
    """The rows that ``name`` stands for.

    Args:
        name: a parquet, JSON or JSON-lines file (``.gz`` allowed for these two); a folder that
            ``datasets.save_to_disk`` wrote or that holds such files, ``FOLDER:split`` where it has several splits; or,
            where no such path exists, ``org/name`` or ``org/name:split`` of the hub.

    Raises:
        InputError: there is nothing, it cannot be read, or it has no rows.
    """
    place, split = name, ""
    if not Path(name).exists() and ":" in name:
        place, _, split = name.rpartition(":")
    if Path(name).is_file():
        source = _files_source(name, [Path(name)])
    elif Path(place).is_dir():
        source = _folder_source(name, Path(place), split)
    elif _HUB_ID.fullmatch(place) and not name.endswith(FILE_ENDINGS):
        import datasets  # type: ignore[import-untyped]  # here: takes a second, and files do without

        hint = (
            "Check the id and the connection (HF_TOKEN for sets that ask for a login), or download its files elsewhere "
            "and give their folder"
        )
        problem = f"no such path (relative paths start at {Path.cwd()}), and no set of the hub that can be loaded"
        source = _loaded_source(name, datasets.load_dataset, place, split, problem=problem, hint=hint)
    else:
        raise InputError(
            f"{name}: no such file or folder (relative paths start at {Path.cwd()}), and no id of a data set on the "
            "hub either; those have the form org/name or org/name:split"
        )
    if not source.num_rows:
        raise InputError(f"{name}: no rows; a data set needs at least one")
    return source


def _files_source(name: str, paths: Sequence[Path]) -> Source:
    columns: set[str] = set()
    num_rows = 0
    for path in paths:
        columns_here, num_rows_here = _columns_and_rows(path)
        columns |= columns_here
        num_rows += num_rows_here
    return Source(
        name=name,
        columns=columns,
        num_rows=num_rows,
        files=paths,
        rows=lambda: chain.from_iterable(map(iter_rows, paths)),
    )


def _columns_and_rows(path: Path) -> tuple[set[str], int]:
    """The columns of a file and its number of rows; of parquet without reading them."""
    if path.suffix == ".parquet":
        import pyarrow.parquet  # here: only this format needs it

        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                return set(file.schema_arrow.names), file.metadata.num_rows
        except (OSError, ValueError) as error:  # pyarrow's errors are OSErrors and ValueErrors
            raise InputError(f"{path}: cannot be read: {error}") from error
    columns: set[str] = set()
    num_rows = 0
    for row in iter_rows(path):
        columns.update(row)
        num_rows += 1
    return columns, num_rows


def _folder_source(name: str, folder: Path, split: str) -> Source:
    import datasets

    hint = f"The folder must be one of datasets.save_to_disk, or hold files that end in {', '.join(FILE_ENDINGS)}"
    if (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file():
        return _loaded_source(name, datasets.load_from_disk, str(folder), split, problem="no data set", hint=hint)
    try:
        by_split = datasets.load_dataset_builder(str(folder)).config.data_files
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: the folder holds no data set: {error}. {hint}") from error
    files = map(Path, by_split[_chosen(split, by_split, name, str(folder))])
    return _files_source(name, [path for path in files if path.name.endswith(FILE_ENDINGS)])


def _loaded_source(
    name: str, load: Callable[[str], Any], place: str, split: str, *, problem: str, hint: str
) -> Source:
    """A set that the library ``datasets`` loads, with one split or several."""
    try:
        loaded = load(place)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:  # the library's own are among these
        shown = f"{type(error).__name__}: {str(error)[:_DETAIL_CHARACTERS]}"
        raise InputError(f"{name}: {problem}: {shown}. {hint}") from error
    if isinstance(loaded, Mapping):
        loaded = loaded[_chosen(split, loaded, name, place)]
    return Source(
        name=name,
        columns=set(loaded.column_names),
        num_rows=len(loaded),
        files=[Path(file["filename"]) for file in loaded.cache_files],
        rows=lambda: loaded,
    )


def _chosen(split: str, splits: Iterable[str], name: str, place: str) -> str:
    known = sorted(map(str, splits))
    if split in known:
        return split
    if len(known) == 1 and not split:
        return known[0]
    problem = f"has no split {split!r}" if split else f"has {len(known)} splits, which do not belong in one training set"
    raise InputError(f"{name}: {problem}; name one of {', '.join(f'{place}:{known_one}' for known_one in known)}")


# ------------------------------ rows ------------------------------


def read_inputs(sources: Sequence[Source]) -> Stage:
    """Questions of all sources, in order, and the rows that are none."""
    source_of_id: dict[str, Source] = {}
    for source in sources:
        for number, row in source.numbered_rows("read"):
            try:
                native = _native(source.reader, row)
                question = _with_new_id(_checked(native), source, source_of_id)
            except RowError as error:
                yield _unusable(source, number, row, error)
                continue
            source_of_id[question.id] = source
            unwritable = ("unwritable",) * native.num_dropped_tests
            yield Entry(file=source.name, row=number, question=question, removed_tests=unwritable)


def read_eval_sets(sources: Sequence[Source]) -> EvalSets:
    """Questions of the evaluation sets; a row whose reference or tests cannot be used still gives its prompt.

    Raises:
        InputError: a source cannot be read, or no row of it.
    """
    sets = EvalSets()
    num_with = Counter(source.stem for source in sources)
    for source in sources:
        label = source.stem if num_with[source.stem] == 1 else source.name
        for number, row in source.numbered_rows("read evaluation set"):
            question = _eval_question(source.reader, row, label, number)
            if question is None:
                sets.num_unreadable[source.name] += 1
            else:
                sets.questions.append(question)
        if sets.num_unreadable[source.name] == source.num_rows:
            raise InputError(
                f"{source.name}: none of its {source.num_rows} rows has a prompt that can be read; name its columns "
                "with --against-columns prompt=COLUMN id=COLUMN"
            )
    return sets


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
