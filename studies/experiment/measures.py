"""Further measures of an experiment, from the records of training and validation.

The measures show where rewards and hidden tests disagree, how varied the suites are, and how much is forgotten. All
measures except ``distinct_calls`` need ``validation.hidden_in_training``. Programs lost to an outage do not count.
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
"""Name -> label of the two measures into which ``kill`` is split."""


def split_kills(records: Sequence[RolloutRecord]) -> dict[str, dict[str, float]]:
    """Compute ``kill`` for each of the two parts of the buggy programs: name in ``SPLIT_MEASURES`` -> question id ->
    value."""
    parts: dict[str, list[RolloutRecord]] = {name: [] for name in SPLIT_MEASURES}
    for record in records:
        if record.kind == "buggy_program":
            name = "kill_others" if record.candidate else "kill_first"
            parts[name].append(record)
    kills = {}
    for name, part in parts.items():
        by_question = measures_of(part).get("kill")
        if by_question:
            kills[name] = by_question
    return kills


def reward_errors(records: Iterable[RolloutRecord]) -> dict[str, float | None]:
    """Compute shares of programs whose reward and hidden tests disagree. A share is None if there are no such programs.

    - reward_false_positive_rate: of the programs with full reward, the share that fails a hidden test
    - false_negative_rate: of the programs that load and fail a hidden test, the share that no case (new, given or
      replayed) broke
    - false_negative_rate_without_replay: the same share without replayed cases, as if there were no Mistake Book
    - false_rejection_rate: of the programs that pass every hidden test, the share without full reward
    """
    full_and_failing = []
    unbroken = []
    unbroken_without_replay = []
    solved_without_full = []
    for record in records:
        if record.reward is None or record.hidden_tests is None:
            continue
        is_full = record.reward.total > FULL_REWARD
        if is_full:
            full_and_failing.append(not record.is_solved)
        if record.is_solved:
            solved_without_full.append(not is_full)
        elif record.is_loaded:
            unbroken.append(not record.is_broken())
            unbroken_without_replay.append(not record.is_broken(by_replays=False))
    return {
        "reward_false_positive_rate": _mean(full_and_failing),
        "false_negative_rate": _mean(unbroken),
        "false_negative_rate_without_replay": _mean(unbroken_without_replay),
        "false_rejection_rate": _mean(solved_without_full),
    }


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def distinct_calls(records: Iterable[RolloutRecord]) -> float | None:
    """Compute ``distinct_call_rate`` of all cases for a program, as a mean over programs; None without cases."""
    shares = []
    for record in records:
        calls = []
        for suite in record.suites:
            if suite.verdict is not None:
                calls += [case.id for case in suite.verdict.cases]
        share = distinct_call_rate(calls)
        if share is not None:
            shares.append(share)
    return _mean(shares)


def forgetting(records_by_step: Sequence[Sequence[RolloutRecord]]) -> dict[str, float | None]:
    """Measure how often training questions are solved first and failed later. A measure without data is None.

    The records of one question in one step are a visit.

    - forgotten: of the questions that most programs solved at an earlier visit, the share that most programs fail at
      the last visit
    - fails_next_visit: if a program passes, the probability that a program of the next visit to the question fails
    - fails_same_visit: if a program passes, the probability that another program of the same visit fails. This is the
      effect of sampling alone. If the policy does not change between visits, fails_same_visit and fails_next_visit have
      the same expectation

    Args:
        records_by_step: the records of each step, in order.
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
    to_next = [(sum(visit), sum(later), len(later)) for visit, later in next_visits]
    # A last visit has no next visit, so it is left out here too. Then both measures cover the same visits.
    to_same = [(sum(visit), sum(visit) - 1, len(visit) - 1) for visit, _ in next_visits]
    return {
        "forgotten": _mean([not solved[-1] for solved in by_majority if any(solved[:-1])]),
        "fails_next_visit": _failures_after_a_pass(to_next),
        "fails_same_visit": _failures_after_a_pass(to_same),
    }


def _failures_after_a_pass(visits: Iterable[tuple[float, float, int]]) -> float | None:
    """Compute how often a program fails that is compared with a passing program.

    Args:
        visits: three numbers for each visit: its passing programs; the passing programs with which each of them is
            compared; all programs with which each of them is compared.
    """
    num_failing = num_pairs = 0.0
    for num_passing, num_others_passing, num_others in visits:
        if num_passing:
            num_failing += num_passing * (num_others - num_others_passing)
            num_pairs += num_passing * num_others
    return num_failing / num_pairs if num_pairs else None


def training_measures(
    records_by_step: Mapping[int, Sequence[RolloutRecord]], *, end: int, last: int
) -> dict[str, float]:
    """Compute the measures in ``TRAINING_MEASURES`` up to step ``end``. Measures without data are left out.

    Args:
        records_by_step: the records of each step.
        end: the last step that counts.
        last: number of last steps on which rewards and suites are measured. Forgetting is measured on all steps.
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
"""Name -> label, in the order of the tables."""
