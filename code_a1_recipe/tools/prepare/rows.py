"""The state of a row between the checks: a question, or the reason for which the row was left out."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from ...algorithm.question import Question


class Reason(enum.StrEnum):
    """The reasons for which rows are dropped, in the order of the checks."""

    UNUSABLE_ROW = "unusable row"
    """The row breaks a rule of the reader. ``Dropped.reason`` also has the column and the rule."""
    OVERLAP = "overlap"
    """The row repeats a question of an evaluation set."""
    LOAD_FAILED = "load_failed"
    REFERENCE_NONDETERMINISTIC = "reference_nondeterministic"
    REFERENCE_SLOW = "reference_slow"
    REFERENCE_FAILS = "reference_fails"
    """In a test, the reference raises, or returns another value than the test expects."""
    UNENCODABLE = "unencodable"
    """In a test, the reference returns a value of a type that is not builtin, or a value that is too large."""
    PASSED_BY_CONTROL = "passed_by_control"
    """A program that solves nothing passes the tests; only with ``--control``."""
    TOO_FEW_TESTS = "too_few_tests"
    OUTAGE = "outage"
    """The sandbox could not judge the row, so nothing is known about the row."""
    DUPLICATE_PROMPT = "duplicate_prompt"
    """An earlier row has the same words in its prompt."""
    DUPLICATE_REFERENCE = "duplicate_reference"
    """An earlier row has the same program."""
    NOT_RATED = "not_rated"
    """The evaluation of ``--rates`` has no verdict on the question."""
    TOO_HARD = "too_hard"
    """The model of ``--rates`` solves the question less often than ``--keep`` allows."""
    TOO_EASY = "too_easy"
    """The model of ``--rates`` solves the question more often than ``--keep`` allows."""


class Overlap(msgspec.Struct, frozen=True, kw_only=True, rename={"set_name": "set"}):
    """One question of an evaluation set that a row repeats."""

    set_name: str
    id: str
    how: str
    """The rule that found the overlap: "id", "prompt", "reference" or "tests"."""
    detail: str
    """The text that the row and the question share."""


class Dropped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dropped row: a line of ``OUTPUT.dropped.jsonl``."""

    file: str
    row: int
    """Number of the row in its file, from 0."""
    id: str
    """The row's id; empty if the row has no id."""
    reason: str
    """A ``Reason``. For an unusable row, the column and the rule follow."""
    detail: str
    overlaps: tuple[Overlap, ...] = ()
    """All questions that the row repeats; only with ``Reason.OVERLAP``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row that was read as a question and not dropped so far."""

    file: str
    row: int
    """Number of the row in its file, from 0."""
    question: Question
    others: tuple[Question, ...] = ()
    """Other readings of the row: the same question with another reference, or with another form of its answers."""
    removed_tests: tuple[str, ...] = ()
    """The reason for each test that was removed."""

    @property
    def name(self) -> str:
        """Id and place, for messages."""
        return f"{self.question.id} (row {self.row} of {self.file})"

    def dropped(self, reason: Reason, detail: str, overlaps: tuple[Overlap, ...] = ()) -> Dropped:
        """Make the record of a dropped row from this entry."""
        return Dropped(
            file=self.file,
            row=self.row,
            id=self.question.id,
            reason=reason.value,
            detail=detail,
            overlaps=overlaps,
        )


Stage = Iterable[Entry | Dropped]
"""The result of a check: all rows in order, kept or dropped."""
