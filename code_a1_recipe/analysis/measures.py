"""What a run's records say of both policies: held-out measures by question, and measures of training.

Held-out, Code LLM: ``pass@1`` (share of programs at temperature 1 that pass every hidden test), ``greedy`` (the same of
the program at temperature 0). Held-out, Test LLM, on buggy programs that are the same for every run
(``Question.buggy_programs``): ``valid`` (the Valid term of R_T, in [0, 1]), ``kill`` (share of suites with a case that
the program fails), ``kill_per_case`` (share of cases that it fails) and ``detection_rate`` (share of suites with an
assert that is right as written and that it fails). Cases are judged by the reference's answer, so a case with a wrong
assertion can kill, but not detect. ``changes_of`` pairs them by question, first validation against last.

Programs lost to an outage count nowhere.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ..runs.metrics import buggy_program_rates
from ..runs.reader import RunRecords
from ..runs.rollout_record import RolloutRecord
from ..stats.estimates import Estimate, paired_difference

MEASURES: dict[str, str] = {
    "pass@1": "Code LLM, pass@1 at temperature 1",
    "greedy": "Code LLM, pass@1 greedy",
    "valid": "Test LLM, validity",
    "kill": "Test LLM, kill rate of suites",
    "kill_per_case": "Test LLM, kills per valid case",
    "detection_rate": "Test LLM, suites that detect the bug",
}
"""Name -> what it says, in the order of tables."""


def measures_of(records: Iterable[RolloutRecord]) -> dict[str, dict[str, float]]:
    """Each measure by question id; a measure that the validation did not take is left out.

    Programs and suites lost to an outage count nowhere.
    """
    samples: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in MEASURES}
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
        for name, value in buggy_program_rates(suite.verdict, valid=suite.reward.terms["valid"]).items():
            samples[name][record.question].append(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One measure before and after, over the same held-out questions."""

    measure: str
    before: float
    after: float
    difference: Estimate


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
            before=statistics.fmean(first[name].values()),
            after=statistics.fmean(last[name].values()),
            difference=paired_difference(last[name], first[name]),
        )
        for name in MEASURES
        if name in first and name in last and first[name].keys() & last[name].keys()
    ]


def change_table(run: RunRecords, *, until: int | None = None, policy: str = "") -> str:
    """The changes up to a step as lines of text; empty when there is nothing to compare.

    Args:
        policy: "Code LLM" or "Test LLM" for the measures of one.
    """
    changes = [change for change in changes_of(run, until=until) if MEASURES[change.measure].startswith(policy)]
    if not changes:
        return ""
    first, last = validations(run, until)
    number = max(change.difference.num_values for change in changes)
    width = max(len(MEASURES[change.measure]) for change in changes)
    lines = [f"held-out questions ({number}), step {first} -> step {last}, 95 % interval of the paired difference:"]
    for change in changes:
        difference, verdict = change.difference, ""
        if difference.excludes_zero:
            verdict = "  better" if difference.value > 0 else "  worse"
        lines.append(
            f"  {MEASURES[change.measure]:{width}}  {change.before:.3f} -> {change.after:.3f}   "
            f"{difference.plus_minus(signed=True)}{verdict}"
        )
    return "\n".join(lines)
