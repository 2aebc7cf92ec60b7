"""Demonstrations for a cold start of the Test LLM: a prompt as training will show it, and a good suite.

They are made of a question's own tests, or of a run's suites with correct assertions only (rejection sampling).
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reward_fns import ExtractionFailure, extract_suite
from sandbox import CandidateVerdict, SandboxUnavailableError, syntax_key

from ..algorithm.prompts import render, template_for
from ..algorithm.question import Question, entry_points_text, request_for
from ..algorithm.sampling import beginning_of_answer
from ..jobs.confinement import JudgeAll
from ..jobs.jsonl_store import Row
from ..runs.rollout_record import RolloutRecord, SuiteRecord
from ..test_quality.metrics import cases_by_place, is_broken
from .options import SftOptions

SHOWN = {
    "reference": "the question's reference: the suite can only be right",
    "buggy_program": "a program of the column buggy_programs",
    "mutant": "the reference with a small mistake that one of its tests notices",
    "rollout": "a program that a run's Code LLM wrote",
}
"""Where the program under test comes from."""
MAX_TESTS = 256
"""Tests of a question that are judged, drawn from all."""
MAX_ASSERT_CHARS = 400
MAX_CHARS = 16_384
"""Of all messages of a demonstration together."""
_MUTANTS_TRIED = 3
"""For each mutant that is wanted: some are equivalent to the reference, some are noticed by no test."""


@dataclass(frozen=True, slots=True)
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
    step: int = -1
    """Training step of the run that wrote the suite; -1 where none did."""


@dataclass(frozen=True, slots=True)
class PromptStyle:
    """How demonstrations become messages."""

    pair: str
    """A name in ``prompts.PROMPT_PAIRS``, or the path of the Test LLM's own template."""
    black_box: bool = False
    """The Test LLM is not shown the program."""

    @property
    def template(self) -> str:
        """Name or path of the Test LLM's template."""
        return template_for("black_box_test" if self.black_box else "test", self.pair)

    @property
    def is_fenced(self) -> bool:
        """Whether the template asks for a ```python block; tiny models write bare asserts."""
        messages = render(self.template, prompt="", entry_points="", candidate="", num_cases=1)
        return any("Python code block" in message["content"] for message in messages)

    def row(self, shown: SuiteDemonstration) -> Row:
        """A row for verl's SFT trainer: ``messages``, and ``extra_info`` for people who look at the file.

        The prompt is the one that an episode sends, without a template's beginning of the answer.
        """
        reads_input = shown.question.reads_input
        messages = render(
            self.template,
            prompt=shown.question.prompt,
            entry_points=entry_points_text(shown.program, reads_input=reads_input),
            reads_input=reads_input,
            candidate=shown.program,
            num_cases=len(shown.asserts),
        )
        if beginning_of_answer(messages):
            messages.pop()
        suite = "\n".join(shown.asserts)
        answer = f"```python\n{suite}\n```" if self.is_fenced else suite
        return {
            "messages": [*messages, {"role": "assistant", "content": answer}],
            "extra_info": {
                "question": shown.question.id,
                "data_source": shown.question.data_source,
                "shown": shown.shown,
                "num_cases": len(shown.asserts),
                "num_breaking": shown.num_breaking,
                "step": shown.step,
            },
        }


# ------------------------------ of a question's tests ------------------------------


def demonstrations_row(question: Question, options: SftOptions, judge_all: JudgeAll) -> Row:
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
    verdicts: list[CandidateVerdict] = []
    for verdict in judge_all([request_for(question, source, tests) for source, _ in programs]):
        if isinstance(verdict, SandboxUnavailableError):
            return row | {"outage": str(verdict)}
        verdicts.append(verdict)
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
        chosen = _chosen(rng, list(asserts), breaking, options.cases)
        num_breaking = len(set(chosen) & set(breaking))
        row["suites"].append([shown, source, [asserts[place] for place in chosen], num_breaking])
    return row


def _tests(question: Question, seed: int, counts: Counter[str]) -> list[str]:
    texts = list(dict.fromkeys((*question.tests, *question.golden_tests)))
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
    for source, shown in programs:
        different.setdefault(syntax_key(source), (source, shown))
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


