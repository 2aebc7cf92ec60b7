"""Finds rows that repeat a question of an evaluation set. Each of four rules is enough:

- **id**: the row has the same id, and the id names its data set (``MBPP/11``).
- **prompt**: the statements are equal, or the row's statement contains the evaluation statement. Or both share a run
  of ``RUN_WORDS`` words, as in the decontamination of Qwen2.5-Coder (arXiv 2409.12186, 10 words); a shorter evaluation
  statement counts as one run. Or the statements are nearly the same (``near_index``).
- **reference**: the programs are equal up to names, comments and annotations, or nearly the same.
- **tests**: both have the same two tests.

The search for a contained statement compares whole statements. The search for runs first removes phrases that many
questions of an evaluation set share ("write a function to find the"), since these phrases would connect all of them.
Two kinds of text do not count: runs that are mostly numbers, and texts that more than ``COMMON_SHARE`` of a set's
*different* questions share. The number of copies in the training data plays no role: a question that was copied a
hundred times is still that question.
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
"""Least words of a statement that gives runs. Prompts that ask for much more contain shorter ones ("maximum of two
numbers")."""
LEAST_SAME_TOKENS = 16
"""Least tokens of programs that count as equal. Shorter ones (``return len(x)``) answer many different questions."""
LEAST_NEAR_TOKENS = 24
LEAST_SHARED_TESTS = 2
_PROGRAM_NGRAM = 5

Hit = tuple[int, str, str]
"""Place of an evaluation question, the rule that found it, and the text that both share."""


class EvalIndex:
    """An index of evaluation questions that finds the ones which a row repeats.

    Args:
        questions: the questions of all sets.
        data_phrases: common phrases of the training data. A row is compared twice, with them and without them, so
            they can only add hits. The second comparison ignores what a data set writes around every statement.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        data_phrases: Phrases = frozenset(),
    ) -> None:
        self.questions = questions
        self._places: dict[tuple[str, str], list[int]] = defaultdict(list)
        """Kind of text ("id", "whole", "run", "program", "test") and the text -> places of the questions with it."""
        self._wholes_of_start: dict[str, set[str]] = defaultdict(set)
        """First words of a statement -> the whole statements that begin with them."""
        self._statements = NearIndex(PROMPT_NGRAM)
        self._programs = NearIndex(_PROGRAM_NGRAM)
        self._originals: list[tuple[str, str]] = []
        """[place] set and words of the question. Copies within a set are equal and count once, so that they do not make
        its words common."""
        prompts: dict[tuple[str, str], str] = {}
        for question in questions:
            original = (question.data_source, " ".join(words_of(question.prompt)))
            self._originals.append(original)
            prompts[original] = question.prompt
        self._different = defaultdict(list)
        """Set -> its different prompts."""
        for (set_name, _), prompt in prompts.items():
            self._different[set_name].append(prompt)
        self._phrases: Phrases = frozenset().union(*map(common_phrases, self._different.values()))
        """The common phrases of each set, all together."""
        self._all_phrases = self._phrases | data_phrases
        for place, question in enumerate(questions):
            self._add(place, question)
        self._common = set()
        for key, places in self._places.items():
            if key[0] in ("run", "whole") and self._is_common(places):
                self._common.add(key)

    def check(self, entries: Sequence[Entry]) -> Stage:
        """Leave out each entry that repeats a question. Its record names the question and the rule that found it."""
        for entry in entries:
            overlap_at: dict[int, Overlap] = {}
            for place, how, detail in self._hits(entry.question):
                met = self.questions[place]
                overlap = Overlap(set_name=met.data_source, id=met.id, how=how, detail=detail)
                overlap_at.setdefault(place, overlap)
            overlaps = tuple(overlap_at.values())
            if overlaps:
                first = overlaps[0]
                detail = f"with {first.id} of {first.set_name}, by {first.how}: {first.detail}"
                yield entry.dropped(Reason.OVERLAP, detail, overlaps)
            else:
                yield entry

    # ------------------------------ index ------------------------------

    def _is_common(self, places: Sequence[int]) -> bool:
        """Say if a text of these questions is common in one of their sets."""
        originals = {self._originals[place] for place in places}
        for set_name, count in Counter(set_name for set_name, _ in originals).items():
            if count > max(LEAST_PROMPTS, COMMON_SHARE * len(self._different[set_name])):
                return True
        return False

    def _add(self, place: int, question: Question) -> None:
        texts = [("test", key) for key in set(map(assert_key, question.tests))]
        if "/" in question.id:  # many sets have the same plain numbers as ids
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
        """Yield the evaluation questions that a question repeats, the strongest rule first."""
        yield from self._having("id", question.id, "id", "the same id")
        words = content_words(question.prompt, self._phrases)
        bare_words = content_words(question.prompt, self._all_phrases)
        statements = [words] if bare_words == words else [words, bare_words]
        for statement in statements:
            for place, similarity in self._statements.similar_to(statement).items():
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
        """Yield questions by whole statements in ``all_words``, then by runs in ``words``, which lack the phrases."""
        text = f" {' '.join(all_words)} "
        for start in ngrams(all_words, RUN_WORDS):
            for whole in sorted(self._wholes_of_start.get(start, ())):
                if f" {whole} " in text:
                    yield from self._having("whole", whole, "prompt", f"the whole statement: {whole}")
        longest = min(RUN_WORDS, len(words))
        for size in range(longest, LEAST_WHOLE_WORDS - 1, -1):  # a short evaluation statement is a run of fewer words
            for run in ngrams(words, size):
                yield from self._having("run", run, "prompt", f"{size} words: {run}")

    def _test_hits(self, question: Question) -> Iterator[Hit]:
        shared = defaultdict(list)
        tests = (*question.tests, *question.golden_tests)
        for key, test in {assert_key(test): test for test in tests}.items():
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
        """Yield a hit on each question that has the text, unless the text is common in a set."""
        if (kind, text) not in self._common:
            for place in self._places.get((kind, text), ()):
                yield place, how, detail


def _near_tokens(form: str) -> Sequence[str]:
    tokens = tokens_of(form)
    return tokens if len(tokens) >= LEAST_NEAR_TOKENS else ()


def _is_telling(run: str) -> bool:
    """Say if at least half of a run are words. Many statements contain the same rows of numbers."""
    words = run.split(" ")
    return 2 * sum(word.isalpha() and len(word) > 1 for word in words) >= len(words)
