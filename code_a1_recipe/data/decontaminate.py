"""Rows that repeat a question of an evaluation set, by any of four rules:

- **id**: the row has the same id, where the id names its data set (``MBPP/11``);
- **prompt**: the two statements share a run of ``ngram`` words, as in the decontamination of Qwen2.5-Coder
  (arXiv 2409.12186, 10 words); or one contains the whole of an evaluation statement that is shorter than that; or the
  Jaccard similarity of their runs of 3 words reaches the threshold;
- **reference**: the two programs are the same up to names, comments and annotations, or the Jaccard similarity of their
  runs of 5 tokens reaches the threshold;
- **tests**: they share two tests.

Words are compared as ``texts`` leaves them: phrases that many prompts of a set share do not count, nor do n-grams that
are mostly numbers, nor n-grams that still occur in more than ``NGRAM_SHARE`` of the prompts of either side.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..questions import Question
from .entries import Entry, Overlap
from .near_index import Hashes, NearIndex, hashes_of
from .progress import watched
from .reading import EvalQuestion
from .texts import (
    LEAST_PROMPTS,
    PROMPT_NGRAM,
    assert_key,
    content_words,
    ngrams,
    phrases_of_prompts,
    reference_form,
    tokens_of,
)

TOKEN_NGRAM = 5
NGRAM_SHARE = 0.01
LEAST_WHOLE_WORDS = 6
"""A whole statement of fewer words ("maximum of two numbers") is found in prompts that ask for much more."""
LEAST_SAME_TOKENS = 16
"""Equal programs of fewer tokens (``return len(x)``) answer different questions."""
LEAST_NEAR_TOKENS = 24
LEAST_SHARED_TESTS = 2
MOST_OVERLAPS = 5
"""Overlaps told of one row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapSettings:
    """What counts as the same text."""

    ngram: int = 10
    """Words in a row that two statements may not share, at least 2."""
    threshold: float = 0.8
    """Jaccard similarity, in (0, 1], from which two texts are near-duplicates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    place: int
    """Of the evaluation question."""
    how: str
    detail: str
    ngram: str = ""
    """Of an n-gram hit, which counts only where few rows of the data have it."""


class EvalIndex:
    """The questions of evaluation sets, asked for those that a row repeats.

    Args:
        questions: of all sets.
        settings: what counts as the same.
        data_phrases: common phrases of the training data; those of each set are found here.
    """

    def __init__(
        self, questions: Sequence[EvalQuestion], settings: OverlapSettings, *, data_phrases: frozenset[str]
    ) -> None:
        self._questions = questions
        self._settings = settings
        self._phrases = data_phrases.union(*(phrases_of_prompts(prompts) for prompts in _prompts_by_set(questions)))
        self._places_of_id: dict[str, list[int]] = defaultdict(list)
        self._places_of_ngram: dict[str, list[int]] = defaultdict(list)
        self._places_of_form: dict[str, list[int]] = defaultdict(list)
        self._places_of_test: dict[bytes, list[int]] = defaultdict(list)
        self._prompts = NearIndex(settings.threshold)
        self._programs = NearIndex(settings.threshold)
        for place, question in enumerate(watched(questions, total=len(questions), desc="index", unit="question")):
            self._add(place, question)
        self._sizes = sorted({ngram.count(" ") + 1 for ngram in self._places_of_ngram})
        self._drop_common_ngrams()

    def overlaps(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, tuple[Overlap, ...]]]:
        """Each entry with what it repeats, at most ``MOST_OVERLAPS`` questions, each told once."""
        bar = watched(entries, total=len(entries), desc="overlap", unit="row")
        hits = [list(self._hits(entry.question)) for entry in bar]
        num_rows_with: Counter[str] = Counter()
        for found in hits:
            num_rows_with.update({hit.ngram for hit in found if hit.ngram})
        most = max(LEAST_PROMPTS, NGRAM_SHARE * len(entries))
        for entry, found in zip(entries, hits, strict=True):
            first: dict[int, _Hit] = {}
            for hit in found:
                if num_rows_with[hit.ngram] <= most:
                    first.setdefault(hit.place, hit)
            yield entry, tuple(self._told(hit) for hit in list(first.values())[:MOST_OVERLAPS])

    def _add(self, place: int, question: EvalQuestion) -> None:
        if "/" in question.id:  # a plain number is an id in any set
            self._places_of_id[question.id].append(place)
        words = content_words(question.prompt, self._phrases)
        if len(words) >= min(LEAST_WHOLE_WORDS, self._settings.ngram):
            for ngram in ngrams(words, self._settings.ngram):
                if _is_telling(ngram):
                    self._places_of_ngram[ngram].append(place)
        self._prompts.add(hashes_of(ngrams(words, PROMPT_NGRAM)))
        form = reference_form(question.reference) if question.reference else None
        tokens = tokens_of(form or "")
        if form and len(tokens) >= LEAST_SAME_TOKENS:
            self._places_of_form[form].append(place)
        self._programs.add(_program_hashes(tokens))
        for test in {assert_key(test) for test in question.tests}:
            self._places_of_test[test].append(place)

    def _drop_common_ngrams(self) -> None:
        """N-grams in many prompts of one set are its manner of speaking."""
        num_prompts = Counter(question.set_name for question in self._questions)
        for ngram, places in list(self._places_of_ngram.items()):
            in_set = Counter(self._questions[place].set_name for place in places)
            if any(count > max(LEAST_PROMPTS, NGRAM_SHARE * num_prompts[name]) for name, count in in_set.items()):
                del self._places_of_ngram[ngram]

    def _hits(self, question: Question) -> Iterator[_Hit]:
        """What a question repeats, the most telling rule first."""
        for place in self._places_of_id.get(question.id, ()):
            yield _Hit(place=place, how="id", detail="the same id")
        words = content_words(question.prompt, self._phrases)
        for near in self._prompts.similar_to(hashes_of(ngrams(words, PROMPT_NGRAM))):
            yield _Hit(place=near.place, how="prompt", detail=f"statements, Jaccard similarity {near.similarity:.2f}")
        yield from self._ngram_hits(words)
        yield from self._reference_hits(question.reference)
        yield from self._test_hits(question)

    def _ngram_hits(self, words: Sequence[str]) -> Iterator[_Hit]:
        for size in reversed(self._sizes):
            for at in range(len(words) - size + 1):
                ngram = " ".join(words[at : at + size])
                kind = f"{size} words" if size == self._settings.ngram else "the whole statement"
                for place in self._places_of_ngram.get(ngram, ()):
                    yield _Hit(place=place, how="prompt", detail=f"{kind}: {ngram}", ngram=ngram)

    def _reference_hits(self, reference: str) -> Iterator[_Hit]:
        form = reference_form(reference)
        if form is None:
            return
        for place in self._places_of_form.get(form, ()):
            yield _Hit(place=place, how="reference", detail="the same program up to names")
        for near in self._programs.similar_to(_program_hashes(tokens_of(form))):
            detail = f"programs up to names, Jaccard similarity {near.similarity:.2f}"
            yield _Hit(place=near.place, how="reference", detail=detail)

    def _test_hits(self, question: Question) -> Iterator[_Hit]:
        shared: dict[int, list[str]] = defaultdict(list)
        for key, text in {assert_key(text): text for text in (*question.tests, *question.golden_tests)}.items():
            for place in self._places_of_test.get(key, ()):
                shared[place].append(text)
        for place, texts in shared.items():
            if len(texts) >= LEAST_SHARED_TESTS:
                yield _Hit(place=place, how="tests", detail=f"{len(texts)} tests, such as {texts[0][:120]}")

    def _told(self, hit: _Hit) -> Overlap:
        question = self._questions[hit.place]
        return Overlap(set_name=question.set_name, id=question.id, how=hit.how, detail=hit.detail)


def _program_hashes(tokens: Sequence[str]) -> Hashes:
    return hashes_of(ngrams(tokens, TOKEN_NGRAM) if len(tokens) >= LEAST_NEAR_TOKENS else ())


def _is_telling(ngram: str) -> bool:
    """At least half of it are words; a row of digits stands in many statements."""
    words = ngram.split(" ")
    return 2 * sum(word.isalpha() and len(word) > 1 for word in words) >= len(words)


def _prompts_by_set(questions: Iterable[EvalQuestion]) -> list[list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for question in questions:
        found[question.set_name].append(question.prompt)
    return list(found.values())
