"""Demonstrations for a cold start of the Test LLM: a prompt as training will show it, and a suite of correct asserts.

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
    "reference": "the question's reference: the suite can only be right",
    "buggy_program": "a program of the column buggy_programs",
    "mutant": "the reference with a small mistake that one of its tests notices",
}
"""Origin of the program under test -> its description in the card."""
MAX_TESTS = 256
"""Most tests of a question that are judged; they are drawn at random."""
MAX_ASSERT_CHARS = 400
MAX_CHARS = 16_384
"""Most characters of a demonstration, all its messages together."""
_MUTANTS_TRIED = 3
"""Mutants tried for each one that is wanted. Some are equivalent to the reference, and some are noticed by no test."""


@dataclass(frozen=True)
class SuiteDemonstration:
    """One suite for one program. Each assert is a valid case that expects the reference's return value."""

    question: Question
    shown: str
    """A key of ``SHOWN``."""
    program: str
    """The program under test."""
    asserts: Sequence[str]
    num_breaking: int
    """How many of the asserts the program fails."""

    def row(self, pair: str) -> Row:
        """Make a row for verl's SFT trainer: ``messages``, and ``extra_info`` for people who look at the file.

        The prompt is the one that an episode sends. If the template begins the answer, that beginning is left out.

        Args:
            pair: a name in ``prompts.PROMPT_PAIRS``.
        """
        messages = render(
            template_for("test", pair),
            **self.question.prompt_fields,
            candidate=self.program,
            num_cases=len(self.asserts),
        )
        # The prompts of tiny models do not ask for a code block, so their answers are bare asserts.
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
    """Judge a question's tests on each of its programs, and choose a suite for each.

    An assert may be chosen if it is a valid case, if its expected output equals the reference's return value, and if
    the reference passes it in a further run. Asserts that break the program come first; others fill the suite.

    Returns:
        A row of the work file. ``suites`` holds the fields of a demonstration after ``question``, and ``counts`` says
        what was left out, by reason.
    """
    counts: Counter[str] = Counter()
    row: Row = {"question": question.id, "outage": None, "suites": [], "counts": counts}
    tests = _tests(question, options.seed, counts)
    if not tests:
        return row
    programs = _programs(question, options)
    try:
        verdicts = verdicts_of(judge_all, [request_for(question, source, tests) for source, _ in programs])
    except SandboxUnavailableError as error:
        return row | {"outage": str(error)}
    asserts = _right_asserts(tests, verdicts[0])
    counts["tests refused, or not right"] += len(tests) - len(asserts)
    if not asserts:
        return row
    mutants_left = options.mutants
    for number, ((source, shown), verdict) in enumerate(zip(programs, verdicts, strict=True)):
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
        # Each program has a generator of its own, so that a further program changes no suite of the others.
        rng = random.Random(f"{options.seed}:{question.id}:{number}")
        chosen = rng.sample(breaking, min(options.cases, len(breaking)))
        num_breaking = len(chosen)
        others = sorted(asserts.keys() - breaking)
        chosen += rng.sample(others, min(options.cases - num_breaking, len(others)))
        texts = [asserts[place] for place in chosen]
        row["suites"].append([shown, source, texts, num_breaking])
    return row


def _tests(question: Question, seed: int, counts: Counter[str]) -> list[str]:
    texts = distinct_tests(question)
    short = [text for text in texts if len(text) <= MAX_ASSERT_CHARS]
    counts["tests that are too long"] += len(texts) - len(short)
    counts["questions without tests"] += not texts
    random.Random(f"{seed}:{question.id}").shuffle(short)
    return short[:MAX_TESTS]


def _programs(question: Question, options: SftOptions) -> list[tuple[str, str]]:
    """Each different program with its origin, a key of ``SHOWN``; the reference comes first."""
    programs = [(question.reference, "reference")]
    programs += [(source, "buggy_program") for source in question.buggy_programs]
    if options.mutants:
        from ..test_quality.mutants import mutants_of  # imported here, because it needs cosmic-ray

        num_tried = _MUTANTS_TRIED * options.mutants
        mutants = mutants_of(question.reference, max_mutants=num_tried, seed=options.seed)
        # They are sorted by line. Without a shuffle, the chosen ones would all change the first lines.
        random.Random(f"{options.seed}:{question.id}").shuffle(mutants)
        programs += [(mutant.source, "mutant") for mutant in mutants]
    different: dict[str, tuple[str, str]] = {}
    for source, shown in programs:
        different.setdefault(syntax_key(source), (source, shown))
    return list(different.values())


def _right_asserts(tests: Sequence[str], verdict: CandidateVerdict) -> dict[int, str]:
    """Place -> text of each test that holds. The verdict must be about the reference as a candidate."""
    right = {}
    for place, case in cases_by_place(tests, verdict.suites[0]):
        if case.expected_correct and not case.outcome.failed:
            # The prompt asks for asserts of one line each; the return value is always written on one line.
            expected = case.reference_value if "\n" in case.expected else case.expected
            right[place] = f"assert {case.call} == {expected}"
    return right


# ------------------------------ selection ------------------------------


def select(
    made: Iterable[SuiteDemonstration], options: SftOptions, *, counts: Counter[str]
) -> list[SuiteDemonstration]:
    """Leave out demonstrations that are too long, that repeat another, or that exceed the limit of their question.

    Two suites are the same if they answer the same prompt with the same asserts, in any order. Suites that break
    their program are taken first.

    Args:
        made: demonstrations in any order.
        options: ``prompt`` decides which demonstrations are the same; ``max_per_question`` is the limit.
        counts: number of left-out demonstrations by reason; changed in place.
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
        share: in [0, 1). The result has ``round(share * n)`` ids, but at least 1 and never all of them. It is empty
            for a share of 0, or for fewer than two questions.
        seed: of the choice.
    """
    ids = sorted(set(question_ids))
    number = max(1, min(round(share * len(ids)), len(ids) - 1)) if share and len(ids) > 1 else 0
    random.Random(f"held out {seed}").shuffle(ids)
    return frozenset(ids[:number])
