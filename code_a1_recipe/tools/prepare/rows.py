"""A row on its way: the question that it became, or the reason why it was left out."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...algorithm.question import Question


class Reason(enum.StrEnum):
    """Why a row is left out, in the order in which rows are looked at."""

    UNUSABLE_ROW = "unusable row"
    """Followed by the column and the rule that it breaks."""
    OVERLAP = "overlap"
    """With a question of an evaluation set."""
    LOAD_FAILED = "load_failed"
    REFERENCE_NONDETERMINISTIC = "reference_nondeterministic"
    REFERENCE_SLOW = "reference_slow"
    REFERENCE_FAILS = "reference_fails"
    """It contradicts a test of its own, or raises in one."""
    UNENCODABLE = "unencodable"
    """It answers a test with something that is no builtin value, or too large."""
    PASSED_BY_CONTROL = "passed_by_control"
    """A program that solves nothing passes its tests; with ``--control``."""
    TOO_FEW_TESTS = "too_few_tests"
    OUTAGE = "outage"
    """The sandbox could not run it, so nothing is known about it."""
    NEAR_DUPLICATE = "near_duplicate"
    """Of the prompt of an earlier row."""
    DUPLICATE_REFERENCE = "duplicate_reference"
    TOO_HARD = "too_hard"
    """The base model solves it less often than ``--keep`` says."""
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
    """From 0, in its file."""
    id: str
    """"" where the row has none that can be used."""
    reason: str
    """A ``Reason``; of an unusable row with column and rule."""
    detail: str
    overlaps: tuple[Overlap, ...] = ()
    """All questions that it repeats; only of ``Reason.OVERLAP``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row that is a question."""

    file: str
    row: int
    """From 0, in its file."""
    question: Question
    others: tuple[Question, ...] = ()
    """The question with another reference, or another reading of its answers."""
    removed_tests: tuple[str, ...] = ()
    """Why each test that it no longer has was taken out."""
    rates: dict[str, Any] = field(default_factory=dict)
    """Further columns of the training set: how often a base model solves it."""

    @property
    def name(self) -> str:
        """Id and place, for messages."""
        return f"{self.question.id} (row {self.row} of {self.file})"

    def dropped(self, reason: Reason, detail: str, overlaps: tuple[Overlap, ...] = ()) -> Dropped:
        """The entry, left out."""
        return Dropped(
            file=self.file, row=self.row, id=self.question.id, reason=reason.value, detail=detail, overlaps=overlaps
        )


Stage = Iterable[Entry | Dropped]
"""Rows in their order: those that stay, and those that a check leaves out."""
