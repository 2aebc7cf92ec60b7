"""Rows that repeat a question of an evaluation set, by any of four rules:

- **id**: the row has the same id, where the id names its data set (``MBPP/11``);
- **prompt**: the two statements are equal, or the row's contains the evaluation statement; or they share a run of
  ``ngram`` words, as in the decontamination of Qwen2.5-Coder (arXiv 2409.12186, 10 words), or the whole of what is left
  of an evaluation statement that is shorter than that; or the Jaccard similarity of their runs of 3 words reaches the
  threshold;
- **reference**: the two programs are the same up to names, comments and annotations, or the Jaccard similarity of their
  runs of 5 tokens reaches the threshold;
- **tests**: they share two tests.

Whether a statement is contained is asked of whole statements; runs of words are compared without the phrases that many
questions of an evaluation set share ("write a function to find the"), which would make one of all of them. N-grams
that are mostly numbers do not count, nor what more than ``NGRAM_SHARE`` of a set's *different* questions share; such
hits are counted as discarded. How often a text occurs in the training data excuses nothing: a question that was copied
a hundred times is still that question.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...algorithm.question import Question
from ...jobs.progress import watched
from .entries import Entry, Overlap
from .near_index import Hashes, NearIndex, hashes_of, jaccard
from .texts import (
    LEAST_PROMPTS,
    PROMPT_NGRAM,
    assert_key,
    content_words,
    ngrams,
    phrases_of_prompts,
    reference_form,
    tokens_of,
    words_of,
)

TOKEN_NGRAM = 5
NGRAM_SHARE = 0.01
LEAST_WHOLE_WORDS = 6
"""A whole statement of fewer words ("maximum of two numbers") is found in prompts that ask for much more."""
LEAST_SAME_TOKENS = 16
"""Equal programs of fewer tokens (``return len(x)``) answer different questions."""
LEAST_NEAR_TOKENS = 24
LEAST_SHARED_TESTS = 2
_NO_PHRASES: frozenset[str] = frozenset()


_Hit = tuple[int, str, str]
"""Place of an evaluation question, the rule that found it, and what is shared."""


@dataclass(slots=True, kw_only=True)
class CommonHits:
    """Hits that do not count, since many different questions of an evaluation set share the words."""

    num_hits: int = 0
    """Runs of words, and whole statements, each counted once a row."""
    num_rows: int = 0
    """Rows that have such hits and no other: they are no overlap."""


class EvalIndex:
    """The questions of evaluation sets, asked for those that a row repeats.

    Args:
        questions: of all sets.
        ngram: words in a row that two statements may not share, at least 2.
        threshold: Jaccard similarity, in (0, 1], from which two texts are near-duplicates.
        data_phrases: common phrases of the training data. They only add hits: a row is compared with them and, for
            what its set writes around every statement, once more without them.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        *,
        ngram: int = 10,
        threshold: float = 0.8,
        data_phrases: frozenset[str] = _NO_PHRASES,
    ) -> None:
        self._questions = questions
        self._ngram, self._threshold = ngram, threshold
        self._least_words = min(LEAST_WHOLE_WORDS, ngram)
        self._places_of_id: dict[str, list[int]] = defaultdict(list)
        self._places_of_ngram: dict[str, list[int]] = defaultdict(list)
        self._wholes_of_start: dict[str, set[str]] = defaultdict(set)
        self._places_of_whole: dict[str, list[int]] = defaultdict(list)
        self._places_of_form: dict[str, list[int]] = defaultdict(list)
        self._places_of_test: dict[bytes, list[int]] = defaultdict(list)
        self._contents = NearIndex(threshold)
        self._programs = NearIndex(threshold)
        self._same_as = self._add_wholes()
        self._num_different = Counter(name for name, _ in self._different(range(len(questions))))
        self._phrases = self._common_phrases()
        self._all_phrases = self._phrases | data_phrases
        self.common = CommonHits()
        """What the last call of ``overlaps`` discarded; complete when all entries were asked for."""
        for place, question in enumerate(watched(questions, total=len(questions), what="index", unit="question")):
            self._add(place, question)
        self._sizes = sorted({ngram.count(" ") + 1 for ngram in self._places_of_ngram})
        self._common_ngrams = {ngram for ngram, places in self._places_of_ngram.items() if self._is_common(places)}

    def overlaps(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, tuple[Overlap, ...]]]:
        """Each entry with all questions that it repeats, each told once, by the first rule that found it."""
        self.common = CommonHits()
        for entry in watched(entries, total=len(entries), what="overlap", unit="row"):
            first: dict[int, _Hit] = {}
            num_before = self.common.num_hits
            for hit in self._hits(entry.question):
                first.setdefault(hit[0], hit)
            self.common.num_rows += not first and self.common.num_hits > num_before
            yield entry, tuple(self._told(*hit) for hit in first.values())

    def _add_wholes(self) -> list[int]:
        """Index the whole statements; gives, for each question, the first one that it is a copy of, or its own place.

        A copy is judged as rows of the training data are (``duplicates``), so that copies in an evaluation set do not
        make its words common, and a statement such as "complete this code" makes no copies.
        """
        wholes = NearIndex(self._threshold)
        same_as: list[int] = []
        prompts: list[Hashes] = []
        for place, question in enumerate(self._questions):
            words = content_words(question.prompt, _NO_PHRASES)
            hashes, prompt = _prompt_hashes(words), _prompt_hashes(words_of(question.prompt))
            near = wholes.similar_to(hashes)
            twins = (twin for twin in near if jaccard(prompt, prompts[twin]) >= self._threshold / 2)
            same_as.append(same_as[twin] if (twin := next(twins, None)) is not None else place)
            prompts.append(prompt)
            wholes.add(hashes)
            whole = " ".join(words)
            self._places_of_whole[whole].append(place)
            if len(words) >= self._ngram and _is_telling(whole):
                self._wholes_of_start[" ".join(words[: self._ngram])].add(whole)
        return same_as

    def _different(self, places: Iterable[int]) -> set[tuple[str, int]]:
        """Set and first copy of each question at ``places``."""
        return {(self._questions[place].data_source, self._same_as[place]) for place in places}

    def _is_common(self, places: Iterable[int]) -> bool:
        """Whether so many different questions of one set are its manner of speaking."""
        in_set = Counter(name for name, _ in self._different(places))
        return any(
            count > max(LEAST_PROMPTS, NGRAM_SHARE * self._num_different[name]) for name, count in in_set.items()
        )

    def _common_phrases(self) -> frozenset[str]:
        """Phrases that many different questions of one set share, of all sets."""
        prompts: dict[str, list[str]] = defaultdict(list)
        for name, place in sorted(self._different(range(len(self._questions)))):
            prompts[name].append(self._questions[place].prompt)
        return frozenset().union(*map(phrases_of_prompts, prompts.values()))

    def _add(self, place: int, question: Question) -> None:
        if "/" in question.id:  # a plain number is an id in any set
            self._places_of_id[question.id].append(place)
        words = content_words(question.prompt, self._phrases)
        if len(words) >= self._least_words:
            for ngram in ngrams(words, self._ngram):
                if _is_telling(ngram):
                    self._places_of_ngram[ngram].append(place)
        self._contents.add(_prompt_hashes(words))
        form = reference_form(question.reference) if question.reference else None
        tokens = tokens_of(form or "")
        if form and len(tokens) >= LEAST_SAME_TOKENS:
            self._places_of_form[form].append(place)
        self._programs.add(_program_hashes(tokens))
        for test in {assert_key(test) for test in question.tests}:
            self._places_of_test[test].append(place)

    def _hits(self, question: Question) -> Iterator[_Hit]:
        """What a question repeats, the most telling rule first."""
        for place in self._places_of_id.get(question.id, ()):
            yield place, "id", "the same id"
        words = content_words(question.prompt, self._phrases)
        bare = content_words(question.prompt, self._all_phrases)
        for compared in [words] if bare == words else [words, bare]:
            for place, similarity in self._contents.similar_to(_prompt_hashes(compared)).items():
                yield place, "prompt", f"statements, Jaccard similarity {similarity:.2f}"
        yield from self._whole_hits(content_words(question.prompt, _NO_PHRASES))
        yield from self._ngram_hits(words)
        yield from self._reference_hits(question.reference)
        yield from self._test_hits(question)

    def _counted(self, places: Sequence[int]) -> Sequence[int]:
        """The places of one hit; none, and the hit is counted as discarded, where they are too many questions."""
        if not self._is_common(places):
            return places
        self.common.num_hits += 1
        return ()

    def _whole_hits(self, words: Sequence[str]) -> Iterator[_Hit]:
        """Evaluation statements that the words are, or contain, phrases and all."""
        size = self._ngram
        found = dict.fromkeys([" ".join(words)])
        for at in range(len(words) - size + 1):
            for whole in sorted(self._wholes_of_start.get(" ".join(words[at : at + size]), ())):
                if " ".join(words[at : at + whole.count(" ") + 1]) == whole:
                    found[whole] = None
        for whole in found:
            for place in self._counted(self._places_of_whole.get(whole, ())):
                yield place, "prompt", f"the whole statement: {whole}"

    def _ngram_hits(self, words: Sequence[str]) -> Iterator[_Hit]:
        for size in reversed(self._sizes):
            kind = f"{size} words" if size == self._ngram else "the whole statement"
            for at in range(len(words) - size + 1):
                ngram = " ".join(words[at : at + size])
                if ngram in self._common_ngrams:
                    self.common.num_hits += 1
                    continue
                for place in self._places_of_ngram.get(ngram, ()):
                    yield place, "prompt", f"{kind}: {ngram}"

    def _reference_hits(self, reference: str) -> Iterator[_Hit]:
        form = reference_form(reference)
        if form is None:
            return
        for place in self._places_of_form.get(form, ()):
            yield place, "reference", "the same program up to names"
        for place, similarity in self._programs.similar_to(_program_hashes(tokens_of(form))).items():
            yield place, "reference", f"programs up to names, Jaccard similarity {similarity:.2f}"

    def _test_hits(self, question: Question) -> Iterator[_Hit]:
        shared: dict[int, list[str]] = defaultdict(list)
        for key, text in {assert_key(text): text for text in (*question.tests, *question.golden_tests)}.items():
            for place in self._places_of_test.get(key, ()):
                shared[place].append(text)
        for place, texts in shared.items():
            if len(texts) >= LEAST_SHARED_TESTS:
                yield place, "tests", f"{len(texts)} tests, such as {texts[0][:120]}"

    def _told(self, place: int, how: str, detail: str) -> Overlap:
        question = self._questions[place]
        return Overlap(set_name=question.data_source, id=question.id, how=how, detail=detail)


def _prompt_hashes(words: Sequence[str]) -> Hashes:
    return hashes_of(ngrams(words, PROMPT_NGRAM))


def _program_hashes(tokens: Sequence[str]) -> Hashes:
    return hashes_of(ngrams(tokens, TOKEN_NGRAM) if len(tokens) >= LEAST_NEAR_TOKENS else ())


def _is_telling(ngram: str) -> bool:
    """At least half of it are words; a row of digits stands in many statements."""
    words = ngram.split(" ")
    return 2 * sum(word.isalpha() and len(word) > 1 for word in words) >= len(words)
