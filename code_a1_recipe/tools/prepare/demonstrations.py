"""Demonstrations for a cold start of the Test LLM: prompts as in training, each answered by a suite of correct asserts.

Each program of a question gives at most one demonstration. The asserts come from the question's own tests.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sandbox import CandidateVerdict, SandboxUnavailableError
from sandbox.text import syntax_key

from ...algorithm.prompts import render, template_for
from ...algorithm.question import Question, request_for
from ...algorithm.sampling import beginning_of_answer
from ...jobs.confinement import JudgeAll
from ...jobs.jsonl_store import Row
from ..test_quality.metrics import cases_by_place, is_broken, verdicts_of
from .options import SftOptions
from .references import distinct_tests

SHOWN = {
    "reference": "the question's reference, which passes every assert of its suite",
    "buggy_program": "a program of the column buggy_programs",
    "mutant": "the reference with a small mistake that makes it fail a test",
}
"""Origin of the program under test -> the description of this origin in the card."""
MAX_TESTS = 256
"""At most this many tests of a question are judged; they are drawn at random."""
MAX_ASSERT_CHARS = 400
MAX_CHARS = 16_384
"""Largest number of characters in a demonstration, over all its messages."""
_MUTANTS_TRIED = 3
"""Number of mutants that are tried for each wanted mutant. A mutant that passes all tests is not used."""


@dataclass(frozen=True)
class SuiteDemonstration:
    """One suite for one program. Each assert is a valid case that expects the reference's return value."""

    question: Question
    shown: str
    """Origin of the program: a key of ``SHOWN``."""
    program: str
    """The program under test."""
    asserts: Sequence[str]
    num_breaking: int
    """Number of asserts that the program fails."""

    def row(self, pair: str) -> Row:
        """Make a row for verl's SFT trainer. ``messages`` train the model; ``extra_info`` helps readers of the file.

        The prompt is the same as in an episode. If the template begins the answer, this beginning is left out, because
        the answer of a demonstration is complete.

        Args:
            pair: a name in ``prompts.PROMPT_PAIRS``.
        """
        messages = render(
            template_for("test", pair),
            **self.question.prompt_fields,
            candidate=self.program,
            num_cases=len(self.asserts),
        )
        # The prompts of tiny models do not ask for a code block, so a demonstration for such a model has asserts
        # without a code block.
        is_fenced = any("Python code block" in message["content"] for message in messages)
        if beginning_of_answer(messages):
            messages.pop()
        suite = "\n".join(self.asserts)
        answer = f"```python\n{suite}\n```" if is_fenced else suite
        return {
            "messages": [*messages, {"role": "assistant", "content": answer}],
            "extra_info": {
                "question": self.question.id,
                "data_source": self.question.data_source,
                "shown": self.shown,
                "num_cases": len(self.asserts),
                "num_breaking": self.num_breaking,
            },
        }


# ------------------------------ suites ------------------------------


def demonstrations_row(question: Question, judge_all: JudgeAll, *, options: SftOptions) -> Row:
    """Judge a question's tests on each of its programs, and choose a suite for each program.

    An assert may be chosen if it is a valid case, if its expected output equals the reference's return value, and if
    the reference passes it in a further run. Asserts that break the program come first; others fill the suite.

    Returns:
        A row of the work file. Each item of ``suites`` has the fields ``shown``, ``program``, ``asserts`` and
        ``num_breaking`` of a demonstration. ``counts`` maps a reason to the number of tests, programs or questions that
        were left out for it.
    """
    counts: Counter[str] = Counter()
    suites: list[tuple[str, str, list[str], int]] = []
    row: Row = {"question": question.id, "outage": None, "suites": suites, "counts": counts}
    tests = _tests(question, options.seed, counts)
    if not tests:
        return row
    programs = _programs(question, options)
    requests = [request_for(question, source, tests, given=True) for source in programs]
    try:
        verdicts = verdicts_of(judge_all, requests)
    except SandboxUnavailableError as error:
        return row | {"outage": str(error)}
    asserts = _right_asserts(tests, verdicts[0])
    counts["tests refused, or not right"] += len(tests) - len(asserts)
    if not asserts:
        return row
    mutants_left = options.mutants
    for number, (source, verdict) in enumerate(zip(programs, verdicts, strict=True)):
        shown = programs[source]
        if not verdict.loaded:
            counts[f"{shown} does not load"] += 1
            continue
        cases = cases_by_place(tests, verdict.suites[0])
        breaking = [place for place, case in cases if place in asserts and is_broken(case)]
        if shown == "mutant":
            counts["mutant that no test notices"] += not breaking
            if not breaking or not mutants_left:
                continue
            mutants_left -= 1
        # Each program has its own random generator, so that a further program does not change the suites of the others.
        rng = random.Random(f"{options.seed}:{question.id}:{number}")
        chosen = rng.sample(breaking, min(options.cases, len(breaking)))
        num_breaking = len(chosen)
        others = sorted(asserts.keys() - breaking)
        chosen += rng.sample(others, min(options.cases - num_breaking, len(others)))
        texts = [asserts[place] for place in chosen]
        suites.append((shown, source, texts, num_breaking))
    return row


