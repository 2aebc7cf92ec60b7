"""The leaderboard: how much each rule for the Test LLM improves the Code LLM, compared with a frozen Test LLM."""

import statistics
from pathlib import Path

import msgspec

from code_a1_recipe.errors import InputError
from code_a1_recipe.stats.estimates import mean_estimate
from code_a1_recipe.stats.tables import Table, table_with_head

from .results import RESULTS_FILE, load_results
from .summary import ExperimentSummary, equal_table

RULES = Path(__file__).parent / "leaderboard.json"
STORED = Path(__file__).parents[1] / "micro_results"
FROZEN = "frozen"
HEAD = (
    "rule",
    "results",
    "commit",
    "seeds",
    "pass@1 over frozen, equal steps",
    "pass@1 over frozen, equal seconds",
    "false-negative rate",
    "distinct-call rate",
    "narrow bugs detected",
    "the same over frozen",
    "seconds a step",
)


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a leaderboard's row; the measured cells are computed from the results."""

    rule: str
    """A line that describes the rule for readers."""
    results: str
    """Name of the folder in ``studies/micro_results`` with the ``results.json``."""
    arm: str
    commit: str
    narrow: str = ""
    """Share of narrow recorded programs that are detected. ``narrow`` is set only if the ``results.json`` is from an
    earlier release, which lacks this measure."""
    narrow_over_frozen: str = ""
    """``narrow`` divided by the same share of the arm ``FROZEN``."""


def leaderboard_table() -> Table:
    """Measure all rules of ``leaderboard.json`` from the stored results."""
    rules = msgspec.json.decode(RULES.read_bytes(), type=list[Rule])
    return table_with_head([HEAD, *(measured_row(rule, STORED / rule.results / RESULTS_FILE) for rule in rules)])


def measured_row(rule: Rule, results: Path) -> list[str]:
    """Measure one rule.

    Args:
        rule: the rule; its arm is compared with the arm ``FROZEN``.
        results: ``results.json`` of an experiment with both arms.

    Raises:
        InputError: the results lack one of the arms.
    """
    runs = load_results(results).runs
    if not {rule.arm, FROZEN} <= runs.keys():
        raise InputError(f"{results} must have the arms {rule.arm!r} and {FROZEN!r}, got {', '.join(runs)}; run both")
    summary = ExperimentSummary({name: runs[name] for name in (rule.arm, FROZEN)})
    _, frozen = equal_table(summary, "pass@1").rows
    measured = [summary.interval(rule.arm, name) for name in ("false_negative_rate", "distinct_call_rate")]
    seconds = [run.training["seconds_per_step"] for run in runs[rule.arm].values()]
    narrow, ratio = _narrow(rule, summary)
    return [
        rule.rule,
        rule.results,
        rule.commit,
        str(len(runs[rule.arm])),
        frozen[3],
        frozen[5],
        *(interval.plus_minus() if interval else "" for interval in measured),
        narrow,
        ratio,
        f"{statistics.fmean(seconds):.2f}",
    ]


def _narrow(rule: Rule, summary: ExperimentSummary) -> tuple[str, str]:
    mine, frozen = (summary.values(arm, "narrow_detected", summary.end(arm)) for arm in (rule.arm, FROZEN))
    ratios = [value / frozen[seed] for seed, value in mine.items() if frozen.get(seed)]
    if not ratios:
        return rule.narrow, rule.narrow_over_frozen
    return mean_estimate(list(mine.values())).plus_minus(), mean_estimate(ratios).plus_minus()
