"""Rollout files -> items to judge, every row checked before anything runs.

Two kinds of row, told apart by their columns:

- **flat**: one question, one policy, one response or several (``FLAT_COLUMNS``);
- **recorded**: a line of a run's ``rollouts/*.jsonl`` (``runs.rollout_record``), one program with its suites.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from code_a1_recipe.algorithm.episode import candidate_result, suite_result
from code_a1_recipe.algorithm.episode_types import CandidateResult, Response, SuiteResult
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.data.formats import from_native
from code_a1_recipe.data.native_row import list_of, text_of
from code_a1_recipe.data.reader import QuestionTable, check_row, read_rows
from code_a1_recipe.errors import InputError, RowError
from code_a1_recipe.runs.reader import rollout_of
from code_a1_recipe.runs.rollout_record import RolloutRecord

ROLES = ("code", "test")
RECORDED = "recorded"

FLAT_COLUMNS: dict[str, str] = {
    "question": "id of a question of --questions; or, in its place, the columns of a question of your own: reference "
    "(and id, entry_points, prelude, tests)",
    "role": "code or test; without it, test where the row has a candidate, else code",
    "response": "the response's text, or a list of texts under 'responses'",
    "candidate": "source of the program that a suite was written for; only for tests",
    "history": "calls to replay, a list of texts (optional)",
    "tests": "assert statements that judge code (optional; default: those of the question)",
}
"""Columns of a flat row; all others are ignored."""

_RECORDED_COLUMNS = frozenset({"question", "candidate", "response", "suites", "verdict"})
_INLINE_COLUMNS = ("id", "reference", "entry_points", "prelude", "data_source", "kind", "checker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to judge: one response of a flat row, or one recorded program with its suites."""

    index: int = 0
    """Position among all items of all files; the key of its output row."""
    role: str
    """"code", "test" or "recorded"."""
    question: Question
    result: CandidateResult
    """Program and suites, not yet judged."""
    history: tuple[str, ...]
    episode: tuple[object, ...] = ()
    """Items of equal value are rewarded together, as they were in training; a flat row is rewarded by itself."""
    labels: Mapping[str, Any]
    """What the output row repeats to say where it comes from."""
    record: RolloutRecord | None = None
    """The recorded line; None for a flat row."""

    @property
    def kind(self) -> str:
        """Of a recorded program, see ``RolloutRecord``; empty for a flat row."""
        return self.record.kind if self.record else ""


def read_items(files: Sequence[Path], questions: QuestionTable, *, role: str = "auto") -> list[Item]:
    """Every item of every file, in order.

    Args:
        files: JSON lines, JSON or parquet.
        questions: what rows name by id.
        role: "code" or "test" says what flat rows are; "auto" lets each row say it.

    Raises:
        InputError: a file cannot be read.
        InputError: a row breaks a rule; nothing was judged.
    """
    items: list[Item] = []
    for path in files:
        rows = read_rows(path)
        if not rows:
            raise InputError(f"{path}: no rows; there is nothing to score")
        records = {
            index: rollout_of(row, f"{path}: row {index}")
            for index, row in enumerate(rows)
            if row.keys() >= _RECORDED_COLUMNS
        }
        histories = _histories(records.values())
        for index, row in enumerate(rows):
            try:
                if (record := records.get(index)) is not None:
                    if record.kind == "repair":  # judged on suites that are in another record
                        continue
                    question = _question_of({"question": record.question}, questions)
                    found = [_recorded_item(record, question, histories.get((record.index, record.question), ()))]
                else:
                    present = {name: value for name, value in row.items() if value is not None}
                    found = list(_flat_items(present, questions, role=role))
            except RowError as error:
                raise InputError(f"{path}: row {index}, column {error.column!r}: {error.rule}") from error
            for item in found:
                labels = {"file": path.name, "row": index, **item.labels}
                episode = (str(path), *item.episode) if item.episode else (str(path), index, item.labels["response"])
                items.append(replace(item, index=len(items), labels=labels, episode=episode))
    return items


def response_of(text: str) -> Response:
    """A response of which only the text is known."""
    return Response(prompt_ids=(), token_ids=(), log_probs=(), text=text, policy_version=-1)


# ------------------------------ flat rows ------------------------------


