"""One row on its way: the question it became, or why it was left out."""

import enum
from dataclasses import dataclass
from typing import Any

import msgspec

from ...algorithm.question import Question

MOST_OVERLAPS = 5
"""Overlaps of one row that are written to ``OUTPUT.dropped.jsonl``."""


class Reason(enum.StrEnum):
    """Why a row is left out, in the order in which rows are looked at."""

    UNUSABLE_ROW = "unusable row"
    """Followed by the column and the rule it breaks."""
    OVERLAP = "overlap"
    """With a question of an evaluation set."""
    LOAD_FAILED = "load_failed"
    REFERENCE_NONDETERMINISTIC = "reference_nondeterministic"
    REFERENCE_SLOW = "reference_slow"
    REFERENCE_FAILS = "reference_fails"
    """It contradicts a test of its own, or raises in one."""
    UNENCODABLE = "unencodable"
    """It answers a test with something that is no builtin value, or too large."""
    TOO_FEW_TESTS = "too_few_tests"
    OUTAGE = "outage"
    """The sandbox could not run it: nothing is known about it."""
    NEAR_DUPLICATE = "near_duplicate"
    """Of the prompt of an earlier row."""
    DUPLICATE_REFERENCE = "duplicate_reference"
    TOO_HARD = "too_hard"
    """The base model solves it less often than ``--keep`` says."""
    TOO_EASY = "too_easy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row that is a question."""

    file: str
    row: int
    """From 0, in its file."""
    question: Question
    num_solved: int | None = None
    """Programs of the base model that solve it; None where none was asked."""


class Overlap(msgspec.Struct, frozen=True, kw_only=True, rename={"set_name": "set"}):
    """One question of an evaluation set that a row repeats."""

    set_name: str
    id: str
    how: str
    """Rule: "id", "prompt", "reference" or "tests"."""
    detail: str
    """What is shared."""


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """A row that was left out."""

    file: str
    row: int
    id: str
    """"" where the row has none that can be used."""
    reason: str
    """A ``Reason``; of an unusable row with column and rule."""
    detail: str = ""
    overlaps: tuple[Overlap, ...] = ()
    """All questions that it repeats; only of ``Reason.OVERLAP``."""

    @classmethod
    def of(cls, entry: Entry, reason: Reason, detail: str = "", overlaps: tuple[Overlap, ...] = ()) -> "Dropped":
        """The entry, left out."""
        return cls(
            file=entry.file, row=entry.row, id=entry.question.id, reason=reason.value, detail=detail, overlaps=overlaps
        )

    def record(self) -> dict[str, Any]:
        """Plain values for a line of ``OUTPUT.dropped.jsonl``; of many overlaps the first ``MOST_OVERLAPS``."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        if overlaps := plain.pop("overlaps"):
            plain |= {"num_overlaps": len(overlaps), "overlaps": overlaps[:MOST_OVERLAPS]}
        return plain
