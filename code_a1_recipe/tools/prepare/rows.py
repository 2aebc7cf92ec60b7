"""The state of a row between the checks: a question, or the reason for which the row was left out."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...algorithm.question import Question


class Reason(enum.StrEnum):
    """Why a row is left out, in the order of the checks."""

    UNUSABLE_ROW = "unusable row"
    """The row breaks a rule of the reader. The column and the rule follow."""
    OVERLAP = "overlap"
    """The row repeats a question of an evaluation set."""
    LOAD_FAILED = "load_failed"
    REFERENCE_NONDETERMINISTIC = "reference_nondeterministic"
    REFERENCE_SLOW = "reference_slow"
    REFERENCE_FAILS = "reference_fails"
    """The reference contradicts one of its tests, or raises in one."""
    UNENCODABLE = "unencodable"
    """The reference returns a value in a test that is not builtin, or too large."""
    PASSED_BY_CONTROL = "passed_by_control"
    """A program that solves nothing passes the tests; only with ``--control``."""
    TOO_FEW_TESTS = "too_few_tests"
    OUTAGE = "outage"
    """The sandbox could not judge the row, so nothing is known about it."""
    NEAR_DUPLICATE = "near_duplicate"
    """An earlier row has nearly the same prompt."""
    DUPLICATE_REFERENCE = "duplicate_reference"
    TOO_HARD = "too_hard"
    """The base model solves the question less often than ``--keep`` says."""
    TOO_EASY = "too_easy"


class Overlap(msgspec.Struct, frozen=True, kw_only=True, rename={"set_name": "set"}):
    """One question of an evaluation set that a row repeats."""

    set_name: str
    id: str
    how: str
    """Rule: "id", "prompt", "reference" or "tests"."""
    detail: str
    """The text that both share, or how similar they are."""


class Dropped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row that was left out: a line of ``OUTPUT.dropped.jsonl``."""

    file: str
    row: int
    """Number of the row in its file, from 0."""
    id: str
    """The row's id; empty if it has no usable one."""
    reason: str
    """A ``Reason``; for an unusable row, the column and the rule follow it."""
    detail: str
    overlaps: tuple[Overlap, ...] = ()
    """All questions that the row repeats; only with ``Reason.OVERLAP``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row that is a question."""

    file: str
    row: int
    """Number of the row in its file, from 0."""
    question: Question
    others: tuple[Question, ...] = ()
    """The same question with another reference, or with another reading of its answers."""
    removed_tests: tuple[str, ...] = ()
    """The reason for each test that was removed."""
    rates: dict[str, Any] = field(default_factory=dict)
    """Further columns of the training set, which say how often a base model solves the question."""

    @property
    def name(self) -> str:
        """Id and place, for messages."""
        return f"{self.question.id} (row {self.row} of {self.file})"

    def dropped(self, reason: Reason, detail: str, overlaps: tuple[Overlap, ...] = ()) -> Dropped:
        """Make the record with which the entry is left out."""
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
