"""Measures of an experiment beyond those of a run's report, from the records of training and of validation.

They say how far rewards are from hidden tests, how varied suites are and what is unlearned. All but ``distinct_calls``
need ``validation.hidden_in_training``. Programs lost to an outage count nowhere.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from code_a1_recipe.algorithm.rewards import FULL_REWARD
from code_a1_recipe.runs.metrics import distinct_call_rate
from code_a1_recipe.runs.rollout_record import RolloutRecord
from code_a1_recipe.tools.report.measures import measures_of

SPLIT_MEASURES: dict[str, str] = {
    "kill_first": "Test LLM, kill rate of suites for the first buggy program of each question (micro world: a mutant)",
    "kill_others": "Test LLM, the same for the other ones (micro world: recorded programs of the base Code LLM)",
}
"""``kill`` in two parts."""


def split_kills(records: Sequence[RolloutRecord]) -> dict[str, dict[str, float]]:
    """``kill`` by the names of ``SPLIT_MEASURES`` and by question id; what the validation did not take is left out."""
    parts: dict[str, list[RolloutRecord]] = {name: [] for name in SPLIT_MEASURES}
    for record in records:
        if record.kind == "buggy_program":
            parts["kill_others" if record.candidate else "kill_first"].append(record)
    kills = {name: measures_of(part).get("kill") for name, part in parts.items()}
    return {name: by_question for name, by_question in kills.items() if by_question}


def reward_errors(records: Iterable[RolloutRecord]) -> dict[str, float | None]:
    """Shares of programs whose reward and hidden tests disagree; None where there is nothing to share.

    - reward_false_positive_rate: programs that fail a hidden test, among those with full reward
    - false_negative_rate: programs that no case broke, new, given or replayed, among those that load and fail a hidden
      test
    - false_negative_rate_without_replay: the same of new and given cases alone: what would go unnoticed without the
      Mistake Book
    - false_rejection_rate: programs without full reward, among those that pass every hidden test
    """
    judged = [
        (record, record.reward.total > FULL_REWARD)
        for record in records
        if record.reward is not None and record.hidden_tests is not None
    ]
    wrong = [record for record, _ in judged if record.is_loaded and not record.is_solved]
    return {
        "reward_false_positive_rate": _rate(not record.is_solved for record, is_full in judged if is_full),
        "false_negative_rate": _rate(not record.is_broken() for record in wrong),
        "false_negative_rate_without_replay": _rate(not record.is_broken(by_replays=False) for record in wrong),
        "false_rejection_rate": _rate(not is_full for record, is_full in judged if record.is_solved),
    }


def _rate(found: Iterable[bool]) -> float | None:
    values = list(found)
    return statistics.fmean(values) if values else None


def distinct_calls(records: Iterable[RolloutRecord]) -> float | None:
    """``distinct_call_rate`` of the cases of all suites for one program, averaged over programs; None without cases."""
    shares = []
    for record in records:
        cases = [case for suite in record.suites if suite.verdict is not None for case in suite.verdict.cases]
        if (share := distinct_call_rate([case.id for case in cases])) is not None:
            shares.append(share)
    return statistics.fmean(shares) if shares else None


def forgetting(records_by_step: Sequence[Sequence[RolloutRecord]]) -> dict[str, float | None]:
    """Training questions solved once and failed later, beside what looks like it by sampling; None: not to be seen.

    - forgotten: of the questions that most programs solved at some visit, those that most programs fail at the last one
    - fails_next_visit: probability that a program of the next visit fails where a program of this one passes
    - fails_same_visit: probability that another program of the same visit fails where one passes: what sampling does by
      itself. Equal to fails_next_visit in expectation where the policy stays as it is between visits

    Args:
        records_by_step: of each step, in order; the records of one question in one step are a visit.
    """
    visits: dict[str, list[list[float]]] = defaultdict(list)
    for records in records_by_step:
        of_step: dict[str, list[float]] = defaultdict(list)
        for record in records:
            if record.hidden_tests is not None and not record.outage:
                of_step[record.question].append(record.is_solved)
        for question, solved in of_step.items():
            visits[question].append(solved)
    by_majority = [[statistics.fmean(solved) > 0.5 for solved in visit] for visit in visits.values()]
    next_visits = [pair for visit in visits.values() for pair in pairwise(visit)]
    return {
        "forgotten": _rate(not solved[-1] for solved in by_majority if any(solved[:-1])),
        "fails_next_visit": _failures_after_a_pass((sum(one), sum(two), len(two)) for one, two in next_visits),
        # Of those visits that have a next one, so that both are of the same questions at the same time.
        "fails_same_visit": _failures_after_a_pass((sum(one), sum(one) - 1, len(one) - 1) for one, _ in next_visits),
    }


def _failures_after_a_pass(visits: Iterable[tuple[float, float, int]]) -> float | None:
    """From passes, passes among the programs each is compared with, and their number."""
    pairs = [(passes * (number - others), passes * number) for passes, others, number in visits if passes]
    total = sum(all_pairs for _, all_pairs in pairs)
    return sum(failing for failing, _ in pairs) / total if total else None


def training_measures(
    records_by_step: Mapping[int, Sequence[RolloutRecord]], *, end: int, last: int
) -> dict[str, float]:
    """All of the above up to step ``end``, by the names of ``TRAINING_MEASURES``; what was not measured is left out.

    Args:
        records_by_step: of each step.
        end: last step that counts.
        last: steps up to ``end`` that rewards and suites are measured on; forgetting is measured from the start.
    """
    steps = [step for step in sorted(records_by_step) if step <= end]
    latest = [record for step in steps if step > end - last for record in records_by_step[step]]
    unlearned = forgetting([records_by_step[step] for step in steps])
    found = {"distinct_call_rate": distinct_calls(latest), **reward_errors(latest), **unlearned}
    return {name: value for name, value in found.items() if value is not None}


_LAST = "in the last ten steps"
TRAINING_MEASURES: dict[str, str] = {
    "distinct_call_rate": f"Test LLM, pairs of cases for one program that make different calls, {_LAST} of training",
    "reward_false_positive_rate": f"programs with full reward that fail a hidden test, {_LAST}; lower is better",
    "false_negative_rate": f"incorrect programs that no case broke, {_LAST}; lower is better",
    "false_negative_rate_without_replay": f"incorrect programs that no case broke but a replayed one, {_LAST}; lower "
    "is better",
    "false_rejection_rate": f"correct programs without full reward, {_LAST}; lower is better",
    "forgotten": "training questions once solved by most programs and failed by most at the last visit",
    "fails_next_visit": "programs of a question's next visit that fail where one passed",
    "fails_same_visit": "other programs of the same visit that fail where one passed: sampling alone",
}
"""Name -> what it says, in the order of tables."""