def _flat_items(row: Mapping[str, Any], questions: QuestionTable, *, role: str) -> Iterator[Item]:
    question = _question_of(row, questions)
    found_role = _role_of(row, role)
    history = _listed(row, "history")
    for text in history:
        _check_call(text)
    for number, text in enumerate(_responses(row)):
        if found_role == "code":
            result = _code_result(row, question, text)
        else:
            suite = suite_result(response_of(text))
            result = CandidateResult(response=response_of(""), source=_program(row), suites=(suite,))
        yield Item(
            role=found_role,
            question=question,
            result=result,
            history=history,
            labels={"response": number, "question": question.id, "role": found_role},
        )


def _listed(row: Mapping[str, Any], column: str) -> tuple[str, ...]:
    return tuple(list_of(row, column)) if column in row else ()


def _check_call(text: str) -> None:
    """A replayed call that is none would leave the reward without its history term, unnoticed."""
    try:
        is_expression = bool(ast.parse(text.strip(), mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        is_expression = False
    if not is_expression:
        raise RowError("history", f"{text[:80]!r} is no call to replay; give calls such as 'f(1, 2)', without assert")


def _program(row: Mapping[str, Any]) -> str:
    source = text_of(row, "candidate")
    if not source.strip():
        raise RowError("candidate", "is empty; a suite is judged against the program it was written for")
    return source


def _code_result(row: Mapping[str, Any], question: Question, text: str) -> CandidateResult:
    tests = _listed(row, "tests") or question.tests
    if not tests:
        raise RowError(
            "tests",
            f"question {question.id!r} has no tests, so its programs cannot be judged; give assert statements in a "
            "column 'tests' of the row or of the question",
        )
    suite = SuiteResult(response=response_of(""), asserts=tests)
    return replace(candidate_result(response_of(text), reads_input=question.reads_input), suites=(suite,))


def _role_of(row: Mapping[str, Any], role: str) -> str:
    stated = row.get("role", role if role != "auto" else ("test" if "candidate" in row else "code"))
    if stated not in ROLES:
        raise RowError("role", f"must be one of {', '.join(ROLES)}, got {stated!r}; correct the row or remove it")
    if role not in ("auto", stated):
        raise RowError("role", f"is {stated!r}, but --role={role} was asked for; leave --role out to score both")
    if stated == "test" and "candidate" not in row:
        raise RowError("candidate", "is missing; a suite is judged against the program it was written for")
    return str(stated)


def _question_of(row: Mapping[str, Any], questions: QuestionTable) -> Question:
    if "question" in row:
        found = questions.get(str(row["question"]))
        if found is None:
            known = f"among the {len(questions)} questions given" if questions else "known: no --questions were given"
            raise RowError("question", f"{row['question']!r} is not {known}; name the file that has it by --questions")
        return found
    if "reference" not in row:
        raise RowError(
            "question",
            f"is missing, and so is 'reference'; the row has {sorted(row)}. Give the id of a question of --questions, "
            "or a question of its own",
        )
    native = {name: row[name] for name in _INLINE_COLUMNS if name in row}
    key = hashlib.sha256(repr((native.get("prelude"), row["reference"])).encode("utf-8", "surrogatepass"))
    named = from_native({"id": key.hexdigest()[:16], "prompt": "(not needed)", **native})
    return check_row(replace(named, tests=_listed(row, "tests")))


def _responses(row: Mapping[str, Any]) -> tuple[str, ...]:
    if ("response" in row) == ("responses" in row):
        raise RowError("response", f"give either 'response', a text, or 'responses', a list; the row has {sorted(row)}")
    if "response" in row:
        return (text_of(row, "response"),)
    texts = list_of(row, "responses")
    if not texts:
        raise RowError("responses", "must not be empty; remove the row")
    return tuple(texts)


# ------------------------------ recorded rows ------------------------------


def _histories(records: Iterable[RolloutRecord]) -> dict[tuple[int, str], tuple[str, ...]]:
    """Replayed calls by question: all programs of an episode met the same ones, also one lost to an outage."""
    return {
        (record.index, record.question): tuple(case.call for case in record.verdict.history)
        for record in records
        if record.verdict is not None
    }


def _recorded_item(record: RolloutRecord, question: Question, history: tuple[str, ...]) -> Item:
    suites = tuple(suite_result(response_of(suite.response)) for suite in record.suites)
    response = response_of(record.response)
    result = replace(candidate_result(response, reads_input=question.reads_input), suites=suites)
    if record.is_too_long_to_test:
        result = replace(result, is_too_long_to_test=True)
    return Item(
        role=RECORDED,
        question=question,
        result=result,
        history=history,
        episode=(record.kind, record.step, record.index, record.question),
        labels={},
        record=record,
    )
