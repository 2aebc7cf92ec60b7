"""What the records of training say: how far rewards are from hidden tests, how varied suites are, what is unlearned.

All but ``distinct_calls`` need ``validation.hidden_in_training``. Programs lost to an outage count nowhere.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..episode_metrics import FULL_REWARD, distinct_share
from .measures import REPLAYED, fails, is_solved, met_cases
from .records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardErrors:
    """Shares of programs whose reward and hidden tests disagree; None where there is nothing to share."""

    fooled: float | None
    """Of the programs with full reward, those that fail a hidden test."""
    missed: float | None
    """Of the programs that load and fail a hidden test, those that no case broke: new, given or replayed."""
    missed_by_new: float | None
    """The same of new and given cases alone: what would be missed without the Mistake Book."""
    denied: float | None
    """Of the programs that pass every hidden test, those without full reward."""


def reward_errors(records: Iterable[Record]) -> RewardErrors:
    """How far the reward of programs is from the hidden tests."""
    judged = [record for record in records if record["reward"] is not None and record["hidden_tests"] is not None]
    full = [record for record in judged if record["reward"]["total"] > FULL_REWARD]
    right = [record for record in judged if is_solved(record)]
    wrong = [record for record in judged if record["verdict"]["loaded"] and not is_solved(record)]
    return RewardErrors(
        fooled=_share(not is_solved(record) for record in full),
        missed=_share(not _is_broken(record, by_replays=True) for record in wrong),
        missed_by_new=_share(not _is_broken(record, by_replays=False) for record in wrong),
        denied=_share(record["reward"]["total"] <= FULL_REWARD for record in right),
    )


def _share(found: Iterable[bool]) -> float | None:
    values = list(found)
    return statistics.fmean(values) if values else None


def _is_broken(record: Record, *, by_replays: bool) -> bool:
    cases = (case for name, cases in met_cases(record) if by_replays or name != REPLAYED for case in cases)
    return any(map(fails, cases))


def distinct_calls(records: Iterable[Record]) -> float | None:
    """``distinct_share`` of the cases of all suites for one program, averaged over programs; None without cases."""
    shares = []
    for record in records:
        verdicts = [suite["verdict"] for suite in record["suites"] if suite["verdict"] is not None]
        shares.append(
            distinct_share([case["key"] or case["call"] for verdict in verdicts for case in verdict["cases"]])
        )
    found = [share for share in shares if share is not None]
    return statistics.fmean(found) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """What became of training questions after a visit at which programs solved them; None: it was not to be seen."""

    forgotten: float | None
    """Of the questions that most programs solved at some visit, those that most programs fail at the last one."""
    fails_next_visit: float | None
    """Probability that a program of the next visit fails where a program of this one passes."""
    fails_same_visit: float | None
    """Probability that another program of the same visit fails where one passes: what sampling does by itself.

    The two probabilities are equal in expectation where the policy stays as it is between visits.
    """


def forgetting(records_by_step: Sequence[Sequence[Record]]) -> Forgetting:
    """Questions solved once and failed later, beside what looks like it by sampling.

    Args:
        records_by_step: of each step, in order; the records of one question in one step are a visit.
    """
    visits: dict[str, list[list[float]]] = defaultdict(list)
    for records in records_by_step:
        of_step: dict[str, list[float]] = defaultdict(list)
        for record in records:
            if record["hidden_tests"] is not None and not record["outage"]:
                of_step[str(record["question"])].append(is_solved(record))
        for question, solved in of_step.items():
            visits[question].append(solved)
    by_majority = [[statistics.fmean(solved) > 0.5 for solved in visit] for visit in visits.values()]
    next_visits = [pair for visit in visits.values() for pair in pairwise(visit)]
    return Forgetting(
        forgotten=_share(not solved[-1] for solved in by_majority if any(solved[:-1])),
        fails_next_visit=_failures_after_a_pass((sum(one), sum(two), len(two)) for one, two in next_visits),
        # Of those visits that have a next one, so that both are of the same questions at the same time.
        fails_same_visit=_failures_after_a_pass((sum(one), sum(one) - 1, len(one) - 1) for one, _ in next_visits),
    )


def _failures_after_a_pass(visits: Iterable[tuple[float, float, int]]) -> float | None:
    """From passes, passes among the programs each is compared with, and their number."""
    pairs = [(passes * (number - others), passes * number) for passes, others, number in visits if passes]
    total = sum(all_pairs for _, all_pairs in pairs)
    return sum(failing for failing, _ in pairs) / total if total else None


def training_measures(records_by_step: Mapping[int, Sequence[Record]], *, end: int, last: int) -> dict[str, float]:
    """All of the above up to step ``end``, by the names of ``TRAINING_MEASURES``; what was not measured is left out.

    Args:
        records_by_step: of each step.
        end: last step that counts.
        last: steps up to ``end`` that rewards and suites are measured on; forgetting is measured from the start.
    """
    steps = [step for step in sorted(records_by_step) if step <= end]
    latest = [record for step in steps if step > end - last for record in records_by_step[step]]
    errors, unlearned = reward_errors(latest), forgetting([records_by_step[step] for step in steps])
    found = {
        "distinct": distinct_calls(latest),
        "fooled": errors.fooled,
        "missed": errors.missed,
        "missed_by_new": errors.missed_by_new,
        "denied": errors.denied,
        "forgotten": unlearned.forgotten,
        "fails_next_visit": unlearned.fails_next_visit,
        "fails_same_visit": unlearned.fails_same_visit,
    }
    return {name: value for name, value in found.items() if value is not None}


TRAINING_MEASURES: dict[str, str] = {
    "distinct": "Test LLM, pairs of cases for one program that make different calls, in the last ten steps of training",
    "fooled": "programs with full reward that fail a hidden test, in the last ten steps; lower is better",
    "missed": "wrong programs that no case broke, in the last ten steps; lower is better",
    "missed_by_new": "wrong programs that no case but a replayed one broke, in the last ten steps; lower is better",
    "denied": "right programs without full reward, in the last ten steps; lower is better",
    "forgotten": "training questions once solved by most programs and failed by most at the last visit",
    "fails_next_visit": "programs of a question's next visit that fail where one passed",
    "fails_same_visit": "other programs of the same visit that fail where one passed: sampling alone",
}
"""Name -> what it says, in the order of tables."""
