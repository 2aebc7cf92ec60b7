"""What a validation says about both policies, by held-out question.

Code LLM: ``pass@1`` (share of programs at temperature 1 that pass every hidden test), ``greedy`` (the same of the
program at temperature 0). Test LLM, on wrong programs that are the same for every run (``Question.wrong_programs``):
``valid`` (the Valid term of R_T, in [0, 1]), ``kill`` (share of suites with a case that the wrong program fails),
``kill_per_case`` (share of cases that it fails) and ``caught`` (share of suites with an assert that is right as written
and that it fails). Cases are judged by the reference's answer, so a case with a wrong claim can kill, but not catch.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sandbox import CaseOutcome

from .records import Record

ByQuestion = dict[str, float]

MEASURES: dict[str, str] = {
    "pass@1": "Code LLM, pass@1 at temperature 1",
    "greedy": "Code LLM, pass@1 greedy",
    "valid": "Test LLM, validity",
    "kill": "Test LLM, kill rate of suites",
    "kill_per_case": "Test LLM, kills per valid case",
    "caught": "Test LLM, kills by a right claim",
}
"""Name -> what it says, in the order of tables."""
SPLIT_MEASURES: dict[str, str] = {
    "kill_first": "Test LLM, kill rate of suites for the first wrong program of each question (micro world: a mutant)",
    "kill_others": "Test LLM, the same for the other ones (micro world: recorded programs of the base Code LLM)",
}
"""``kill`` in two parts."""


def measures_of(records: Iterable[Record]) -> dict[str, ByQuestion]:
    """Each measure by question id; a measure that the validation did not take is left out.

    Programs and suites lost to an outage count nowhere.
    """
    samples: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in (*MEASURES, *SPLIT_MEASURES)}
    for record in records:
        if record["outage"]:
            continue
        question, kind = str(record["question"]), record.get("kind", "sampled")
        if kind == "sampled" and record["hidden_tests"] is not None:
            samples["pass@1"][question].append(is_solved(record))
        elif kind == "greedy" and record["hidden_tests"] is not None:
            samples["greedy"][question].append(is_solved(record))
        elif kind == "probe":
            _add_probe(samples, question, record)
    return {
        name: {question: statistics.fmean(values) for question, values in by_question.items()}
        for name, by_question in samples.items()
        if by_question
    }


def _add_probe(samples: dict[str, dict[str, list[float]]], question: str, record: Record) -> None:
    for suite in record["suites"]:
        if suite["verdict"] is None or suite["reward"] is None:
            continue
        cases = suite["verdict"]["cases"]
        failed = [fails(case) for case in cases]
        samples["valid"][question].append(float(suite["reward"]["terms"]["valid"]))
        samples["kill"][question].append(float(any(failed)))
        samples["kill_others" if record["candidate"] else "kill_first"][question].append(float(any(failed)))
        samples["caught"][question].append(float(any(fails(case) and case["claimed_right"] for case in cases)))
        if failed:
            samples["kill_per_case"][question].append(statistics.fmean(failed))


def is_solved(record: Record) -> float:
    """1.0 when the program passed every hidden test, and there were some; else 0.0."""
    cases = record["hidden_tests"]["cases"]
    return float(bool(cases) and not any(fails(case) for case in cases))


def fails(case: Mapping[str, object]) -> bool:
    """Whether a recorded case broke the program."""
    return case["outcome"] != CaseOutcome.PASSED.value


SUITE, REPLAYED = "suite", "replayed from the Mistake Book"


def met_cases(record: Record) -> Iterator[tuple[str, Sequence[Mapping[str, str]]]]:
    """The tests that a program met, by where they come from; suites without a verdict left out."""
    for suite in record["suites"]:
        if suite["verdict"] is not None:
            yield SUITE, suite["verdict"]["cases"]
    for key, name in (("given_tests", "given tests"), ("pooled_tests", "pooled tests")):
        if record.get(key) is not None:
            yield name, record[key]["cases"]
    if record["verdict"] is not None and record["verdict"]["history"]:
        yield REPLAYED, record["verdict"]["history"]
