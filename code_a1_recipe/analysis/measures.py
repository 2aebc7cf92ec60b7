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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
    "caught": "Test LLM, kills by a right claim",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardErrors:
    """Programs of training whose full reward is not deserved, as shares; None where there is nothing to share.

    Both need ``validation.hidden_in_training``.
    """

    fooled: float | None
    """Of the programs with full reward, those that fail a hidden test."""
    missed: float | None
    """Of the programs that fail a hidden test, those with full reward."""


def reward_errors(records: Iterable[Record]) -> RewardErrors:
    """How far the reward of programs is from the hidden tests; programs lost to an outage count nowhere."""
    judged = [record for record in records if record["reward"] is not None and record["hidden_tests"] is not None]
    full = [is_solved(record) for record in judged if record["reward"]["total"] > FULL_REWARD]
    num_wrong = sum(not is_solved(record) for record in judged)
    num_fooled = full.count(0.0)
    return RewardErrors(
        fooled=num_fooled / len(full) if full else None,
        missed=num_fooled / num_wrong if num_wrong else None,
    )


def distinct_share(records: Iterable[Record]) -> float | None:
    """Distinct calls among all calls of the suites written for one program, averaged over programs.

    1 where no two cases of a program make the same call; near 1 / cases where the Test LLM has one habit. None without
    cases.
    """
    shares = []
    for record in records:
        verdicts = [suite["verdict"] for suite in record["suites"] if suite["verdict"] is not None]
        keys = [case["key"] or case["call"] for verdict in verdicts for case in verdict["cases"]]
        if keys:
            shares.append(len(set(keys)) / len(keys))
    return statistics.fmean(shares) if shares else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """Training questions that most programs solved at some visit, and what became of them at the last one."""

    share: float
    """Of them, those that most programs fail at the last visit."""
    by_chance: float
    """The same, expected if each question's visits had come in any order: what sampling alone does."""


def forgetting(records_by_step: Sequence[Sequence[Record]]) -> Forgetting | None:
    """What was unlearned in training, beside what looks like it by chance.

    Needs ``validation.hidden_in_training``; None when no question was met twice and solved before its last visit.
    """
    visits: dict[str, list[bool]] = defaultdict(list)
    for records in records_by_step:
        of_step: dict[str, list[float]] = defaultdict(list)
        for record in records:
            if record["hidden_tests"] is not None and not record["outage"]:
                of_step[str(record["question"])].append(is_solved(record))
        for question, solved in of_step.items():
            visits[question].append(statistics.fmean(solved) > 0.5)
    once = [solved for solved in visits.values() if any(solved[:-1])]
    if not once:
        return None
    failed = solved_before = 0.0
    for visit in visits.values():
        good, number = sum(visit), len(visit)
        # In a random order the last visit is a failure this often; only then, or with a second good one, is one before.
        fails_last = (number - good) / number if good else 0.0
        failed += fails_last
        solved_before += fails_last + (good / number if good > 1 else 0.0)
    return Forgetting(
        share=statistics.fmean(not solved[-1] for solved in once),
        by_chance=failed / solved_before if solved_before else 0.0,
    )