def _tests(question: Question, seed: int, counts: Counter[str]) -> list[str]:
    texts = distinct_tests(question)
    short = [text for text in texts if len(text) <= MAX_ASSERT_CHARS]
    counts["tests that are too long"] += len(texts) - len(short)
    counts["questions without tests"] += not texts
    random.Random(f"{seed}:{question.id}").shuffle(short)
    return short[:MAX_TESTS]


def _programs(question: Question, options: SftOptions) -> dict[str, str]:
    """Collect the different programs: source -> origin, a key of ``SHOWN``. The reference comes first."""
    programs = [(question.reference, "reference")]
    programs += [(source, "buggy_program") for source in question.buggy_programs]
    if options.mutants:
        from ..test_quality.mutants import mutants_of  # imported here, because it needs cosmic-ray

        num_tried = _MUTANTS_TRIED * options.mutants
        mutants = mutants_of(question.reference, max_mutants=num_tried, seed=options.seed)
        # Mutants are sorted by the line that they change. Without a shuffle, all chosen mutants would change the first
        # lines of the reference.
        random.Random(f"{options.seed}:{question.id}").shuffle(mutants)
        programs += [(mutant.source, "mutant") for mutant in mutants]
    different: dict[str, tuple[str, str]] = {}
    for source, shown in programs:
        different.setdefault(syntax_key(source), (source, shown))
    return dict(different.values())


def _right_asserts(tests: Sequence[str], verdict: CandidateVerdict) -> dict[int, str]:
    """Write an assert for each test that holds: place of the test -> assert.

    Args:
        tests: texts of the tests.
        verdict: the verdict on the reference, judged like a candidate.
    """
    right = {}
    for place, case in cases_by_place(tests, verdict.suites[0]):
        if case.expected_correct and not case.outcome.failed:
            # The prompt asks for asserts of one line each. The reference's return value is always written on one line.
            expected = case.reference_value if "\n" in case.expected else case.expected
            right[place] = f"assert {case.call} == {expected}"
    return right


# ------------------------------ selection ------------------------------


def select(
    made: Iterable[SuiteDemonstration], options: SftOptions, *, counts: Counter[str]
) -> list[SuiteDemonstration]:
    """Leave out demonstrations that are too long, that repeat another, or that exceed the limit of their question.

    A demonstration repeats another if both answer the same prompt with the same asserts, in any order. Demonstrations
    whose suite breaks the program are taken first.

    Args:
        made: demonstrations in any order.
        options: ``prompt`` names the prompts; ``max_per_question`` is the limit for each question.
        counts: reason -> number of left-out demonstrations; changed in place.
    """
    kept = []
    num_of_question: Counter[str] = Counter()
    known = set()
    for shown in sorted(made, key=lambda demonstration: not demonstration.num_breaking):
        messages = shown.row(options.prompt)["messages"]
        key = (str(messages[:-1]), frozenset(shown.asserts))
        if sum(len(message["content"]) for message in messages) > MAX_CHARS:
            counts[f"longer than {MAX_CHARS} characters"] += 1
        elif key in known:
            counts["repeats another"] += 1
        elif num_of_question[shown.question.id] == options.max_per_question:
            counts["beyond the most of a question"] += 1
        else:
            known.add(key)
            num_of_question[shown.question.id] += 1
            kept.append(shown)
    return kept


def held_out(question_ids: Iterable[str], *, share: float, seed: int) -> frozenset[str]:
    """Choose the questions whose demonstrations are for validation. Equal ids and seeds give equal choices.

    Args:
        question_ids: ids of n different questions; repetitions do not count.
        share: number in [0, 1). The result has ``round(share * n)`` ids, but at least 1 and at most n - 1. The result
            is empty for a share of 0, or for fewer than two questions.
        seed: seed of the random choice.
    """
    ids = sorted(set(question_ids))
    if not share or len(ids) < 2:
        return frozenset()
    number = max(1, min(round(share * len(ids)), len(ids) - 1))
    random.Random(f"held out {seed}").shuffle(ids)
    return frozenset(ids[:number])
