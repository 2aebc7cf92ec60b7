"""Mistake Book, store and update: for each question the cases that candidates failed, and how often.

Source of every rule here: Code-A1, arXiv 2603.15611, "Mistake Book". A case is known by its key, which is
equal for all spellings and reads of one call, so ``f(3)``, ``f(n=3)``, ``f(3.0)`` and ``abs(f(3))`` are one
case with the text that failed first.
"""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import write_whole

logger = logging.getLogger(__name__)

FORMAT_NAME = "code-a1-mistake-book"
FORMAT_VERSION = 2

REPLAY_LIMIT = 8
"""Cases of a question replayed at a time; 8 in the published runs."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCase:
    """One candidate failed one valid case of one suite."""

    call: str
    answer: str
    """The reference's return value, never what the Test LLM expected."""
    key: str = ""
    """``CaseResult.key``; empty when the call is its own key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookChange:
    """What one update did to the book. Changes add up, so a step's change is the sum over questions."""

    num_added: int = 0
    """Cases that are new."""
    num_removed: int = 0
    """Cases whose frequency fell to 0 or below."""
    num_raised: int = 0
    num_lowered: int = 0
    """Cases that were there before and still are, with another frequency."""

    def __add__(self, other: "BookChange") -> "BookChange":
        return BookChange(
            num_added=self.num_added + other.num_added,
            num_removed=self.num_removed + other.num_removed,
            num_raised=self.num_raised + other.num_raised,
            num_lowered=self.num_lowered + other.num_lowered,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BookStats:
    """The size of a book, for metrics."""

    num_questions: int
    num_cases: int
    total_frequency: int
    max_frequency: int


class MistakeBook:
    """``{question id -> {key -> entry}}``, each question's entries in the order they were first added.

    Not thread-safe: the trainer updates it once a step, from one place.
    """

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, BookEntry]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MistakeBook) and self._rows() == other._rows()

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def num_questions(self) -> int:
        """Questions with at least one case."""
        return len(self._entries)

    @property
    def num_cases(self) -> int:
        return sum(len(entries) for entries in self._entries.values())

    def entries(self, question_id: str) -> tuple[BookEntry, ...]:
        """All cases of a question, oldest first; empty for an unknown one."""
        return tuple(self._entries.get(question_id, {}).values())

    def question_ids(self) -> tuple[str, ...]:
        """Questions with at least one case, sorted."""
        return tuple(sorted(self._entries))

    def stats(self) -> BookStats:
        frequencies = [entry.frequency for entry in self._all_entries()]
        return BookStats(
            num_questions=self.num_questions,
            num_cases=len(frequencies),
            total_frequency=sum(frequencies),
            max_frequency=max(frequencies, default=0),
        )

    def retrieve(self, question_id: str, limit: int = REPLAY_LIMIT) -> tuple[BookEntry, ...]:
        """The question's most frequent cases, at most ``limit``; ties go to the older case.

        Raises:
            ValueError: ``limit`` is negative.
        """
        if limit < 0:
            raise ValueError(f"limit (cases to replay) must be at least 0, got {limit!r}")
        return tuple(sorted(self.entries(question_id), key=lambda entry: -entry.frequency)[:limit])

    def update(self, question_id: str, *, failed: Sequence[FailedCase], passed_replays: Sequence[str]) -> BookChange:
        """Count one step's outcomes of a question.

        A case gains 1 for each item of ``failed`` (one per candidate and suite that fails it as a valid
        case) and loses 1 for each item of ``passed_replays`` (one per candidate that passes it as a
        replay); at 0 or below it is deleted. Only the **net** change counts: a case failed by 3 and passed
        by 2 in one step gains 1, one failed and passed equally often stays as it was, or stays out. So the
        order of the items does not matter. A pass of a case that is not in the book does nothing by itself.

        New cases are appended in the order of their call texts, which keeps ties of ``retrieve`` the same
        for any order of ``failed``. Of several texts with one key the shortest is kept, or the first among
        equally short ones in the order of texts.

        Args:
            question_id: any string.
            failed: calls with the reference's answer.
            passed_replays: keys.

        Returns:
            What changed.
        """
        net: Counter[str] = Counter(case.key or case.call for case in failed)
        net.subtract(passed_replays)
        texts = _texts_by_key(question_id, failed)
        entries = self._entries.setdefault(question_id, {})
        change = BookChange()
        for key in sorted(net, key=lambda key: texts.get(key, (key, ""))):
            change += _apply(entries, key, net[key], texts.get(key))
        if not entries:
            del self._entries[question_id]
        return change

    def digest(self) -> str:
        """SHA-256 of the content, age order included, as hex. Equal books have equal digests."""
        return _digest(self._rows())

    def save(self, path: Path) -> None:
        """Write the book as JSON, atomically: after a crash the file is the old one or the new one.

        Raises:
            OSError: the folder cannot be written.
        """
        rows = self._rows()
        document = {
            "format": FORMAT_NAME,
            "version": FORMAT_VERSION,
            "digest": _digest(rows),
            "questions": rows,
        }
        write_whole(path, json.dumps(document, indent=1))

    @classmethod
    def load(cls, path: Path) -> "MistakeBook":
        """Read a saved book.

        Raises:
            FileNotFoundError: no such file.
            InputError: it is damaged, of another version, or no Mistake Book.
        """
        try:
            document = json.loads(path.read_text(encoding="ascii"))
        except ValueError as error:  # JSON and Unicode errors are both ValueErrors
            raise InputError(
                f"{path} is not readable JSON ({error}); restore it from the checkpoint it belongs to"
            ) from error
        rows = _checked_rows(document, path)
        book = cls()
        for question_id, cases in rows.items():
            book._entries[question_id] = {
                key or call: BookEntry(call=call, answer=answer, frequency=frequency, key=key)
                for call, answer, frequency, key in cases
            }
        return book

    def _all_entries(self) -> Iterator[BookEntry]:
        for entries in self._entries.values():
            yield from entries.values()

    def _rows(self) -> dict[str, list[list[Any]]]:
        """Questions by id, each with ``[call, answer, frequency, key]`` oldest first."""
        return {
            question_id: [[e.call, e.answer, e.frequency, e.key] for e in self._entries[question_id].values()]
            for question_id in sorted(self._entries)
        }


