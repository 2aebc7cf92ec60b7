"""Reads the programs that ``score`` judges: lines of a run's ``rollouts/``, or a user's rows with ``COLUMNS``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from ...algorithm.episode import candidate_result, suite_result
from ...algorithm.episode_types import CandidateResult, Response
from ...algorithm.question import Question
from ...data.native_row import list_of, text_of
from ...data.reader import QuestionTable, iter_rows
from ...errors import InputError, RowError
from ...runs.reader import rollout_of
from ...runs.rollout_record import RolloutRecord

COLUMNS = {
    "question": "id of a question of --questions",
    "response": "text of a response, or a list of several",
    "candidate": "a program; then the responses are suites for it, and else they are programs",
    "tests": "asserts that judge programs (default: the question's tests)",
}
"""Column of a user's row -> its meaning. Other columns are ignored."""

_RECORDED_COLUMNS = {"question", "candidate", "response", "suites", "verdict"}


@dataclass(frozen=True, kw_only=True)
class Item:
    """A program to judge."""

    question: Question
    result: CandidateResult
    """The program with the suites that were written for it, not yet judged."""
    tests: tuple[str, ...] = ()
    """Asserts that judge the program in place of suites."""
    history: tuple[str, ...] = ()
    """Calls from the Mistake Book that are replayed on the program."""
    row: Mapping[str, Any]
    """The output row before judging: a recorded line, or columns of a user's row.

    The key ``item`` of the row is the item's position among all items of all files.
    """


def read_episodes(files: Sequence[Path], questions: QuestionTable) -> list[list[Item]]:
    """Read the items of all files in groups. The programs of a group are rewarded together, as in training.

    Raises:
        InputError: a file cannot be read, or a row breaks a rule. The error comes before any program runs.
    """
    episodes: dict[object, list[Item]] = {}
    index = 0
    for path in files:
        for number, (key, items) in enumerate(_read_file(path, questions)):
            episode = episodes.setdefault((path, key), [])
            for item in items:
                row = {**item.row, "item": index, "file": path.name, "row": number}
                episode.append(replace(item, row=row))
                index += 1
    return [items for items in episodes.values() if items]


def _read_file(path: Path, questions: QuestionTable) -> Iterator[tuple[object, list[Item]]]:
    """Yield a key and the items of each row. Rows of one episode have equal keys."""
    rows = list(iter_rows(path))
    if not rows:
        raise InputError(f"{path}: no rows; there is nothing to score")
    records = []
    if rows[0].keys() >= _RECORDED_COLUMNS:
        records = [rollout_of(row, f"{path}: row {number}") for number, row in enumerate(rows)]
    # All programs of an episode meet the same replayed calls. A program that met an outage has no verdict with these
    # calls, so the calls come from the verdict of another program of the episode.
    replays = {}
    for record in records:
        if record.verdict is None:
            continue
        calls = [case.call for case in record.verdict.history]
        replays[record.step, record.index] = tuple(calls)
    for number, row in enumerate(rows):
        try:
            if records:
                record = records[number]
                place = (record.step, record.index)
                yield (record.kind, place), _recorded_items(record, questions, replays.get(place, ()))
            else:
                yield number, _own_items(row, questions)
        except RowError as error:
            raise InputError(f"{path}: row {number}, {error}") from error


def _recorded_items(
    record: RolloutRecord,
    questions: QuestionTable,
    history: tuple[str, ...],
) -> list[Item]:
    if record.kind == "greedy":  # no suites were written for greedy programs
        return []
    question = _question(record.question, questions)
    program = candidate_result(Response.scripted(record.response), question)
    responses = [Response.scripted(suite.response) for suite in record.suites]
    result = replace(
        program,
        suites=tuple(map(suite_result, responses)),
        is_too_long_to_test=record.is_too_long_to_test,
    )
    row = msgspec.to_builtins(record)
    return [Item(question=question, result=result, history=history, row=row)]


def _own_items(row: Mapping[str, Any], questions: QuestionTable) -> list[Item]:
    present = {name: value for name, value in row.items() if value is not None}  # parquet has None for missing cells
    question = _question(str(present.get("question")), questions)
    if isinstance(present.get("response"), list):
        texts = list_of(present, "response")
    else:
        texts = [text_of(present, "response")]
    if not texts:
        raise RowError("response", "must not be an empty list; leave the row out")
    responses = [Response.scripted(text) for text in texts]
    if "candidate" in present:
        result = CandidateResult(
            response=Response.scripted(""),
            source=text_of(present, "candidate"),
            suites=tuple(map(suite_result, responses)),
        )
        return [Item(question=question, result=result, row={"question": question.id, "role": "test"})]
    tests = tuple(list_of({"tests": question.tests, **present}, "tests"))
    if not tests:
        raise RowError("tests", f"question {question.id!r} has none; give asserts that judge its programs")
    items = []
    for number, response in enumerate(responses):
        result = candidate_result(response, question)
        head = {"question": question.id, "role": "code", "response": number}
        items.append(Item(question=question, result=result, tests=tests, row=head))
    return items


def _question(name: str, questions: QuestionTable) -> Question:
    if name not in questions:
        raise RowError(
            "question",
            f"{name!r} is not among the {len(questions)} questions; name its file with --questions",
        )
    return questions[name]
