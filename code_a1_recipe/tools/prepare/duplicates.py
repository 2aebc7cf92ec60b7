"""Finds rows of the training data that repeat an earlier row: nearly the same prompt, or the same reference."""

from collections import Counter
from collections.abc import Sequence

from sandbox.text import syntax_key

from .near_index import THRESHOLD, Hashes, NearIndex, hashes_of, jaccard
from .rows import Entry, Reason, Stage
from .texts import LEAST_PROMPTS, PROMPT_NGRAM, Phrases, content_words, words_of

_LEAST_WHOLE = 0.4
"""Two prompts are duplicates only if their whole texts, code included, reach this Jaccard similarity. Equal statements
are not enough, because a statement may be as short as "fill in the body"."""


def check_duplicates(entries: Sequence[Entry], phrases: Phrases) -> Stage:
    """Leave out each entry that repeats an earlier entry. No entry is compared with an entry that was left out.

    Args:
        entries: entries in order; the first of several duplicates stays.
        phrases: common phrases of the data. The search for similar statements ignores common phrases. The search for
            equal statements does not ignore them, because a statement with many copies consists only of common phrases.
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
    """An index of prompts. It finds the earlier prompts that a new prompt repeats.

    A prompt repeats another if the Jaccard similarity of their statements reaches the threshold, and the similarity of
    the whole prompts reaches ``_LEAST_WHOLE``. If ``LEAST_PROMPTS`` added prompts have the same statement, this
    statement identifies no prompt. A further prompt with this common statement is therefore compared by all its words.
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
        """Statement -> number of added prompts with this statement."""

    def add(self, prompt: str) -> None:
        """Add a prompt. The place of a prompt is the number of prompts that were added before it."""
        statement, compared, whole = self._read(prompt)
        self._index.add(compared)
        self._wholes.append(whole)
        self._num_with[statement] += 1

    def similar_to(self, prompt: str) -> dict[int, float]:
        """Find the added prompts that this prompt repeats: place -> Jaccard similarity."""
        _, compared, whole = self._read(prompt)
        similar = {}
        for place, similarity in self._index.similar_to(compared).items():
            if jaccard(whole, self._wholes[place]) >= _LEAST_WHOLE:
                similar[place] = similarity
        return similar

    def _read(self, prompt: str) -> tuple[tuple[str, ...], Sequence[str], Hashes]:
        """Return the prompt's statement, the words that are compared, and the hashes of the whole prompt."""
        all_words = words_of(prompt)
        statement = tuple(content_words(prompt, self._phrases))
        is_common = self._num_with[statement] >= LEAST_PROMPTS
        return statement, all_words if is_common else statement, hashes_of(all_words, PROMPT_NGRAM)
