"""Mistake Book, store and update: for each question the cases that candidates failed, and how often.

Every rule here is from Code-A1, arXiv 2603.15611, "Mistake Book". All spellings and reads of one call have the same id
and are one case: ``f(3)``, ``f(n=3)``, ``f(3.0)`` and ``abs(f(3))``. The book keeps the spelling that failed first.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .book_file import Rows, read_rows, write_rows

REPLAY_LIMIT = 8
"""Cases of a question replayed at a time; 8 in the published runs."""


@dataclass(frozen=True, slots=True)
class BookEntry:
    """One remembered case; its fields are a row of the book's file."""

    id: str
    """``CaseResult.id``."""
    call: str
    """Source of the call; a replay runs it again."""
    answer: str
    """The reference's answer as Python literal text, for readers alone. A replay asks the reference again."""
    frequency: int
    """Failures minus passed replays, at least 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCase:
    """One candidate failed one valid case of one suite."""

    id: str
    """``CaseResult.id``."""
    call: str
    answer: str
    """The reference's return value, never what the Test LLM expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookUpdate:
    """The changes that one question's verdicts ask for. The order of the items does not matter."""

    failed: Sequence[FailedCase] = ()
    """One item per candidate and suite that fails a valid case."""
    passed_replays: Sequence[str] = ()
    """Case ids; one item per candidate that passes the replayed case."""
    dropped_replays: Sequence[str] = ()
    """Calls, not ids, of replays that the reference no longer answers; one item per candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookChange:
    """The result of one update. Results add up, so the result of a step is the sum over its questions."""

    num_added: int = 0
    """New cases. A case that leaves and comes back in one update counts here and in ``num_removed``."""
    num_removed: int = 0
    """Cases whose frequency fell to 0 or below."""

    def __add__(self, other: "BookChange") -> "BookChange":
        return BookChange(
            num_added=self.num_added + other.num_added,
            num_removed=self.num_removed + other.num_removed,
        )


class MistakeBook:
    """Entries by question id and case id; a question's entries stand in the order in which they were added.

    The book is not thread-safe: the trainer updates it once a step, from one place.
    """

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, BookEntry]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MistakeBook) and self._content() == other._content()

    @property
    def num_cases(self) -> int:
        """Cases of all questions together."""
        return sum(map(len, self._entries.values()))

    @property
    def num_questions(self) -> int:
        """Questions with at least one case."""
        return len(self._entries)

    def entries(self, question_id: str) -> tuple[BookEntry, ...]:
        """All cases of a question, oldest first; empty for an unknown one."""
        return tuple(self._entries.get(question_id, {}).values())

    def question_ids(self) -> tuple[str, ...]:
        """Questions with at least one case, sorted."""
        return tuple(sorted(self._entries))

    def retrieve(self, question_id: str, limit: int = REPLAY_LIMIT) -> tuple[BookEntry, ...]:
        """The question's most frequent cases, at most ``limit``; ties go to the older case."""
        # Entries stand oldest first, and sorting leaves ties in their order.
        by_frequency = sorted(self.entries(question_id), key=lambda entry: entry.frequency, reverse=True)
        return tuple(by_frequency[:limit])

    def update(self, question_id: str, update: BookUpdate) -> BookChange:
        """Count one step's outcomes of a question.

        First each passed replay takes 1 from its case, and a case at 0 or below leaves. Then each failure adds 1 to
        its case; a case that is not in the book enters it. A replay that the reference no longer answers counts as
        passed, because it can break no candidate any more.
        """
        entries = self._entries.setdefault(question_id, {})
        num_added = num_removed = 0
        # Losses come first, as in the release. So a case that all candidates passed as a replay, and that one of them
        # failed in a new suite, starts again at 1.
        passed = Counter(update.passed_replays)
        dropped = Counter(update.dropped_replays)
        for entry in self.entries(question_id):
            frequency = entry.frequency - passed[entry.id] - dropped[entry.call]
            entries[entry.id] = replace(entry, frequency=frequency)
            if frequency <= 0:
                del entries[entry.id]
                num_removed += 1
        failures = Counter(case.id for case in update.failed)
        for case in _one_text_per_case(update.failed):
            remembered = entries.get(case.id)
            if remembered is None:
                num_added += 1
                remembered = BookEntry(case.id, case.call, case.answer, frequency=0)
            entries[case.id] = replace(remembered, frequency=remembered.frequency + failures[case.id])
        # A question that was never failed, or whose cases all left, takes no row in the file.
        if not entries:
            del self._entries[question_id]
        return BookChange(num_added=num_added, num_removed=num_removed)

    def save(self, path: Path) -> None:
        """Write the book as JSON, atomically: after a crash the file is either the old or the new one.

        Raises:
            OSError: the folder cannot be written.
        """
        write_rows(path, self._content())

    @classmethod
    def load(cls, path: Path) -> "MistakeBook":
        """Read a saved book.

        Raises:
            FileNotFoundError: no such file.
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
    """Keep one failure of each case: the shortest spelling, and of equally short ones the first in the alphabet.

    The result is sorted by text. New cases enter the book in this order, and their age breaks ties of ``retrieve``; so
    it must not depend on which candidate was judged first.
    """
    longest_first = sorted(failed, key=lambda case: (len(case.call), case.call, case.answer), reverse=True)
    # The last of equal keys stays in a dict: the shortest spelling.
    shortest = {case.id: case for case in longest_first}
    return sorted(shortest.values(), key=lambda case: (case.call, case.answer))
