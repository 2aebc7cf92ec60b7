"""Finds rows that repeat a question of an evaluation set. A row repeats a question if one of four rules holds:

- **id**: the ids are equal and name a data set (``MBPP/11``).
- **prompt**: the statements are nearly equal (``near_index``), or the row's statement contains the evaluation
  statement, or both share a run of ``RUN_WORDS`` words. The decontamination of Qwen2.5-Coder also compares runs of 10
  words (arXiv 2409.12186). An evaluation statement of fewer than ``RUN_WORDS`` words is one run.
- **reference**: the programs are nearly equal, or they are equal except for names, comments and annotations.
- **tests**: the row has at least two tests of the question.

The search for a contained statement compares whole statements. The search for runs first removes phrases that many
questions of an evaluation set share ("write a function to find the"), because such a phrase identifies no question.
Two kinds of text do not count: runs that are mostly numbers, and texts that more than ``COMMON_SHARE`` of a set's
*different* questions share. The number of copies in the training data does not matter: a question that was copied a
hundred times still repeats the evaluation question.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from ...algorithm.question import Question
from .near_index import NearIndex, ngrams
from .rows import Entry, Overlap, Reason, Stage
from .texts import (
    LEAST_PROMPTS,
    PROMPT_NGRAM,
    Phrases,
    assert_key,
    common_phrases,
    content_words,
    reference_form,
    tokens_of,
    words_of,
)

RUN_WORDS = 10
COMMON_SHARE = 0.01
LEAST_WHOLE_WORDS = 6
"""The runs of a statement count only if the statement has at least this many words. Longer prompts often contain a
shorter statement ("maximum of two numbers") without asking the same question."""
LEAST_SAME_TOKENS = 16
"""Programs count as equal only if they have at least this many tokens. Shorter programs (``return len(x)``) answer many
different questions."""
LEAST_NEAR_TOKENS = 24
"""Programs count as nearly equal only if they have at least this many tokens."""
LEAST_SHARED_TESTS = 2
_PROGRAM_NGRAM = 5

Hit = tuple[int, str, str]
"""Place of an evaluation question, the rule that found the question, and the shared text or the similarity."""


class EvalIndex:
    """An index of evaluation questions. It finds the questions that a row repeats.

    Args:
        questions: the questions of all sets.
        data_phrases: common phrases of the training data, such as a sentence before every statement. Each row is
            compared with its common phrases, and again without them, so ``data_phrases`` can only add hits.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        data_phrases: Phrases = frozenset(),
    ) -> None:
        self.questions = questions
        self._places: dict[tuple[str, str], list[int]] = defaultdict(list)
        """Kind of text ("id", "whole", "run", "program", "test") and text -> places of the questions with this text."""
        self._wholes_of_start: dict[str, set[str]] = defaultdict(set)
        """First words of a statement -> the whole statements that begin with them."""
        self._statements = NearIndex(PROMPT_NGRAM)
        self._programs = NearIndex(_PROGRAM_NGRAM)
        self._originals: list[tuple[str, str]] = []
        """For each place, the set and the words of the question. Copies of a question within a set have equal items in
        this list, so they count as one question. If each copy counted, the words of a copied question would seem
        common."""
        prompts: dict[str, dict[str, str]] = defaultdict(dict)
        """Set -> words of a question -> prompt of the question. Questions with equal words count once."""
        for question in questions:
            words = " ".join(words_of(question.prompt))
            self._originals.append((question.data_source, words))
            prompts[question.data_source][words] = question.prompt
        self._num_different: dict[str, int] = {}
        """Set -> number of its different questions."""
        self._phrases: Phrases = frozenset()
        """The common phrases of all sets."""
        for set_name, different in prompts.items():
            self._num_different[set_name] = len(different)
            self._phrases |= common_phrases(list(different.values()))
        self._all_phrases = self._phrases | data_phrases
        for place, question in enumerate(questions):
            self._add(place, question)
        for key, places in list(self._places.items()):
            if key[0] in ("run", "whole") and self._is_common(places):
                del self._places[key]

    def check(self, entries: Sequence[Entry]) -> Stage:
        """Leave out each entry that repeats questions. For each repeated question, record the first rule that held."""
        for entry in entries:
            overlap_at: dict[int, Overlap] = {}
            for place, how, detail in self._hits(entry.question):
                met = self.questions[place]
                overlap = Overlap(set_name=met.data_source, id=met.id, how=how, detail=detail)
                overlap_at.setdefault(place, overlap)
            if not overlap_at:
                yield entry
                continue
            first, *others = overlap_at.values()
            detail = f"with {first.id} of {first.set_name}, by {first.how}: {first.detail}"
            yield entry.dropped(Reason.OVERLAP, detail, (first, *others))

    # ------------------------------ index ------------------------------

    def _is_common(self, places: Sequence[int]) -> bool:
        """Say whether a text that the questions at ``places`` share is common in one of their sets."""
        originals = {self._originals[place] for place in places}
        counts = Counter(set_name for set_name, _ in originals)
        for set_name, count in counts.items():
            limit = max(LEAST_PROMPTS, COMMON_SHARE * self._num_different[set_name])
            if count > limit:
                return True
        return False

    def _add(self, place: int, question: Question) -> None:
        texts = [("test", key) for key in set(map(assert_key, question.tests))]
        if "/" in question.id:  # an id without "/" may be a plain number, which many sets use
            texts.append(("id", question.id))
        words = content_words(question.prompt, self._phrases)
        self._statements.add(words)
        if len(words) >= LEAST_WHOLE_WORDS:
            texts += [("run", run) for run in ngrams(words, RUN_WORDS) if _is_telling(run)]
        all_words = content_words(question.prompt)
        whole = " ".join(all_words)
        texts.append(("whole", whole))
        if len(all_words) < RUN_WORDS or _is_telling(whole):
            start = " ".join(all_words[:RUN_WORDS])
            self._wholes_of_start[start].add(whole)
        form = reference_form(question.reference)
        self._programs.add(_near_tokens(form))
        if len(tokens_of(form)) >= LEAST_SAME_TOKENS:
            texts.append(("program", form))
        for key in texts:
            self._places[key].append(place)

    # ------------------------------ hits ------------------------------

    def _hits(self, question: Question) -> Iterator[Hit]:
        """Yield the evaluation questions that a question repeats. The strongest of the four rules is tried first."""
        for place in self._places.get(("id", question.id), ()):
            yield place, "id", "the same id"
        words = content_words(question.prompt, self._phrases)
        bare_words = content_words(question.prompt, self._all_phrases)
        statements = [words] if bare_words == words else [words, bare_words]
        for statement in statements:
            for place, similarity in self._statements.similar_to(statement).items():
                yield place, "prompt", f"statements, Jaccard similarity {similarity:.2f}"
        yield from self._prompt_hits(words, content_words(question.prompt))
        form = reference_form(question.reference)
        for place in self._places.get(("program", form), ()):
            yield place, "reference", "the same program except for names"
        tokens = _near_tokens(form)
        for place, similarity in self._programs.similar_to(tokens).items():
            yield place, "reference", f"programs without names, Jaccard similarity {similarity:.2f}"
        yield from self._test_hits(question)

    def _prompt_hits(
        self,
        words: Sequence[str],
        all_words: Sequence[str],
    ) -> Iterator[Hit]:
        """Yield an evaluation question if a prompt contains its whole statement or one of its runs.

        Args:
            words: the prompt's words without common phrases, for the search for runs.
            all_words: the prompt's words with common phrases, for the search for whole statements.
        """
        text = f" {' '.join(all_words)} "
        for start in ngrams(all_words, RUN_WORDS):
            for whole in sorted(self._wholes_of_start.get(start, ())):
                if f" {whole} " in text:
                    for place in self._places.get(("whole", whole), ()):
                        yield place, "prompt", f"the whole statement: {whole}"
        longest = min(RUN_WORDS, len(words))
        for size in range(longest, LEAST_WHOLE_WORDS - 1, -1):  # a short evaluation statement is a run of fewer words
            for run in ngrams(words, size):
                for place in self._places.get(("run", run), ()):
                    yield place, "prompt", f"{size} words: {run}"

    def _test_hits(self, question: Question) -> Iterator[Hit]:
        tests = (*question.tests, *question.golden_tests)
        different = {assert_key(test): test for test in tests}
        shared = defaultdict(list)
        for key, test in different.items():
            for place in self._places.get(("test", key), ()):
                shared[place].append(test)
        for place, texts in shared.items():
            if len(texts) >= LEAST_SHARED_TESTS:
                yield place, "tests", f"{len(texts)} tests, such as {texts[0][:120]}"


def _near_tokens(form: str) -> Sequence[str]:
    tokens = tokens_of(form)
    return tokens if len(tokens) >= LEAST_NEAR_TOKENS else ()


def _is_telling(run: str) -> bool:
    """Say whether at least half of a run consists of words. The same runs of numbers occur in many statements."""
    words = run.split(" ")
    alphabetic = [word for word in words if word.isalpha() and len(word) > 1]
    return 2 * len(alphabetic) >= len(words)
