"""Mistake Book, store and update: for each question, the cases that candidates failed, each with a frequency.

All rules of this file are from Code-A1, arXiv 2603.15611, "Mistake Book". Cases that show the same mistake, such as
``f(3)``, ``f(n=3)``, ``f(3.0)`` and ``abs(f(3))``, have the same id and are one case. The book keeps the spelling that
failed first.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .book_file import Rows, read_rows, write_rows

REPLAY_LIMIT = 8
"""Largest number of cases of a question that are replayed in one step; 8 in the published runs."""


@dataclass(frozen=True, slots=True)
class BookEntry:
    """One case in the book; its fields are a row of the book's file."""

    id: str
    """``CaseResult.id``."""
    call: str
    """Source of the call that a replay runs."""
    answer: str
    """The reference's answer as a Python literal, only for readers of the file. A replay runs the reference again."""
    frequency: int
    """Failures minus passed replays, at least 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCase:
    """A failure of one candidate in one valid case of one suite."""

    id: str
    """``CaseResult.id``."""
    call: str
    answer: str
    """The reference's return value, never the value that the Test LLM expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookUpdate:
    """The outcomes of one question in one step. The order of the items does not matter."""

    failed: Sequence[FailedCase] = ()
    """One item for each failure: a candidate that fails a case in two suites gives two items."""
    passed_replays: Sequence[str] = ()
    """Calls, not ids, since a case's id depends on the suites beside it; one item for each candidate that passes the
    replayed call."""
    dropped_replays: Sequence[str] = ()
    """Calls of replays that the reference no longer answers; one item for each candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookChange:
    """The result of one update. The result of a step is the sum over its questions."""

    num_added: int = 0
    """Number of new cases. A case that leaves and returns in one update counts as added and as removed."""
    num_removed: int = 0
    """Number of cases whose frequency fell to 0 or below."""

    def __add__(self, other: "BookChange") -> "BookChange":
        return BookChange(
            num_added=self.num_added + other.num_added,
            num_removed=self.num_removed + other.num_removed,
        )


class MistakeBook:
    """The entries of all questions. The entries of a question keep the order in which they were added.

    The book is not thread-safe. Only the trainer updates it, once a step.
    """

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, BookEntry]] = {}  # question id -> case id -> entry

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MistakeBook) and self._content() == other._content()

    @property
    def num_cases(self) -> int:
        """Number of cases of all questions."""
        return sum(map(len, self._entries.values()))

    @property
    def num_questions(self) -> int:
        """Number of questions with at least one case."""
        return len(self._entries)

    def entries(self, question_id: str) -> tuple[BookEntry, ...]:
        """All cases of a question, the oldest first; empty for an unknown question."""
        return tuple(self._entries.get(question_id, {}).values())

    def question_ids(self) -> tuple[str, ...]:
        """Ids of the questions with at least one case, sorted."""
        return tuple(sorted(self._entries))

    def retrieve(self, question_id: str, limit: int = REPLAY_LIMIT) -> tuple[BookEntry, ...]:
        """At most ``limit`` cases of the question, the most frequent first; ties go to the older case."""
        # Entries come oldest first, and a stable sort keeps the order of ties.
        by_frequency = sorted(
            self.entries(question_id),
            key=lambda entry: entry.frequency,
            reverse=True,
        )
        return tuple(by_frequency[:limit])

    def update(self, question_id: str, update: BookUpdate) -> BookChange:
        """Count the outcomes of a question in one step.

        First, each passed replay takes 1 from the frequency of its case; a case at 0 or below is deleted. Then each
        failure adds 1 to the frequency of its case; a new case enters the book. A replay that the reference no longer
        answers counts as passed, because no candidate can fail it any more.
        """
        entries = self._entries.setdefault(question_id, {})
        num_added = num_removed = 0
        # Passed replays are subtracted before failures are added, as in the public release. For example, if all
        # candidates pass a replay and one of them fails the same case in a new suite, the case may leave the book and
        # return with frequency 1.
        passed = Counter([*update.passed_replays, *update.dropped_replays])
        for entry in self.entries(question_id):
            frequency = entry.frequency - passed[entry.call]
            if frequency > 0:
                entries[entry.id] = replace(entry, frequency=frequency)
            else:
                del entries[entry.id]
                num_removed += 1
        # A call keeps the id under which it entered, though other suites beside it would give it another id today.
        ids = {entry.call: entry.id for entry in entries.values()}
        failed = [replace(case, id=ids.get(case.call, case.id)) for case in update.failed]
        failures = Counter(case.id for case in failed)
        for case in _one_text_per_case(failed):
            if case.id not in entries:
                num_added += 1
                entries[case.id] = BookEntry(case.id, case.call, case.answer, frequency=0)
            entry = entries[case.id]
            entries[case.id] = replace(entry, frequency=entry.frequency + failures[case.id])
        # The book's file has no questions without cases.
        if not entries:
            del self._entries[question_id]
        return BookChange(num_added=num_added, num_removed=num_removed)

    def save(self, path: Path) -> None:
        """Write the book as JSON, atomically: after a crash the file holds either the old or the new book.

        Raises:
            OSError: the folder cannot be written.
        """
        write_rows(path, self._content())

    @classmethod
    def load(cls, path: Path) -> "MistakeBook":
        """Read a saved book.

        Raises:
            FileNotFoundError: the file does not exist.
            InputError: the file is damaged, has another version, or is no Mistake Book.
        """
        book = cls()
        for question_id, rows in read_rows(path).items():
            entries = [BookEntry(*row) for row in rows]
            book._entries[question_id] = {entry.id: entry for entry in entries}
        return book

    def _content(self) -> Rows:
        rows: Rows = {}
        for question_id in self.question_ids():
            entries = self.entries(question_id)
            rows[question_id] = [[entry.id, entry.call, entry.answer, entry.frequency] for entry in entries]
        return rows


def _one_text_per_case(failed: Sequence[FailedCase]) -> list[FailedCase]:
    """Keep one failure of each case: the one with the shortest spelling, or the alphabetically first of the shortest.

    The result is sorted by text, because new cases enter the book in this order, and ``retrieve`` prefers older cases.
    The order must not depend on which candidate was judged first.
    """
    longest_first = sorted(
        failed,
        key=lambda case: (len(case.call), case.call, case.answer),
        reverse=True,
    )
    # A dict keeps the last value of a key, here the shortest spelling.
    shortest = {case.id: case for case in longest_first}
    return sorted(shortest.values(), key=lambda case: (case.call, case.answer))
