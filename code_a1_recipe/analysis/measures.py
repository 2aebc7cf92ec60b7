"""What a run's records say of both policies: held-out measures by question, and measures of training.

Held-out, Code LLM: ``pass@1`` (share of programs at temperature 1 that pass every hidden test), ``greedy`` (the same of
the program at temperature 0). Held-out, Test LLM, on buggy programs that are the same for every run
(``Question.buggy_programs``): ``valid`` (the Valid term of R_T, in [0, 1]), ``kill`` (share of suites with a case that
the program fails), ``kill_per_case`` (share of cases that it fails) and ``detection_rate`` (share of suites with an
assert that is right as written and that it fails). Cases are judged by the reference's answer, so a case with a wrong
assertion can kill, but not detect. ``changes_of`` pairs them by question, first validation against last.

Training: how far rewards are from hidden tests, how varied suites are, what is unlearned; all but ``distinct_calls``
need ``validation.hidden_in_training``. Programs lost to an outage count nowhere.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..algorithm.rewards import FULL_REWARD
from ..runs.metrics import buggy_program_rates, distinct_call_rate
from ..runs.reader import RunRecords
from ..runs.rollout_record import RolloutRecord
from ..stats.estimates import Estimate, mean_estimate, paired_difference

MEASURES: dict[str, str] = {
    "pass@1": "Code LLM, pass@1 at temperature 1",
    "greedy": "Code LLM, pass@1 greedy",
    "valid": "Test LLM, validity",
    "kill": "Test LLM, kill rate of suites",
    "kill_per_case": "Test LLM, kills per valid case",
    "detection_rate": "Test LLM, suites that detect the bug",
}
"""Name -> what it says, in the order of tables."""
SPLIT_MEASURES: dict[str, str] = {
    "kill_first": "Test LLM, kill rate of suites for the first buggy program of each question (micro world: a mutant)",
    "kill_others": "Test LLM, the same for the other ones (micro world: recorded programs of the base Code LLM)",
}
"""``kill`` in two parts."""


def measures_of(records: Iterable[RolloutRecord]) -> dict[str, dict[str, float]]:
    """Each measure by question id; a measure that the validation did not take is left out.

    Programs and suites lost to an outage count nowhere.
    """
    samples: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in (*MEASURES, *SPLIT_MEASURES)}
    for record in records:
        if record.outage:
            continue
        if record.kind == "buggy_program":
            _add_buggy_program(samples, record)
        elif record.hidden_tests is not None:
            samples["greedy" if record.kind == "greedy" else "pass@1"][record.question].append(record.is_solved)
    return {
        name: {question: statistics.fmean(values) for question, values in by_question.items()}
        for name, by_question in samples.items()
        if by_question
    }


def by_source(records: Iterable[RolloutRecord]) -> dict[str, list[RolloutRecord]]:
    """Records by ``data_source``; first the source of the first question."""
    found: dict[str, list[RolloutRecord]] = {}
    for record in sorted(records, key=lambda record: record.index):
        found.setdefault(record.data_source, []).append(record)
    return found


def _add_buggy_program(samples: dict[str, dict[str, list[float]]], record: RolloutRecord) -> None:
    for suite in record.suites:
        if suite.verdict is None or suite.reward is None:
            continue
        values = buggy_program_rates(suite.verdict, valid=suite.reward.terms["valid"])
        values["kill_others" if record.candidate else "kill_first"] = values["kill"]
        for name, value in values.items():
            samples[name][record.question].append(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One measure before and after, over the same held-out questions."""

    measure: str
    before: Estimate
    after: Estimate
    difference: Estimate

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """A row of a table."""
        return MEASURES[self.measure], self.before.plus_minus(), self.after.plus_minus(), self.difference.starred()


def validations(run: RunRecords, until: int | None = None) -> tuple[int, ...]:
    """The steps of the first and the last validation up to ``until``; empty with fewer than two."""
    steps = [step for step in run.validation_steps if until is None or step <= until]
    return (steps[0], steps[-1]) if len(steps) > 1 else ()


def changes_of(run: RunRecords, *, until: int | None = None) -> list[Change]:
    """Each measure's change between the first and the last validation up to a step; empty with fewer than two."""
    steps = validations(run, until)
    if not steps:
        return []
    # Other sources may be there to see how far what was learned carries; they are no part of this comparison.
    first, last = (
        measures_of(next(iter(by_source(run.validation(step)).values()), [])) for step in (steps[0], steps[-1])
    )
    return [
        Change(
            measure=name,
            before=mean_estimate(list(first[name].values())),
            after=mean_estimate(list(last[name].values())),
            difference=paired_difference(last[name], first[name]),
        )
        for name in MEASURES
        if name in first and name in last and first[name].keys() & last[name].keys()
    ]


def change_table(run: RunRecords) -> str:
    """The changes as lines of text; empty when there is nothing to compare."""
    changes = changes_of(run)
    if not changes:
        return ""
    steps = run.validation_steps
    number = max(change.after.num_values for change in changes)
    width = max(len(MEASURES[change.measure]) for change in changes)
    lines = [
        f"held-out questions ({number}), step {steps[0]} -> step {steps[-1]}, 95 % interval of the paired difference:"
    ]
    for change in changes:
        verdict = (
            "" if not change.difference.excludes_zero else "  better" if change.difference.value > 0 else "  worse"
        )
        lines.append(
            f"  {MEASURES[change.measure]:{width}}  {change.before.value:.3f} -> {change.after.value:.3f}   "
            f"{change.difference.plus_minus(signed=True)}{verdict}"
        )
    return "\n".join(lines)


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
        if (share := distinct_call_rate([case.key or case.call for case in cases])) is not None:
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
