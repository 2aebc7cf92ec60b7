"""Mistake Book, store and update: for each question the cases that candidates failed, and how often.

Source of every rule here: Code-A1, arXiv 2603.15611, "Mistake Book". A case is known by its key, which is
equal for all spellings and reads of one call, so ``f(3)``, ``f(n=3)``, ``f(3.0)`` and ``abs(f(3))`` are one
case with the text that failed first.

Beyond the paper each case has a quality, by which ``MistakeBook.shrink`` keeps the best ones.
"""

import heapq
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from pathlib import Path

from .book_file import Rows, read_rows, write_rows

logger = logging.getLogger(__name__)

REPLAY_LIMIT = 8
"""Cases of a question replayed at a time; 8 in the published runs."""
_COLUMNS = ("call", "answer", "frequency", "key", "num_met", "num_failed")
"""Fields of an entry, in the order of the book's file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookEntry:
    """One remembered case."""

    call: str
    """Source of the call, to be replayed."""
    answer: str
    """The reference's answer as Python literal text. For readers; a replay asks the reference again."""
    frequency: int
    """Failures minus passed replays, at least 1."""
    key: str = ""
    """What the case is known by; the call itself where the judge gave no key."""
    num_met: int = 0
    """How often a program met the case, as a new case or as a replay, since it came into the book."""
    num_failed: int = 0
    """How often one failed it then, 0 to ``num_met``."""

    @property
    def quality(self) -> float:
        """How much the case tells programs apart, in (0, 1]: ``4 p (1 - p)``, 1 where half of them fail it.

        ``p = (num_failed + 1) / (num_met + 2)`` is the chance to fail by Laplace's rule of succession, ``p (1 - p)``
        the learnability of unsupervised environment design (arXiv 2408.15099).
        """
        return 4 * (self.num_failed + 1) * (self.num_met - self.num_failed + 1) / (self.num_met + 2) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCase:
    """One candidate failed one valid case of one suite."""

    call: str
    answer: str
    """The reference's return value, never what the Test LLM expected."""
    key: str = ""
    """``CaseResult.key``; empty when the call is its own key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookUpdate:
    """What one question's verdicts change in the book."""

    failed: Sequence[FailedCase] = ()
    """Calls with the reference's answer, one per candidate and suite that fails it as a valid case."""
    passed_replays: Sequence[str] = ()
    """Keys, one per candidate that passes it as a replay."""
    dropped_replays: Sequence[str] = ()
    """Calls, one per candidate that did not meet it as a replay, for the reference has no answer to it any more."""
    failed_replays: Sequence[str] = ()
    """Keys, one per candidate that fails it as a replay; they do not change the frequency."""
    passed_new: Sequence[str] = ()
    """Keys, one per candidate and suite that passes it as a valid case; likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookChange:
    """What one update did to the book. Changes add up, so a step's change is the sum over questions."""

    num_added: int = 0
    """Cases that are new."""
    num_removed: int = 0
    """Cases whose frequency fell to 0 or below, or that were beyond a bound."""

    def __add__(self, other: "BookChange") -> "BookChange":
        return BookChange(num_added=self.num_added + other.num_added, num_removed=self.num_removed + other.num_removed)


class MistakeBook:
    """``{question id -> {key -> entry}}``, each question's entries in the order they were first added.

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

        A case loses 1 for each item of ``passed_replays`` (one per candidate that passes it as a replay) and at 0 or
        below it is deleted; then it gains 1 for each item of ``failed`` (one per candidate and suite that fails it as
        a valid case), and is new where it was deleted. The order of the items does not matter. A pass of a case that
        is not in the book does nothing by itself. A case without an answer (``dropped_replays``) counts as passed,
        since it can break nobody any more.

        New cases are appended in the order of their call texts, which keeps ties of ``retrieve`` the same
        for any order of ``failed``. Of several texts with one key the shortest is kept, or the first among
        equally short ones in the order of texts.

        Cases that are in the book then count all items as meetings.
        """
        # Keys and not texts: a candidate meets the same case under many spellings.
        gained = Counter(case.key or case.call for case in update.failed)
        num_failed = gained + Counter(update.failed_replays)
        num_met = num_failed + Counter(update.passed_replays) + Counter(update.passed_new)
        lost = Counter(update.passed_replays)
        texts = _texts_by_key(question_id, update.failed)
        entries = self._entries.setdefault(question_id, {})
        if dropped := Counter(update.dropped_replays):
            lost.update({key: dropped[entry.call] for key, entry in entries.items() if entry.call in dropped})
        num_added = num_removed = 0
        for key, number in list(lost.items()):
            if key not in entries or entries[key].frequency <= number:
                num_removed += entries.pop(key, None) is not None
                del lost[key]  # these passes are used up
        # In the order of texts, since the age of new cases breaks the ties of `retrieve`.
        for key, (call, answer) in sorted(texts.items(), key=itemgetter(1)):
            if key not in entries:
                num_added += 1
                entries[key] = BookEntry(
                    call=call,
                    answer=answer,
                    frequency=0,
                    key="" if key == call else key,
                )
            elif entries[key].call == call:  # the text that failed first stays, with the latest answer to it
                entries[key] = replace(entries[key], answer=answer)
        for key in entries.keys() & {*num_met, *lost}:
            entry = entries[key]
            entries[key] = replace(
                entry,
                frequency=entry.frequency + gained[key] - lost[key],
                num_met=entry.num_met + num_met[key],
                num_failed=entry.num_failed + num_failed[key],
            )
        if not entries:
            del self._entries[question_id]
        return BookChange(num_added=num_added, num_removed=num_removed)

    def shrink(self, max_size: int) -> BookChange:
        """Drop the cases beyond ``max_size``: those of the lowest quality, of equal ones the less frequent.

        Of these the first in the order of question ids and ages. It takes a pass over all cases, so it is for once a
        step.
        """
        # In the order of ids, so that a book that was saved and loaded drops the same cases.
        every = ((name, key, entry) for name in self.question_ids() for key, entry in self._entries[name].items())
        surplus = heapq.nsmallest(self.num_cases - max_size, every, key=_worth)
        for question_id, key, _ in surplus:
            del self._entries[question_id][key]
        self._entries = {name: entries for name, entries in self._entries.items() if entries}
        return BookChange(num_removed=len(surplus))

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
            book._entries[question_id] = {entry.key or entry.call: entry for entry in entries}
        return book

    def _content(self) -> Rows:
        values = attrgetter(*_COLUMNS)
        return {name: [list(values(entry)) for entry in self.entries(name)] for name in self.question_ids()}


def _worth(case: tuple[str, str, BookEntry]) -> tuple[float, int]:
    entry = case[2]
    return entry.quality, entry.frequency


def _texts_by_key(question_id: str, failed: Sequence[FailedCase]) -> dict[str, tuple[str, str]]:
    """Call and answer per key. Two answers to one call mean a reference that wavers: the smaller is kept."""
    texts: dict[str, tuple[str, str]] = {}
    for case in failed:
        key, text = case.key or case.call, (case.call, case.answer)
        known = texts.setdefault(key, text)
        if known[0] == case.call and known[1] != case.answer:
            logger.warning(
                "question=%s the reference answered %r and %r to %r", question_id, known[1], case.answer, case.call
            )
        texts[key] = min(known, text, key=lambda text: (len(text[0]), text))
    return texts
