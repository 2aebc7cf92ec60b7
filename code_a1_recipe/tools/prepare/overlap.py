"""Rows that repeat a question of an evaluation set, by any of four rules:

- **id**: the row has the same id, where the id names its data set (``MBPP/11``);
- **prompt**: the two statements are equal, or the row's contains the evaluation statement; or they share a run of
  ``RUN_WORDS`` words, as in the decontamination of Qwen2.5-Coder (arXiv 2409.12186, 10 words), or the whole of what is
  left of an evaluation statement that is shorter than that; or they are nearly the same (``near_index``);
- **reference**: the two programs are the same up to names, comments and annotations, or nearly the same;
- **tests**: they share two tests.

Whether a statement is contained is asked of whole statements; runs of words are compared without the phrases that many
questions of an evaluation set share ("write a function to find the"), which would make one of all of them. Runs that
are mostly numbers do not count, nor what more than ``COMMON_SHARE`` of a set's *different* questions share. How often a
text occurs in the training data excuses nothing: a question that was copied a hundred times is still that question.
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
"""A whole statement of fewer words ("maximum of two numbers") is found in prompts that ask for much more."""
LEAST_SAME_TOKENS = 16
"""Equal programs of fewer tokens (``return len(x)``) answer different questions."""
LEAST_NEAR_TOKENS = 24
LEAST_SHARED_TESTS = 2
_PROGRAM_NGRAM = 5

Hit = tuple[int, str, str]
"""Place of an evaluation question, the rule that found it, and the text that is shared."""


class EvalIndex:
    """The questions of evaluation sets, asked for those that a row repeats.

    Args:
        questions: of all sets.
        data_phrases: common phrases of the training data. They only add hits: a row is compared with them and, for
            what its set writes around every statement, once more without them.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        data_phrases: Phrases = frozenset(),
    ) -> None:
        self.questions = questions
        self._places: dict[tuple[str, str], list[int]] = defaultdict(list)
        """Kind of text ("id", "whole", "run", "program", "test") and the text -> the questions that have it."""
        self._wholes_of_start: dict[str, set[str]] = defaultdict(set)
        self._statements = NearIndex(PROMPT_NGRAM)
        self._programs = NearIndex(_PROGRAM_NGRAM)
        # Copies within a set count once, so that they do not make its words common.
        self._originals = [(one.data_source, " ".join(words_of(one.prompt))) for one in questions]
        different = dict(zip(self._originals, range(len(questions)), strict=True))
        self._num_different = Counter(set_name for set_name, _ in different)
        prompts = defaultdict(list)
        for (set_name, _), place in different.items():
            prompts[set_name].append(questions[place].prompt)
        self._phrases: Phrases = frozenset().union(*map(common_phrases, prompts.values()))
        """Phrases that many different questions of one set share, of all sets."""
        self._all_phrases = self._phrases | data_phrases
        for place, question in enumerate(questions):
            self._add(place, question)
        runs = [(kind, text) for kind, text in self._places if kind in ("run", "whole")]
        self._common = {key for key in runs if self._is_common(self._places[key])}
        self._sizes = sorted({text.count(" ") + 1 for kind, text in runs if kind == "run"}, reverse=True)

    def check(self, entries: Sequence[Entry]) -> Stage:
        """Each entry, left out where it repeats a question; of a question the first rule is told."""
        for entry in entries:
            overlaps: dict[int, Overlap] = {}
            for place, how, detail in self._hits(entry.question):
                met = self.questions[place]
                overlap = Overlap(set_name=met.data_source, id=met.id, how=how, detail=detail)
                overlaps.setdefault(place, overlap)
            if overlaps:
                first, *_ = overlaps.values()
                told = f"with {first.id} of {first.set_name}, by {first.how}: {first.detail}"
                yield entry.dropped(Reason.OVERLAP, told, tuple(overlaps.values()))
            else:
                yield entry

    # ------------------------------ index ------------------------------

    def _is_common(self, places: Sequence[int]) -> bool:
        """Whether so many different questions of one set are its manner of speaking."""
        counts = Counter(set_name for set_name, _ in {self._originals[place] for place in places})
        return any(
            count > max(LEAST_PROMPTS, COMMON_SHARE * self._num_different[set_name])
            for set_name, count in counts.items()
        )

    def _add(
        self,
        place: int,
        question: Question,
    ) -> None:
        texts = [("test", test) for test in {assert_key(test) for test in question.tests}]
        if "/" in question.id:  # a plain number is an id in any set
            texts.append(("id", question.id))
        words = content_words(question.prompt, self._phrases)
        self._statements.add(words)
        if len(words) >= LEAST_WHOLE_WORDS:
            texts += [("run", run) for run in ngrams(words, RUN_WORDS) if _is_telling(run)]
        words = content_words(question.prompt)
        whole = " ".join(words)
        texts.append(("whole", whole))
        if len(words) < RUN_WORDS or _is_telling(whole):
            self._wholes_of_start[" ".join(words[:RUN_WORDS])].add(whole)
        form = reference_form(question.reference)
        self._programs.add(_near_tokens(form))
        if len(tokens_of(form)) >= LEAST_SAME_TOKENS:
            texts.append(("program", form))
        for key in texts:
            self._places[key].append(place)

    # ------------------------------ hits ------------------------------

    def _hits(self, question: Question) -> Iterator[Hit]:
        """The questions that this one repeats, the most telling rule first."""
        yield from self._having("id", question.id, "id", "the same id")
        words = content_words(question.prompt, self._phrases)
        bare = content_words(question.prompt, self._all_phrases)
        for compared in [words] if bare == words else [words, bare]:
            for place, similarity in self._statements.similar_to(compared).items():
                yield place, "prompt", f"statements, Jaccard similarity {similarity:.2f}"
        yield from self._prompt_hits(words, content_words(question.prompt))
        form = reference_form(question.reference)
        yield from self._having("program", form, "reference", "the same program up to names")
        for place, similarity in self._programs.similar_to(_near_tokens(form)).items():
            yield place, "reference", f"programs up to names, Jaccard similarity {similarity:.2f}"
        yield from self._test_hits(question)

    def _prompt_hits(
        self,
        words: Sequence[str],
        all_words: Sequence[str],
    ) -> Iterator[Hit]:
        """Evaluation statements that the row is, or contains, phrases and all; then runs of words without phrases."""
        text = f" {' '.join(all_words)} "
        for start in ngrams(all_words, RUN_WORDS):
            for whole in sorted(self._wholes_of_start.get(start, ())):
                if f" {whole} " in text:
                    yield from self._having("whole", whole, "prompt", f"the whole statement: {whole}")
        for size in self._sizes:
            for run in ngrams(words, size):
                yield from self._having("run", run, "prompt", f"{size} words: {run}")

    def _test_hits(self, question: Question) -> Iterator[Hit]:
        shared = defaultdict(list)
        for key, test in {assert_key(test): test for test in (*question.tests, *question.golden_tests)}.items():
            for place, _, detail in self._having("test", key, "tests", test[:120]):
                shared[place].append(detail)
        for place, details in shared.items():
            if len(details) >= LEAST_SHARED_TESTS:
                yield place, "tests", f"{len(details)} tests, such as {details[0]}"

    def _having(
        self,
        kind: str,
        text: str,
        how: str,
        detail: str,
    ) -> Iterator[Hit]:
        """A hit on each question that has the text, unless that is common in its set."""
        if (kind, text) not in self._common:
            for place in self._places.get((kind, text), ()):
                yield place, how, detail


def _near_tokens(form: str) -> Sequence[str]:
    tokens = tokens_of(form)
    return tokens if len(tokens) >= LEAST_NEAR_TOKENS else ()


def _is_telling(run: str) -> bool:
    """At least half of it are words; a row of digits stands in many statements."""
    words = run.split(" ")
    return 2 * sum(word.isalpha() and len(word) > 1 for word in words) >= len(words)
