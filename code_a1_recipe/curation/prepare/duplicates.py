"""Rows of the training data that repeat one another: nearly the same prompt, or the same reference."""

from collections import Counter
from collections.abc import Iterator, Sequence

from sandbox import syntax_key

from ...jobs.progress import watched
from .entries import Dropped, Entry, Reason
from .near_index import Hashes, NearIndex, hashes_of, jaccard
from .texts import LEAST_PROMPTS, PROMPT_NGRAM, content_words, ngrams, words_of


def split_duplicates(
    entries: Sequence[Entry], *, threshold: float, phrases: frozenset[str]
) -> Iterator[tuple[Entry, Dropped | None]]:
    """Each entry, and where an earlier one that stays is nearly the same, why this one goes.

    Args:
        entries: in order; the first of several stays.
        threshold: Jaccard similarity, in (0, 1], see :class:`_Prompts`.
        phrases: common phrases of the data, which do not count, except where statements are equal with them: one that
            was copied often consists of nothing else.
    """
    equal = _Prompts(1.0, frozenset(), least_whole=threshold / 2)
    views = (equal, _Prompts(threshold, phrases, least_whole=threshold / 2))
    first_with: dict[str, Entry] = {}
    for entry in watched(entries, total=len(entries), what="duplicates", unit="row"):
        program = syntax_key(entry.question.reference)
        if found := next(filter(None, (prompts.repeated_by(entry) for prompts in views)), ""):
            yield entry, Dropped.of(entry, Reason.NEAR_DUPLICATE, found)
        elif program in first_with:
            detail = f"of {_named(first_with[program])}, the same program"
            yield entry, Dropped.of(entry, Reason.DUPLICATE_REFERENCE, detail)
        else:
            for prompts in views:
                prompts.add(entry)
            first_with[program] = entry
            yield entry, None


class _Prompts:
    """Prompts that stay, asked for those that another one repeats.

    Two prompts are the same where the Jaccard similarity of their statements' runs of ``PROMPT_NGRAM`` words reaches
    the threshold and that of the whole prompts, code included, ``least_whole``: a statement may say no more than "fill
    in the body of this function". One that ``LEAST_PROMPTS`` prompts which stay have already is no longer looked at;
    the whole prompts are then compared by the threshold.
    """

    def __init__(self, threshold: float, phrases: frozenset[str], *, least_whole: float) -> None:
        self._phrases = phrases
        self._least_whole = least_whole
        self._index = NearIndex(threshold)
        self._entries: list[Entry] = []
        self._num_with: Counter[int] = Counter()

    def add(self, entry: Entry) -> None:
        """Keep the prompt of an entry that stays."""
        statement = self._statement(entry)
        self._index.add(self._compared(entry, statement))
        self._entries.append(entry)
        self._num_with[_key(statement)] += 1

    def repeated_by(self, entry: Entry) -> str:
        """Which kept prompt the entry repeats most closely, and how closely; "" for none."""
        whole = _whole(entry)
        near = self._index.similar_to(self._compared(entry, self._statement(entry)))
        same = [place for place in near if jaccard(whole, _whole(self._entries[place])) >= self._least_whole]
        if not same:
            return ""
        best = max(same, key=near.__getitem__)
        return f"of {_named(self._entries[best])}, Jaccard similarity {near[best]:.2f}"

    def _compared(self, entry: Entry, statement: Hashes) -> Hashes:
        return _whole(entry) if self._num_with[_key(statement)] >= LEAST_PROMPTS else statement

    def _statement(self, entry: Entry) -> Hashes:
        return hashes_of(ngrams(content_words(entry.question.prompt, self._phrases), PROMPT_NGRAM))


def _key(hashes: Hashes) -> int:
    return hash(hashes.tobytes())


def _whole(entry: Entry) -> Hashes:
    return hashes_of(ngrams(words_of(entry.question.prompt), PROMPT_NGRAM))


def _named(entry: Entry) -> str:
    return f"{entry.question.id} (row {entry.row} of {entry.file})"
