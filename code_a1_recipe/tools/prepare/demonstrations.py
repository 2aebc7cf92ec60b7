"""Demonstrations for a cold start of the Test LLM: a prompt as training will show it, and a suite of right asserts.

They are made of a question's own tests, one for each of its programs.
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
"""Where the program under test comes from."""
MAX_TESTS = 256
"""Tests of a question that are judged, drawn from all."""
MAX_ASSERT_CHARS = 400
MAX_CHARS = 16_384
"""Of all messages of a demonstration together."""
_MUTANTS_TRIED = 3
"""For each mutant that is wanted: some are equivalent to the reference, some are noticed by no test."""


@dataclass(frozen=True)
class SuiteDemonstration:
    """One suite for one program. Every assert is a valid case, and its expected output the reference's return value."""

    question: Question
    shown: str
    """A key of ``SHOWN``."""
    program: str
    """The program under test."""
    asserts: Sequence[str]
    num_breaking: int
    """How many of the asserts the program fails."""

    def row(self, pair: str) -> Row:
        """A row for verl's SFT trainer: ``messages``, and ``extra_info`` for people who look at the file.

        The prompt is the one that an episode sends, without a template's beginning of the answer.

        Args:
            pair: a name in ``prompts.PROMPT_PAIRS``.
        """
        messages = render(
            template_for("test", pair),
            **self.question.prompt_fields,
            candidate=self.program,
            num_cases=len(self.asserts),
        )
        # Tiny models are not asked for a block; they write bare asserts.
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
    """A question's suites (the fields of a demonstration), and counts of what was left out: one row of the work file.

    Tests are judged on each program. An assert is written where it is a valid case, its expected output equals the
    reference's return value, and the reference passes it when it is run once more. Those that break the program come
    first; others fill up.
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
    mutants_left = options.mutants
    for number, ((source, shown), verdict) in enumerate(zip(programs, verdicts, strict=True)):
        if not asserts:
            break
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
        rng = random.Random(f"{options.seed}:{question.id}:{number}")
        chosen = rng.sample(breaking, min(options.cases, len(breaking)))
        num_breaking = len(chosen)
        others = sorted(set(asserts) - set(breaking))
        chosen += rng.sample(others, min(options.cases - num_breaking, len(others)))
        row["suites"].append([shown, source, [asserts[place] for place in chosen], num_breaking])
    return row


def _tests(question: Question, seed: int, counts: Counter[str]) -> list[str]:
    texts = distinct_tests(question)
    short = [text for text in texts if len(text) <= MAX_ASSERT_CHARS]
    counts["tests that are too long"] += len(texts) - len(short)
    counts["questions without tests"] += not texts
    random.Random(f"{seed}:{question.id}").shuffle(short)
    return short[:MAX_TESTS]


def _programs(question: Question, options: SftOptions) -> list[tuple[str, str]]:
    """Source of each different program, and where it comes from; the reference first."""
    programs = [(question.reference, "reference")]
    programs += [(source, "buggy_program") for source in question.buggy_programs]
    if options.mutants:
        from ..test_quality.mutants import mutants_of  # here: needs cosmic-ray

        mutants = mutants_of(question.reference, max_mutants=_MUTANTS_TRIED * options.mutants, seed=options.seed)
        random.Random(f"{options.seed}:{question.id}").shuffle(mutants)  # they come by line
        programs += [(mutant.source, "mutant") for mutant in mutants]
    different: dict[str, tuple[str, str]] = {}
    for program in programs:
        different.setdefault(syntax_key(program[0]), program)
    return list(different.values())


def _right_asserts(tests: Sequence[str], verdict: CandidateVerdict) -> dict[int, str]:
    """Place -> text of each test that holds; the verdict is on the reference as a candidate."""
    right = {}
    for place, case in cases_by_place(tests, verdict.suites[0]):
        if case.expected_correct and not case.outcome.failed:
            # An expected output over several lines would make an assert that is not "one line of the form".
            expected = case.reference_value if "\n" in case.expected else case.expected
            right[place] = f"assert {case.call} == {expected}"
    return right


# ------------------------------ selection ------------------------------


def select(
    made: Iterable[SuiteDemonstration], options: SftOptions, *, counts: Counter[str]
) -> list[SuiteDemonstration]:
    """Leave out what is too long, what was said before, and what is too much of one question.

    Suites with the same asserts, in whatever order, for the same prompt are one. Of a question those that break their
    program come first.

    Args:
        made: in any order.
        options: with the prompts, which decide what is the same, and the number of a question.
        counts: gets what is left out, by reason.
    """
    kept = []
    num_of_question: Counter[str] = Counter()
    known = set()
    for shown in sorted(made, key=lambda one: one.num_breaking == 0):
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
    """Ids of the questions whose demonstrations are for validation, the same ones for the same ids and seed.

    ``round(share * n)`` of n questions, with the share in [0, 1); where it is above 0 and there are two, at least 1,
    and never all.
    """
    ids = sorted(set(question_ids))
    number = max(1, min(round(share * len(ids)), len(ids) - 1)) if share and len(ids) > 1 else 0
    random.Random(f"held out {seed}").shuffle(ids)
    return frozenset(ids[:number])
