"""Sources -> questions, row by row: what cannot be used is left out and counted, not refused."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from ...algorithm.question import Question
from ...data.native_row import NativeRow
from ...data.reader import COLUMNS, RowReader, check_row, row_reader
from ...errors import InputError, RowError
from ...jobs.progress import watched
from .entries import Dropped, Entry, Reason
from .sources import Source

_RULE_END = re.compile(r"[,:;(]| got | of \d")
_DETAIL_CHARACTERS = 300


@dataclass(slots=True, kw_only=True)
class ReadRows:
    """What the inputs hold."""

    entries: list[Entry] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    num_rows: Counter[str] = field(default_factory=Counter)
    """Rows looked at, by source."""
    adapters: dict[str, str] = field(default_factory=dict)
    """Adapter of each source."""
    num_unwritable_tests: int = 0
    """Tests that cannot be written as ``assert f(literals) == literal``."""


@dataclass(slots=True, kw_only=True)
class EvalSets:
    """The evaluation sets that training data must not meet."""

    questions: list[Question] = field(default_factory=list)
    """As far as they could be read; without a reference where the set has none. ``data_source`` is the name of the set:
    the row's own, else that of its file, a short one where no other file has the same."""
    num_unreadable: Counter[str] = field(default_factory=Counter)
    """Rows without a prompt that could be read, by source."""


def readers_of(
    sources: Sequence[Source], *, adapter: str = "auto", columns: Mapping[str, str] | None = None
) -> list[RowReader]:
    """How to read each source; checked before any row is.

    Raises:
        InputError: a source lacks columns that its adapter needs.
    """
    try:
        return [row_reader(source.columns, where=source.name, adapter=adapter, columns=columns) for source in sources]
    except InputError as error:
        raise InputError(f"{error}. Here columns are named so: --columns id=COLUMN prompt=COLUMN ...") from error


def eval_reader(source: Source, columns: Mapping[str, str] | None) -> RowReader:
    """How to read an evaluation set, of which the prompt alone is enough.

    Raises:
        InputError: no adapter knows it, and ``columns`` names no prompt that it has.
    """
    try:
        return row_reader(source.columns, where=source.name)
    except InputError as error:
        prompt = (columns or {}).get("prompt", "prompt").split(".")[0]
        if prompt not in source.columns:
            raise InputError(
                f"{error}. Of an evaluation set the prompt is enough: --against-columns prompt=COLUMN id=COLUMN"
            ) from error
        return RowReader(adapter="native", columns=columns or {})


def read_inputs(sources: Sequence[Source], readers: Sequence[RowReader], *, limit: int | None) -> ReadRows:
    """Questions of all sources, in order.

    Args:
        sources: what to read.
        readers: how to read each of them.
        limit: rows of each source, from its start; None for all.
    """
    found = ReadRows()
    taken: dict[str, str] = {}
    for source, reader in zip(sources, readers, strict=True):
        found.adapters[source.name] = reader.adapter
        total = source.num_rows if limit is None else min(limit, source.num_rows)
        rows = watched(islice(source.rows(), limit), total=total, what="read", unit="row")
        for index, row in enumerate(rows):
            found.num_rows[source.name] += 1
            try:
                native = _native(reader, row)
                question = _with_new_id(_checked(native), source, taken)
            except RowError as error:
                found.dropped.append(_unusable(source, index, row, error))
                continue
            taken[question.id] = source.name
            found.num_unwritable_tests += native.num_dropped_tests
            found.entries.append(Entry(file=source.name, row=index, question=question))
    return found


def read_eval_sets(sources: Sequence[Source], columns: Mapping[str, str] | None) -> EvalSets:
    """Questions of the evaluation sets; a row whose reference or tests cannot be used still gives its prompt.

    Raises:
        InputError: a source cannot be read, or no row of it.
    """
    found = EvalSets()
    num_with = Counter(source.stem for source in sources)
    for source in sources:
        label = source.stem if num_with[source.stem] == 1 else source.name
        reader = eval_reader(source, columns)
        num_before = len(found.questions)
        rows = watched(source.rows(), total=source.num_rows, what="read evaluation set", unit="row")
        for index, row in enumerate(rows):
            question = _eval_question(reader, row, label, index)
            if question is None:
                found.num_unreadable[source.name] += 1
            else:
                found.questions.append(question)
        if len(found.questions) == num_before:
            raise InputError(
                f"{source.name}: none of its {source.num_rows} rows has a prompt that can be read; name its columns "
                "with --against-columns prompt=COLUMN id=COLUMN"
            )
    return found


def _native(reader: RowReader, row: Mapping[str, Any]) -> NativeRow:
    try:
        return reader.native(row)
    except (RecursionError, MemoryError) as error:
        raise RowError("reference", f"is nested too deeply to be read: {type(error).__name__}") from error


def _checked(native: NativeRow) -> Question:
    question = check_row(native)
    for column in COLUMNS:
        value = getattr(question, column)
        try:
            "\n".join([value] if isinstance(value, str) else value).encode()
        except UnicodeEncodeError as error:
            raise RowError(column, f"must be text that UTF-8 can hold: {error}") from error
    return question


def _with_new_id(question: Question, source: Source, taken: Mapping[str, str]) -> Question:
    """Rows of two sources may have the same id; the later one is called after its source."""
    if question.id not in taken:
        return question
    longer = f"{source.stem}/{question.id}"
    if taken[question.id] == source.name or longer in taken:
        raise RowError("id", f"must be unique, but an earlier row of {taken[question.id]} has {question.id!r} too")
    return replace(question, id=longer)


def _unusable(source: Source, index: int, row: Mapping[str, Any], error: RowError) -> Dropped:
    rule = _RULE_END.split(error.rule, maxsplit=1)[0].strip()
    given = next((row[name] for name in ("id", "question_id", "task_id", "problem_id") if row.get(name)), "")
    return Dropped(
        file=source.name,
        row=index,
        id=str(given)[:_DETAIL_CHARACTERS],
        reason=f"{Reason.UNUSABLE_ROW.value}: {error.column}: {rule}",
        detail=f"column {error.column!r}: {error.rule}"[:_DETAIL_CHARACTERS],
    )


def _eval_question(reader: RowReader, row: Mapping[str, Any], label: str, index: int) -> Question | None:
    try:
        native = _native(reader, row)
    except RowError:
        return None
    if not isinstance(native.prompt, str) or not native.prompt.strip():
        return None
    return Question(
        data_source=str(native.data_source or label),
        id=str(native.id) if native.id is not None else f"row {index}" + f" of {label}" * bool(native.data_source),
        prompt=native.prompt,
        reference=native.reference if isinstance(native.reference, str) else "",
        tests=tuple(_texts(native.tests)),
    )


def _texts(value: Any) -> Iterator[str]:
    items = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(items, Sequence) and not isinstance(items, str):
        yield from (item for item in items if isinstance(item, str))