def _texts_by_key(question_id: str, failed: Sequence[FailedCase]) -> dict[str, tuple[str, str]]:
    """One call and answer per key. Two answers to one call mean a reference that wavers: the smaller is kept."""
    texts: dict[str, tuple[str, str]] = {}
    for case in failed:
        known = texts.setdefault(case.key or case.call, (case.call, case.answer))
        if known[0] == case.call and known[1] != case.answer:
            logger.warning(
                "question=%s the reference answered %r and %r to %r",
                question_id,
                known[1],
                case.answer,
                case.call,
            )
        texts[case.key or case.call] = min(known, (case.call, case.answer), key=lambda text: (len(text[0]), text))
    return texts


def _apply(entries: dict[str, BookEntry], key: str, net: int, text: tuple[str, str] | None) -> BookChange:
    """Add ``net`` to one case in place. ``text`` is its call and answer, None when the case was only passed."""
    old = entries.get(key)
    frequency = net + (old.frequency if old else 0)
    if frequency <= 0:
        return BookChange(num_removed=1 if entries.pop(key, None) else 0)
    if old is not None:  # it keeps the text that failed first, with the latest answer to it
        call, answer = old.call, text[1] if text is not None and text[0] == old.call else old.answer
    else:
        assert text is not None, "a case that was only passed has no positive count"
        call, answer = text
    entries[key] = BookEntry(call=call, answer=answer, frequency=frequency, key="" if key == call else key)
    if old is None:
        return BookChange(num_added=1)
    return BookChange(num_raised=int(net > 0), num_lowered=int(net < 0))


def _digest(rows: dict[str, list[list[Any]]]) -> str:
    text = json.dumps(rows, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _checked_rows(document: Any, path: Path) -> dict[str, list[list[Any]]]:
    if not isinstance(document, dict) or document.get("format") != FORMAT_NAME:
        raise InputError(f"{path} is not a Mistake Book: its 'format' must be {FORMAT_NAME!r}")
    if document.get("version") != FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {document.get('version')!r}, this code reads {FORMAT_VERSION}; "
            f"load it with the release that wrote it"
        )
    rows = document.get("questions")
    if not isinstance(rows, dict) or not all(_is_question(cases) for cases in rows.values()):
        raise InputError(f"{path} is damaged: 'questions' must map ids to lists of [call, answer, frequency >= 1, key]")
    if _digest(rows) != document.get("digest"):
        raise InputError(f"{path} is damaged or was edited: its content does not match its digest")
    return rows


def _is_question(cases: Any) -> bool:
    return isinstance(cases, list) and all(
        isinstance(case, list)
        and len(case) == 4
        and isinstance(case[0], str)
        and isinstance(case[1], str)
        and isinstance(case[3], str)
        and type(case[2]) is int
        and case[2] >= 1
        for case in cases
    )
