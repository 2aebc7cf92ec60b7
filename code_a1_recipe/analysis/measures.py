"""What a validation says about both policies, by held-out question.

Code LLM: ``pass@1`` (share of programs at temperature 1 that pass every hidden test), ``greedy`` (the same of the
program at temperature 0). Test LLM, on wrong programs that are the same for every run (``Question.wrong_programs``):
``valid`` (the Valid term of R_T, in [0, 1]), ``kill`` (share of suites with a valid case that the wrong program fails),
``kill_per_case`` (share of valid cases that it fails), and ``product`` (valid times kill, as the paper's Mul).
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sandbox import CaseOutcome

from ..episode_metrics import FULL_REWARD
from .records import Record

ByQuestion = dict[str, float]

MEASURES: dict[str, str] = {
    "pass@1": "Code LLM, pass@1 at temperature 1",
    "greedy": "Code LLM, pass@1 greedy",
    "valid": "Test LLM, validity",
    "kill": "Test LLM, kill rate of suites",
    "kill_per_case": "Test LLM, kills per valid case",
    "product": "Test LLM, validity x kill rate",
}
"""Name -> what it says, in the order of tables."""


def measures_of(records: Iterable[Record]) -> dict[str, ByQuestion]:
    """Each measure by question id; a measure that the validation did not take is left out.

    Programs and suites lost to an outage count nowhere.
    """
    samples: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in MEASURES}
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
    found = {
        name: {question: statistics.fmean(values) for question, values in by_question.items()}
        for name, by_question in samples.items()
        if by_question
    }
    if "valid" in found:
        found["product"] = {question: found["valid"][question] * found["kill"][question] for question in found["valid"]}
    return found


def _add_probe(samples: dict[str, dict[str, list[float]]], question: str, record: Record) -> None:
    for suite in record["suites"]:
        if suite["verdict"] is None or suite["reward"] is None:
            continue
        failed = [fails(case) for case in suite["verdict"]["cases"]]
        samples["valid"][question].append(float(suite["reward"]["terms"]["valid"]))
        samples["kill"][question].append(float(any(failed)))
        if failed:
            samples["kill_per_case"][question].append(statistics.fmean(failed))


def is_solved(record: Record) -> float:
    """1.0 when the program passed every hidden test, and there were some; else 0.0."""
    cases = record["hidden_tests"]["cases"]
    return float(bool(cases) and not any(fails(case) for case in cases))


def fails(case: Mapping[str, object]) -> bool:
    """Whether a recorded case broke the program."""
    return case["outcome"] != CaseOutcome.PASSED.value


def fooled_share(records: Iterable[Record]) -> tuple[int, int]:
    """Programs of training with full reward: how many fail a hidden test, and how many there are.

    Needs ``validation.hidden_in_training``; (0, 0) without it.
    """
    full = [
        record
        for record in records
        if record["reward"] is not None
        and record["reward"]["total"] > FULL_REWARD
        and record["hidden_tests"] is not None
    ]
    return sum(not is_solved(record) for record in full), len(full)


def forgotten_share(records_by_step: Sequence[Sequence[Record]]) -> float | None:
    """Share of the questions that most programs solved at some visit which most fail at the last one.

    Needs ``validation.hidden_in_training``; None when no question was met twice and solved before its last visit.
    """
    visits: dict[str, list[float]] = defaultdict(list)
    for records in records_by_step:
        of_step: dict[str, list[float]] = defaultdict(list)
        for record in records:
            if record["hidden_tests"] is not None and not record["outage"]:
                of_step[str(record["question"])].append(is_solved(record))
        for question, solved in of_step.items():
            visits[question].append(statistics.fmean(solved))
    once = [rates for rates in visits.values() if any(rate > 0.5 for rate in rates[:-1])]
    return statistics.fmean(rates[-1] <= 0.5 for rates in once) if once else None
