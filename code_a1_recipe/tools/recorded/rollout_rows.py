"""Rollout files as programs to judge: lines of a run's ``rollouts/``, or rows of one's own with ``COLUMNS``."""

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
    "candidate": "program that the responses are suites for; without it they are programs",
    "tests": "asserts that judge programs (default: the question's)",
}
"""Columns of a row of one's own, and what each holds; others are ignored."""

_RECORDED_COLUMNS = {"question", "candidate", "response", "suites", "verdict"}


@dataclass(frozen=True, kw_only=True)
class Item:
    """One program to judge."""

    question: Question
    result: CandidateResult
    """The program with the suites written for it, not yet judged."""
    tests: tuple[str, ...] = ()
    """Asserts that judge it in place of suites."""
    history: tuple[str, ...] = ()
    """Calls to replay."""
    row: Mapping[str, Any]
    """The output row without what the judge says: a recorded line, or columns of a row of one's own. ``item`` is its
    key: its position among all items of all files."""


def read_episodes(files: Sequence[Path], questions: QuestionTable) -> list[list[Item]]:
    """Items of all files in groups. The programs of a group are rewarded together, as they were in training.

    Raises:
        InputError: a file cannot be read, or a row breaks a rule; nothing has run.
    """
    episodes: dict[object, list[Item]] = {}
    index = 0
    for path in files:
        for number, (key, items) in enumerate(_read_file(path, questions)):
            for item in items:
                row = {**item.row, "item": index, "file": path.name, "row": number}
                episodes.setdefault((path, key), []).append(replace(item, row=row))
                index += 1
    return list(episodes.values())


def _read_file(path: Path, questions: QuestionTable) -> Iterator[tuple[object, list[Item]]]:
    """For each row a key, which is equal for the rows of an episode, and its items."""
    rows = list(iter_rows(path))
    if not rows:
        raise InputError(f"{path}: no rows; there is nothing to score")
    records = []
    if rows[0].keys() >= _RECORDED_COLUMNS:
        records = [rollout_of(row, f"{path}: row {number}") for number, row in enumerate(rows)]
    # A program lost to an outage has the replays of its siblings.
    replays = {}
    for record in records:
        if record.verdict is not None:
            replays[record.step, record.index] = record.verdict.history
    for number, row in enumerate(rows):
        try:
            if records:
                record = records[number]
                place = (record.step, record.index)
                calls = tuple(case.call for case in replays.get(place, ()))
                yield (record.kind, place), _recorded_items(record, questions, calls)
            else:
                yield number, _own_items(row, questions)
        except RowError as error:
            raise InputError(f"{path}: row {number}, {error}") from error


def _recorded_items(record: RolloutRecord, questions: QuestionTable, history: tuple[str, ...]) -> list[Item]:
    if record.kind == "greedy" or record.turn:  # without suites of its own, of which a reward could be made again
        return []
    question = _question(record.question, questions)
    program = candidate_result(Response.scripted(record.response), question)
    suites = tuple(suite_result(Response.scripted(suite.response)) for suite in record.suites)
    result = replace(
        program,
        suites=suites,
        is_too_long_to_test=record.is_too_long_to_test,
    )
    row = msgspec.to_builtins(record)
    return [Item(question=question, result=result, history=history, row=row)]


def _own_items(row: Mapping[str, Any], questions: QuestionTable) -> list[Item]:
    present = {name: value for name, value in row.items() if value is not None}  # parquet fills up with None
    question = _question(str(present.get("question")), questions)
    is_list = isinstance(present.get("response"), list)
    texts = list_of(present, "response") if is_list else [text_of(present, "response")]
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
        rule = f"{name!r} is not among the {len(questions)} questions; name the file that has it by --questions"
        raise RowError("question", rule)
    return questions[name]