def _chosen(rng: random.Random, right: Sequence[int], breaking: Sequence[int], number: int) -> list[int]:
    """At most ``number`` of the places ``right``: of those that break the program as many as there are, then others."""
    first = rng.sample(breaking, min(number, len(breaking)))
    others = sorted(set(right) - set(breaking))
    return first + rng.sample(others, min(number - len(first), len(others)))


# ------------------------------ of a run ------------------------------


def demonstrations_from(
    records: Iterable[RolloutRecord], questions: Mapping[str, Question], *, num_cases: int, counts: Counter[str]
) -> Iterator[SuiteDemonstration]:
    """The suites whose asserts are all valid cases with a correct assertion, as many as asked for.

    Args:
        records: scored programs with their suites; those lost to an outage are left out and counted.
        questions: by id; records of others are left out and counted.
        num_cases: K.
        counts: gets what is left out, by reason.
    """
    for record in records:
        question = questions.get(record.question)
        if record.outage:
            counts["programs lost to an outage"] += 1
        elif question is None:
            counts["programs of unknown questions"] += 1
        elif record.source is not None:
            for suite in record.suites:
                asserts = _recorded_asserts(suite, num_cases, counts)
                if not asserts or suite.verdict is None:
                    continue
                num_breaking = suite.verdict.num_failed if record.is_loaded else 0
                yield SuiteDemonstration(question, "rollout", record.source, asserts, num_breaking, record.step)


def _recorded_asserts(suite: SuiteRecord, num_cases: int, counts: Counter[str]) -> tuple[str, ...]:
    """The asserts of a recorded suite as they were written; empty, and counted, where one of them is not right."""
    asserts, verdict = extract_suite(suite.response), suite.verdict
    if verdict is None or isinstance(asserts, ExtractionFailure):
        counts["suites without a verdict, or without asserts"] += 1
    elif verdict.rejections:
        counts["suites with an assert that is no valid case"] += 1
    elif verdict.num_expected_incorrect:
        counts["suites with an incorrect assertion"] += 1
    elif not len(asserts) == verdict.num_valid == num_cases:
        counts[f"suites of other than {num_cases} asserts"] += 1
    else:
        return asserts
    return ()


# ------------------------------ selection ------------------------------


def select(
    made: Iterable[SuiteDemonstration],
    *,
    style: PromptStyle,
    max_per_question: int,
    only_breaking: bool = False,
    counts: Counter[str],
) -> list[SuiteDemonstration]:
    """Leave out what is too long, what was said before, and what is too much of one question.

    Suites with the same asserts, in whatever order, for the same prompt are one. Of a question's programs each gets
    its turn: first every program's best suite, then every one's second. The best break their program, and are late.

    Args:
        made: in any order; questions come out in the order in which they first appear.
        style: decides which prompts are the same.
        max_per_question: demonstrations of a question, at least 1.
        only_breaking: leave out suites that do not break the program shown.
        counts: gets what is left out, by reason.
    """
    by_question: dict[str, list[tuple[int, SuiteDemonstration]]] = {}
    turns: Counter[tuple[str, str]] = Counter()
    known: set[tuple[str, frozenset[str]]] = set()
    for shown in sorted(made, key=lambda one: (one.num_breaking == 0, -one.step)):
        messages = style.row(shown)["messages"]
        key = (str(messages[:-1]), frozenset(shown.asserts))
        if only_breaking and not shown.num_breaking:
            counts["does not break the program"] += 1
        elif sum(len(message["content"]) for message in messages) > MAX_CHARS:
            counts[f"longer than {MAX_CHARS} characters"] += 1
        elif key in known:
            counts["repeats another"] += 1
        else:
            known.add(key)
            program = (shown.question.id, shown.program)
            by_question.setdefault(shown.question.id, []).append((turns[program], shown))
            turns[program] += 1
    kept = []
    for demonstrations in by_question.values():
        demonstrations.sort(key=lambda one: one[0])
        kept += [shown for _, shown in demonstrations[:max_per_question]]
        counts["beyond the most of a question"] += len(demonstrations[max_per_question:])
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
