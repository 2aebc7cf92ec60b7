"""Mistake Book, store and update: for each question the cases that candidates failed, and how often.

Source of every rule here: Code-A1, arXiv 2603.15611, "Mistake Book". A case is known by its id, which is equal for all
spellings and reads of one call: ``f(3)``, ``f(n=3)``, ``f(3.0)`` and ``abs(f(3))`` are one case. The book keeps the
text of the step in which the case first failed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from .book_file import Rows, read_rows, write_rows

REPLAY_LIMIT = 8
"""Cases of a question replayed at a time; 8 in the published runs."""
_COLUMNS = ("id", "call", "answer", "frequency")
"""Fields of an entry, in the order of the book's file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookEntry:
    """One remembered case."""

    id: str
    """``CaseResult.id``."""
    call: str
    """Source of the call, to be replayed."""
    answer: str
    """The reference's answer as Python literal text. For readers; a replay asks the reference again."""
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
    """What one question's verdicts change in the book. The order of the items does not matter."""

    failed: Sequence[FailedCase] = ()
    """One item per candidate and suite that fails a valid case."""
    passed_replays: Sequence[str] = ()
    """Case ids, one item per candidate that passes the replayed case."""
    dropped_replays: Sequence[str] = ()
    """Calls of replays that the reference no longer answers, one item per candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookChange:
    """What one update did to the book. Changes add up, so a step's change is the sum over questions."""

    num_added: int = 0
    """New cases. A case that leaves and comes back in one update counts here and in ``num_removed``."""
    num_removed: int = 0
    """Cases whose frequency fell to 0 or below."""

    def __add__(self, other: "BookChange") -> "BookChange":
        return BookChange(num_added=self.num_added + other.num_added, num_removed=self.num_removed + other.num_removed)


class MistakeBook:
    """``{question id -> {case id -> entry}}``, each question's entries in the order they were first added.

    Not thread-safe: the trainer updates it once a step, from one place.
    """

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, BookEntry]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MistakeBook) and self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]  # it changes

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
        return tuple(sorted(self.entries(question_id), key=lambda entry: -entry.frequency)[:limit])

    def update(self, question_id: str, update: BookUpdate) -> BookChange:
        """Count one step's outcomes of a question.

        First each passed replay takes 1 from its case, and a case at 0 or below leaves. Then each failure adds 1 to
        its case, which is new where it is not in the book. A replay that the reference no longer answers counts as
        passed: it can break nobody any more.
        """
        entries = self._entries.setdefault(question_id, {})
        lost = Counter(update.passed_replays)
        dropped = Counter(update.dropped_replays)
        for entry in entries.values():
            lost[entry.id] += dropped[entry.call]
        num_added = num_removed = 0
        # Losses first, as in the release: a case that all candidates passed as a replay and one failed as a new case
        # starts again at 1.
        for case_id, number in lost.items():
            if case_id not in entries:
                continue
            frequency = entries[case_id].frequency - number
            if frequency > 0:
                entries[case_id] = replace(entries[case_id], frequency=frequency)
            else:
                del entries[case_id]
                num_removed += 1
        gained = Counter(case.id for case in update.failed)
        for case in _one_text_per_case(update.failed):
            if case.id not in entries:
                num_added += 1
                entries[case.id] = BookEntry(id=case.id, call=case.call, answer=case.answer, frequency=0)
            entry = entries[case.id]
            entries[case.id] = replace(entry, frequency=entry.frequency + gained[case.id])
        if not entries:
            del self._entries[question_id]
        return BookChange(num_added=num_added, num_removed=num_removed)

    def save(self, path: Path) -> None:
        """Write the book as JSON, atomically: after a crash the file is the old one or the new one.

        Raises:
            OSError: the folder cannot be written.
        """
        write_rows(path, self._content())

    @classmethod
    def load(cls, path: Path) -> "MistakeBook":
        """Read a saved book.

        Raises:
            FileNotFoundError: no such file.
            InputError: it is damaged, of another version, or no Mistake Book.
        """
        book = cls()
        for question_id, cases in read_rows(path).items():
            entries = [BookEntry(**dict(zip(_COLUMNS, case, strict=True))) for case in cases]
            book._entries[question_id] = {entry.id: entry for entry in entries}
        return book

    def _content(self) -> Rows:
        values = attrgetter(*_COLUMNS)
        return {name: [list(values(entry)) for entry in self.entries(name)] for name in self.question_ids()}


def _one_text_per_case(failed: Sequence[FailedCase]) -> list[FailedCase]:
    """Of the spellings of a case the shortest, the first in the alphabet among equally short ones.

    In the order of texts, so that the age of new cases, which breaks ties of ``retrieve``, does not depend on which
    candidate was judged first.
    """
    longest_first = sorted(failed, key=lambda case: (len(case.call), case.call, case.answer), reverse=True)
    shortest = {case.id: case for case in longest_first}
    return sorted(shortest.values(), key=lambda case: (case.call, case.answer))
