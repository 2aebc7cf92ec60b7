"""Measures of both policies on held-out questions, from a run's records.

Code LLM:

- ``pass@1``: share of programs at temperature 1 that pass every hidden test;
- ``greedy``: share of programs at temperature 0 that pass every hidden test.

Test LLM, on buggy programs that are the same for every run (``Question.buggy_programs``):

- ``valid``: the Valid term of R_T, in [0, 1];
- ``kill``: share of suites with a case that the program fails;
- ``kill_per_case``: share of cases that the program fails;
- ``detection_rate``: share of suites with an assert that is correct as written and that the program fails.

A case kills a program whose answer differs from the reference's return value, even if the assertion itself is
incorrect. Only a correct assertion detects a bug. Programs lost to an outage do not count.
"""

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from ...runs.metrics import buggy_program_rates
from ...runs.reader import RunRecords
from ...runs.rollout_record import RolloutRecord
from ...stats.estimates import paired_difference

MEASURES = {
    "pass@1": "Code LLM, pass@1 at temperature 1",
    "greedy": "Code LLM, pass@1 greedy",
    "valid": "Test LLM, validity",
    "kill": "Test LLM, kill rate of suites",
    "kill_per_case": "Test LLM, kills per valid case",
    "detection_rate": "Test LLM, suites that detect the bug",
}
"""Name -> label, in the order of the tables."""


def measures_of(records: Iterable[RolloutRecord]) -> dict[str, dict[str, float]]:
    """Measure name -> question id -> mean of the question's samples. Measures without any sample are left out."""
    samples: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in MEASURES}
    for record in records:
        if record.outage:
            continue
        if record.kind != "buggy_program":
            if record.hidden_tests is not None:
                name = "greedy" if record.kind == "greedy" else "pass@1"
                samples[name][record.question].append(record.is_solved)
            continue
        for suite in record.suites:
            if suite.verdict is None or suite.reward is None:
                continue
            rates = buggy_program_rates(suite.verdict, valid=suite.reward.terms["valid"])
            for name, rate in rates.items():
                samples[name][record.question].append(rate)
    means: dict[str, dict[str, float]] = {}
    for name, by_question in samples.items():
        for question, values in by_question.items():
            means.setdefault(name, {})[question] = fmean(values)
    return means


def by_source(records: Iterable[RolloutRecord]) -> dict[str, list[RolloutRecord]]:
    """Group records by ``data_source``. The source of the first question comes first."""
    groups: dict[str, list[RolloutRecord]] = {}
    for record in sorted(records, key=lambda record: record.index):
        groups.setdefault(record.data_source, []).append(record)
    return groups


def validations(run: RunRecords, until: int | None) -> tuple[int, ...]:
    """Find the steps of the first and the last validation up to step ``until``; empty if there are fewer than two."""
    steps = [step for step in run.validation_steps if until is None or step <= until]
    return (steps[0], steps[-1]) if len(steps) > 1 else ()


def change_table(run: RunRecords, *, until: int | None = None, policy: str = "") -> str:
    """Write a comparison of the first and the last validation, paired by question; empty if nothing can be compared.

    Args:
        run: the run whose validations are compared.
        until: the last step that counts; None for all steps.
        policy: "Code LLM" or "Test LLM" for the measures of one policy; empty for all measures.
    """
    steps = validations(run, until)
    if not steps:
        return ""
    measured = []
    for step in steps:
        # Only the first source counts: further sources measure generalization, so they would blur this comparison.
        sources = by_source(run.validation(step))
        records = next(iter(sources.values()), [])
        measured.append(measures_of(records))
    first, last = measured
    width = max(map(len, MEASURES.values()))
    lines = []
    num_questions = 0
    for name, label in MEASURES.items():
        earlier, later = first.get(name, {}), last.get(name, {})
        if not label.startswith(policy) or earlier.keys().isdisjoint(later):
            continue
        before = fmean(earlier.values())
        after = fmean(later.values())
        difference = paired_difference(later, earlier)
        num_questions = max(num_questions, difference.num_values)
        verdict = ""
        if difference.excludes_zero:
            verdict = "  better" if difference.value > 0 else "  worse"
        interval = difference.plus_minus(signed=True)
        lines.append(f"  {label:{width}}  {before:.3f} -> {after:.3f}   {interval}{verdict}")
    if not lines:
        return ""
    span = f"step {steps[0]} -> step {steps[1]}"
    head = f"held-out questions ({num_questions}), {span}, 95 % interval of the paired difference:"
    return "\n".join([head, *lines])
