"""Finds rows that repeat a question: an earlier row of the training data, or a question of an evaluation set.

A row repeats a question of an evaluation set if one of four rules holds:

- **id**: the ids are equal and name a data set (``MBPP/11``).
- **prompt**: the statements or the whole prompts have the same words, or the statements share a run of ``RUN_WORDS``
  words, as in the decontamination of GPT-3's data (arXiv 2005.14165, appendix C). An evaluation statement of fewer
  than ``RUN_WORDS`` words is one run.
- **reference**: the programs are equal except for names, comments and annotations.
- **tests**: the row has at least two tests of the question.

Two kinds of text do not count: runs that are mostly numbers, and texts that more than ``COMMON_SHARE`` of a set's
*different* questions share ("write a function to find the"). The number of copies in the training data does not matter:
a question that was copied a hundred times still repeats the evaluation question.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from sandbox.text import syntax_key

from ...algorithm.question import Question
from .rows import Entry, Overlap, Reason, Stage
from .texts import Words, assert_key, content_words, prompt_words, reference_form, tokens_of, words_of

RUN_WORDS = 13
COMMON_SHARE = 0.01
LEAST_QUESTIONS = 5
"""A text that at most this many questions share is never common, even in a small set."""
LEAST_WHOLE_WORDS = 6
"""The runs of a statement count only if the statement has at least this many words. Longer prompts often contain a
shorter statement ("maximum of two numbers") without asking the same question."""
LEAST_SAME_TOKENS = 16
"""Programs count as equal only if they have at least this many tokens. Shorter programs (``return len(x)``) answer many
different questions."""
LEAST_SHARED_TESTS = 2

Hit = tuple[int, str, str]
"""Place of an evaluation question, the rule that found the question, and the shared text."""


def check_duplicates(entries: Sequence[Entry]) -> Stage:
    """Leave out each entry that has the words of an earlier entry's prompt, or the same program. The first one stays.

    Whole prompts are compared and not only statements, because a statement may be as short as "fill in the body".
    """
    first_with: dict[tuple[Reason, str], Entry] = {}
    for entry in entries:
        prompt, reference = entry.question.prompt, entry.question.reference
        keys = [
            (Reason.DUPLICATE_PROMPT, " ".join(prompt_words(prompt)) or prompt),
            (Reason.DUPLICATE_REFERENCE, syntax_key(reference)),
        ]
        repeated = next((key for key in keys if key in first_with), None)
        if repeated:
            reason, _ = repeated
            yield entry.dropped(reason, f"of {first_with[repeated].name}")
        else:
            first_with.update(dict.fromkeys(keys, entry))
            yield entry


class EvalIndex:
    """An index of the questions of all evaluation sets. It finds the questions that a row repeats."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = questions
        self._places: dict[tuple[str, str], list[int]] = defaultdict(list)
        """Kind of text ("id", "prompt", "run", "program", "test") and text -> places of the questions with it."""
        self._originals = [(question.data_source, " ".join(words_of(question.prompt))) for question in questions]
        """For each place, the set and the words of the question. Copies of a question within a set have equal items in
        this list, so they count as one question. If each copy counted, the words of a copied question would seem
        common."""
        self._num_different = Counter(set_name for set_name, _ in set(self._originals))
        """Set -> number of its different questions."""
        for place, question in enumerate(questions):
            self._add(place, question)
        for key, places in list(self._places.items()):
            if key[0] in ("run", "prompt") and self._is_common(places):
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
            limit = max(LEAST_QUESTIONS, COMMON_SHARE * self._num_different[set_name])
            if count > limit:
                return True
        return False

    def _add(self, place: int, question: Question) -> None:
        texts = [("test", key) for key in set(map(assert_key, question.tests))]
        if "/" in question.id:  # an id without "/" may be a plain number, which many sets use
            texts.append(("id", question.id))
        texts += [("prompt", text) for text in _prompt_texts(question)]
        words = content_words(question.prompt)
        if len(words) >= LEAST_WHOLE_WORDS:
            texts += [("run", run) for run in _runs(words, RUN_WORDS) if _is_telling(run)]
        form = reference_form(question.reference)
        if len(tokens_of(form)) >= LEAST_SAME_TOKENS:
            texts.append(("program", form))
        for key in texts:
            self._places[key].append(place)

    # ------------------------------ hits ------------------------------

    def _hits(self, question: Question) -> Iterator[Hit]:
        """Yield the evaluation questions that a question repeats. The strongest of the four rules is tried first."""
        for place in self._places.get(("id", question.id), ()):
            yield place, "id", "the same id"
        for text in _prompt_texts(question):
            for place in self._places.get(("prompt", text), ()):
                yield place, "prompt", "the same words"
        words = content_words(question.prompt)
        longest = min(RUN_WORDS, len(words))
        for size in range(longest, LEAST_WHOLE_WORDS - 1, -1):  # a short evaluation statement is a run of fewer words
            for run in _runs(words, size):
                for place in self._places.get(("run", run), ()):
                    yield place, "prompt", f"{size} words: {run}"
        for place in self._places.get(("program", reference_form(question.reference)), ()):
            yield place, "reference", "the same program except for names"
        yield from self._test_hits(question)

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


def _prompt_texts(question: Question) -> list[str]:
    """List the words of the statement and those of the whole prompt, each joined by blanks, if they are not empty."""
    texts = [" ".join(words) for words in (content_words(question.prompt), prompt_words(question.prompt)) if words]
    return list(dict.fromkeys(texts))


def _runs(words: Words, size: int) -> list[str]:
    """List all runs of ``size`` words, joined by blanks. Fewer words are one run."""
    return [" ".join(words[start : start + size]) for start in range(max(len(words) - size, 0) + 1)]


def _is_telling(run: str) -> bool:
    """Say whether at least half of a run consists of words. The same runs of numbers occur in many statements."""
    words = run.split(" ")
    alphabetic = [word for word in words if word.isalpha() and len(word) > 1]
    return 2 * len(alphabetic) >= len(words)
