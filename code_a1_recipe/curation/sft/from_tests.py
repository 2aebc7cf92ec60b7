"""Demonstrations made of a question's own tests: asserts that hold on the reference, chosen against a program."""

import random
from collections import Counter
from collections.abc import Sequence

from sandbox import CandidateVerdict, SandboxUnavailableError, syntax_key

from ...algorithm.question import Question, request_for
from ...jobs.confinement import JudgeAll
from ...jobs.jsonl_store import Row
from ...test_quality.kill_matrix import cases_by_place, is_broken
from .options import SftOptions

MOST_TESTS = 256
"""Tests of a question that are judged, drawn from all."""
_MUTANTS_TRIED = 3
"""For each mutant that is wanted: some are equivalent to the reference, some are noticed by no test."""


def demonstrations_row(question: Question, options: SftOptions, judge_all: JudgeAll) -> Row:
    """A question's suites with what was left out: one row of the work file.

    Tests are judged on each program: only valid cases whose expected output equals the reference's return value, and
    that the reference passes when it is run once more, are written. Those that break the program come first; others
    fill up.
    """
    counts: Counter[str] = Counter()
    row: Row = {"question": question.id, "outage": None, "suites": [], "counts": counts}
    tests = _tests(question, options, counts)
    if not tests:
        return row
    programs = _programs(question, options)
    verdicts: list[CandidateVerdict] = []
    for result in judge_all([request_for(question, source, tests) for _, source in programs]):
        if isinstance(result, SandboxUnavailableError):
            return row | {"outage": str(result)}
        verdicts.append(result)
    right = _right_places(tests, verdicts[0])
    counts["tests refused, or not right"] += len(tests) - len(right)
    if not right:
        return row
    asserts = {place: f"assert {call} == {expected}" for place, (call, expected) in right.items()}
    mutants_left = options.mutants
    for number, ((shown, source), verdict) in enumerate(zip(programs, verdicts, strict=True)):
        if not verdict.loaded:
            counts[f"{shown} does not load"] += 1
            continue
        breaking = [place for place, case in cases_by_place(tests, verdict.suites[0]) if is_broken(case)]
        breaking = [place for place in breaking if place in right]
        if shown == "mutant" and (not breaking or not mutants_left):
            counts["mutant that no test notices"] += not breaking
            continue
        mutants_left -= shown == "mutant"
        rng = random.Random(f"{options.seed}:{question.id}:{number}")
        chosen = _choose(rng, list(right), breaking, options.num_cases)
        row["suites"].append(
            {
                "shown": shown,
                "program": source,
                "asserts": [asserts[place] for place in chosen],
                "num_breaking": sum(place in breaking for place in chosen),
            }
        )
    return row


def _tests(question: Question, options: SftOptions, counts: Counter[str]) -> list[str]:
    texts = list(dict.fromkeys((*question.tests, *question.golden_tests)))
    short = [text for text in texts if len(text) <= options.max_assert_chars]
    counts["tests that are too long"] += len(texts) - len(short)
    counts["questions without tests"] += not texts
    random.Random(f"{options.seed}:{question.id}").shuffle(short)
    return short[:MOST_TESTS]


def _programs(question: Question, options: SftOptions) -> list[tuple[str, str]]:
    """(where it comes from, source) of each different program, the reference first."""
    found = [("reference", question.reference), *(("buggy_program", text) for text in question.buggy_programs)]
    if options.mutants:
        from ...test_quality.mutants import mutants_of  # here: needs cosmic-ray

        mutants = mutants_of(question.reference, max_mutants=_MUTANTS_TRIED * options.mutants, seed=options.seed)
        random.Random(f"{options.seed}:{question.id}").shuffle(mutants)  # they come by line
        found += [("mutant", mutant.source) for mutant in mutants]
    different: dict[str, tuple[str, str]] = {}
    for shown, source in found:
        different.setdefault(syntax_key(source), (shown, source))
    return list(different.values())


def _right_places(tests: Sequence[str], verdict: CandidateVerdict) -> dict[int, tuple[str, str]]:
    """Place -> (call, expected output) of each test that holds; the verdict is on the reference as a candidate."""
    right = {}
    for place, case in cases_by_place(tests, verdict.suites[0]):
        if case.expected_correct and not case.outcome.failed:
            # An expected output over several lines would make an assert that is not "one line of the form".
            right[place] = (case.call, case.reference_value if "\n" in case.expected else case.expected)
    return right


def _choose(rng: random.Random, right: Sequence[int], breaking: Sequence[int], number: int) -> list[int]:
    """At most ``number`` of the places ``right``: of those that break the program as many as there are, then others."""
    first = rng.sample(breaking, min(number, len(breaking)))
    others = sorted(set(right) - set(breaking))
    return first + rng.sample(others, min(number - len(first), len(others)))
