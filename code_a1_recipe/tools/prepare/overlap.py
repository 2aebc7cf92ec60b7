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
        """Rule and key, see ``_signs``, -> places of the questions with this key."""
        self._originals: list[tuple[str, str]] = []
        """For each place, the set and the words of the question. Copies of a question within a set have equal items in
        this list, so they count as one question. If each copy counted, the words of a copied question would seem
        common."""
        for place, question in enumerate(questions):
            words = " ".join(words_of(question.prompt))
            self._originals.append((question.data_source, words))
            for rule, key, _ in _signs(question, run_sizes=(RUN_WORDS,)):
                self._places[rule, key].append(place)
        self._num_different = Counter(set_name for set_name, _ in set(self._originals))
        """Set -> number of its different questions."""
        for (rule, key), places in list(self._places.items()):
            if rule == "prompt" and self._is_common(places):
                del self._places[rule, key]

    def _is_common(self, places: Sequence[int]) -> bool:
        """Say whether a text that the questions at ``places`` share is common in one of their sets."""
        originals = {self._originals[place] for place in places}
        counts = Counter(set_name for set_name, _ in originals)
        for set_name, count in counts.items():
            limit = max(LEAST_QUESTIONS, COMMON_SHARE * self._num_different[set_name])
            if count > limit:
                return True
        return False

    def check(self, entries: Sequence[Entry]) -> Stage:
        """Leave out each entry that repeats questions. For each repeated question, record the first rule that held."""
        for entry in entries:
            overlaps = list(self._overlaps(entry.question).values())
            if not overlaps:
                yield entry
                continue
            first = overlaps[0]
            detail = f"with {first.id} of {first.set_name}, by {first.how}: {first.detail}"
            yield entry.dropped(Reason.OVERLAP, detail, tuple(overlaps))

    def _overlaps(self, question: Question) -> dict[int, Overlap]:
        """Find the evaluation questions that a question repeats: place -> overlap."""
        overlap_at: dict[int, Overlap] = {}
        num_tests: Counter[int] = Counter()
        """Place -> number of shared tests."""
        # An evaluation statement of fewer than RUN_WORDS words is a shorter run.
        run_sizes = range(RUN_WORDS, LEAST_WHOLE_WORDS - 1, -1)
        for rule, key, detail in _signs(question, run_sizes=run_sizes):
            for place in self._places.get((rule, key), ()):
                if rule == "tests":
                    num_tests[place] += 1
                    if num_tests[place] < LEAST_SHARED_TESTS:
                        continue
                met = self.questions[place]
                overlap = Overlap(set_name=met.data_source, id=met.id, how=rule, detail=detail)
                overlap_at.setdefault(place, overlap)
        return overlap_at


def _signs(question: Question, *, run_sizes: Sequence[int]) -> Iterator[tuple[str, str, str]]:
    """Yield what two questions must share if one repeats the other: the rule, a key, and a detail for the reader.

    The strongest of the four rules comes first.
    """
    if "/" in question.id:  # an id without "/" may be a plain number, which many sets use
        yield "id", question.id, "the same id"
    statement = content_words(question.prompt)
    for words in (statement, prompt_words(question.prompt)):
        if words:
            yield "prompt", " ".join(words), "the same words"
    if len(statement) >= LEAST_WHOLE_WORDS:
        for size in run_sizes:
            for start in range(max(len(statement) - size, 0) + 1):  # fewer words are one run
                run = statement[start : start + size]
                if _is_telling(run):
                    text = " ".join(run)
                    yield "prompt", text, f"{len(run)} words: {text}"
    form = reference_form(question.reference)
    if len(tokens_of(form)) >= LEAST_SAME_TOKENS:
        yield "reference", form, "the same program except for names"
    tests = {assert_key(test): test for test in (*question.tests, *question.golden_tests)}
    for key, test in tests.items():
        yield "tests", key, f"{LEAST_SHARED_TESTS} tests or more, such as {test[:120]}"


def _is_telling(run: Words) -> bool:
    """Say whether at least half of a run consists of words. The same runs of numbers occur in many statements."""
    alphabetic = [word for word in run if word.isalpha() and len(word) > 1]
    return 2 * len(alphabetic) >= len(run)
