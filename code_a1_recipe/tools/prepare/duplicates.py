"""Finds rows of the training data that repeat an earlier row: nearly the same prompt, or the same reference."""

from collections import Counter
from collections.abc import Sequence

from sandbox.text import syntax_key

from .near_index import THRESHOLD, Hashes, NearIndex, hashes_of, jaccard
from .rows import Entry, Reason, Stage
from .texts import LEAST_PROMPTS, PROMPT_NGRAM, Phrases, content_words, words_of

_LEAST_WHOLE = 0.4
"""Least Jaccard similarity of whole prompts, code included. Statements alone may be as short as "fill in the body"."""


def check_duplicates(entries: Sequence[Entry], phrases: Phrases) -> Stage:
    """Leave out each entry that nearly equals an earlier entry that stays.

    Args:
        entries: in order; the first of several duplicates stays.
        phrases: common phrases of the data. Similarity ignores them; equality does not, because a statement that was
            copied often consists of nothing but common phrases.
    """
    equal, near = PromptIndex(threshold=1.0), PromptIndex(phrases)
    kept: list[Entry] = []
    first_with: dict[str, Entry] = {}
    for entry in entries:
        prompt, program = entry.question.prompt, syntax_key(entry.question.reference)
        similar = equal.similar_to(prompt) or near.similar_to(prompt)
        if similar:
            best = max(similar, key=similar.__getitem__)
            detail = f"of {kept[best].name}, Jaccard similarity {similar[best]:.2f}"
            yield entry.dropped(Reason.NEAR_DUPLICATE, detail)
        elif program in first_with:
            yield entry.dropped(Reason.DUPLICATE_REFERENCE, f"of {first_with[program].name}, the same program")
        else:
            equal.add(prompt)
            near.add(prompt)
            kept.append(entry)
            first_with[program] = entry
            yield entry


class PromptIndex:
    """An index of prompts that finds the ones which a new prompt repeats.

    Two prompts are the same if the Jaccard similarity of their statements reaches the threshold, and the similarity
    of the whole prompts reaches ``_LEAST_WHOLE``. Once ``LEAST_PROMPTS`` prompts share a statement, it says little
    about each of them. From then on, the whole prompts must reach the threshold.
    """

    def __init__(
        self,
        phrases: Phrases = frozenset(),
        *,
        threshold: float = THRESHOLD,
    ) -> None:
        self._phrases = phrases
        self._index = NearIndex(PROMPT_NGRAM, threshold)
        self._wholes: list[Hashes] = []
        self._num_with: Counter[tuple[str, ...]] = Counter()

    def add(self, prompt: str) -> None:
        """Add a prompt. Its place is the number of prompts before it."""
        self._index.add(self._compared(prompt))
        self._wholes.append(_whole(prompt))
        self._num_with[self._statement(prompt)] += 1

    def similar_to(self, prompt: str) -> dict[int, float]:
        """Place -> Jaccard similarity of each added prompt that this prompt repeats."""
        whole = _whole(prompt)
        similar = {}
        for place, similarity in self._index.similar_to(self._compared(prompt)).items():
            if jaccard(whole, self._wholes[place]) >= _LEAST_WHOLE:
                similar[place] = similarity
        return similar

    def _statement(self, prompt: str) -> tuple[str, ...]:
        return tuple(content_words(prompt, self._phrases))

    def _compared(self, prompt: str) -> Sequence[str]:
        statement = self._statement(prompt)
        return words_of(prompt) if self._num_with[statement] >= LEAST_PROMPTS else statement


def _whole(prompt: str) -> Hashes:
    return hashes_of(words_of(prompt), PROMPT_NGRAM)
