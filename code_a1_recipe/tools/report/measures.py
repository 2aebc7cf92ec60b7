"""What a run's records say of both policies: held-out measures by question, and measures of training.

Held-out, Code LLM: ``pass@1`` (share of programs at temperature 1 that pass every hidden test), ``greedy`` (the same of
the program at temperature 0). Held-out, Test LLM, on buggy programs that are the same for every run
(``Question.buggy_programs``): ``valid`` (the Valid term of R_T, in [0, 1]), ``kill`` (share of suites with a case that
the program fails), ``kill_per_case`` (share of cases that it fails) and ``detection_rate`` (share of suites with an
assert that is right as written and that it fails). Cases are judged by the reference's answer, so a case with a wrong
assertion can kill, but not detect. ``change_table`` pairs them by question, first validation against last.

Programs lost to an outage count nowhere.
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
"""Name -> what it says, in the order of tables."""


def measures_of(records: Iterable[RolloutRecord]) -> dict[str, dict[str, float]]:
    """Each measure by question id; a measure that the validation did not take is left out.

    Programs and suites lost to an outage count nowhere.
    """
    samples: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in MEASURES}
    for record in records:
        if record.outage:
            continue
        if record.kind != "buggy_program":
            if record.hidden_tests is not None:
                samples["greedy" if record.kind == "greedy" else "pass@1"][record.question].append(record.is_solved)
            continue
        for suite in record.suites:
            if suite.verdict is None or suite.reward is None:
                continue
            for name, value in buggy_program_rates(suite.verdict, valid=suite.reward.terms["valid"]).items():
                samples[name][record.question].append(value)
    return {
        name: {question: fmean(values) for question, values in by_question.items()}
        for name, by_question in samples.items()
        if by_question
    }


def by_source(records: Iterable[RolloutRecord]) -> dict[str, list[RolloutRecord]]:
    """Records by ``data_source``; first the source of the first question."""
    found: dict[str, list[RolloutRecord]] = {}
    for record in sorted(records, key=lambda record: record.index):
        found.setdefault(record.data_source, []).append(record)
    return found


def validations(run: RunRecords, until: int | None) -> tuple[int, ...]:
    """The steps of the first and the last validation up to ``until``; empty with fewer than two."""
    steps = [step for step in run.validation_steps if until is None or step <= until]
    return (steps[0], steps[-1]) if len(steps) > 1 else ()


def change_table(run: RunRecords, *, until: int | None = None, policy: str = "") -> str:
    """Each measure at the first and the last validation up to a step, as text; empty when there is nothing to compare.

    Args:
        policy: "Code LLM" or "Test LLM" for the measures of one.
    """
    steps = validations(run, until)
    if not steps:
        return ""
    measured = []
    for step in steps:
        # Other sources may be there to see how far what was learned carries; they are no part of this comparison.
        sources = by_source(run.validation(step))
        measured.append(measures_of(next(iter(sources.values()), [])))
    first, last = measured
    width = max(map(len, MEASURES.values()))
    lines = []
    number = 0
    for name, words in MEASURES.items():
        earlier, later = first.get(name, {}), last.get(name, {})
        if not words.startswith(policy) or earlier.keys().isdisjoint(later):
            continue
        before = fmean(earlier.values())
        after = fmean(later.values())
        difference = paired_difference(later, earlier)
        number = max(number, difference.num_values)
        verdict = ""
        if difference.excludes_zero:
            verdict = "  better" if difference.value > 0 else "  worse"
        interval = difference.plus_minus(signed=True)
        lines.append(f"  {words:{width}}  {before:.3f} -> {after:.3f}   {interval}{verdict}")
    if not lines:
        return ""
    span = f"step {steps[0]} -> step {steps[1]}"
    head = f"held-out questions ({number}), {span}, 95 % interval of the paired difference:"
    return "\n".join([head, *lines])
