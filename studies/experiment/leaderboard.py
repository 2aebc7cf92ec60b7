"""Add a rule to the leaderboard: what it brings over a Test LLM that never learns, in one experiment.

    python -m examples.leaderboard.row outputs/EXPERIMENT --arm ARM --rule 'what it is, in a line' --detection FOLDER

EXPERIMENT is a folder of ``examples.experiment`` with its report and the arms ARM and frozen; FOLDER is what
``detection.py`` wrote of it. The row goes into ``leaderboard.json`` beside this file, and the table of ``README.md`` is
made anew. A rule that brings nothing stays in it; the same rule and experiment again replace their row.
"""

import argparse
import json
import statistics
import subprocess
from pathlib import Path

from code_a1_recipe.errors import CodeA1Error
from code_a1_recipe.files import write_whole
from code_a1_recipe.stats.estimates import mean_estimate
from examples.experiment.results import RESULTS_FILE, load_results
from examples.experiment.summary import ExperimentSummary, equal_table

HERE = Path(__file__).parent
ROWS, README = HERE / "leaderboard.json", HERE / "README.md"
BEGIN, END = "<!-- rows: made by row.py -->", "<!-- end of rows -->"
FROZEN = "frozen"
COLUMNS = {
    "rule": "rule",
    "experiment": "experiment",
    "commit": "commit",
    "seeds": "seeds",
    "equal_steps": "pass@1 over frozen, equal steps",
    "equal_seconds": "pass@1 over frozen, equal seconds",
    "false_negative_rate": "false-negative rate",
    "distinct_call_rate": "distinct-call rate",
    "narrow": "narrow bugs detected",
    "narrow_over_frozen": "the same over frozen",
    "seconds_per_step": "seconds a step",
}


def row_of(summary: ExperimentSummary, detection: dict[str, dict[str, dict[str, dict[str, float]]]], arm: str) -> dict:
    """The measured columns of an arm, as texts; detection is ``[arm][seed][step]`` rates of ``detection.json``."""
    pair = ExperimentSummary({arm: summary.runs[arm], FROZEN: summary.runs[FROZEN]})
    (beside,) = [row for row in equal_table(pair, "pass@1").rows if row[1] == FROZEN]
    measured = {name: pair.interval(arm, name) for name in ("false_negative_rate", "distinct_call_rate")}
    last = {
        name: {seed: steps[max(steps, key=int)] for seed, steps in detection[name].items()} for name in (arm, FROZEN)
    }
    narrow = {name: {seed: rates["narrow"] for seed, rates in seeds.items()} for name, seeds in last.items()}
    ratios = [value / narrow[FROZEN][seed] for seed, value in narrow[arm].items() if seed in narrow[FROZEN]]
    seconds = [run.training["seconds_per_step"] for run in summary.runs[arm].values()]
    return {
        "seeds": len(summary.runs[arm]),
        "equal_steps": beside[3],
        "equal_seconds": beside[5],
        **{name: one.plus_minus() if one else "" for name, one in measured.items()},
        "narrow": mean_estimate(list(narrow[arm].values())).plus_minus(),
        "narrow_over_frozen": mean_estimate(ratios).plus_minus(),
        "seconds_per_step": f"{statistics.fmean(seconds):.2f}",
    }


def table(rows: list[dict]) -> str:
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "| --- " * len(COLUMNS) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(row[name]) for name in COLUMNS) + " |" for row in rows])


def with_table(text: str, rows: list[dict]) -> str:
    """The README with its rows made anew."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{rest.partition(END)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", type=Path)
    parser.add_argument("--arm", required=True)
    parser.add_argument("--rule", required=True)
    parser.add_argument("--detection", type=Path, required=True)
    options = parser.parse_args()
    try:
        summary = ExperimentSummary(load_results(options.experiment / "report" / RESULTS_FILE).runs)
        detection = json.loads((options.detection / "detection.json").read_text(encoding="utf-8"))
    except (CodeA1Error, OSError) as error:
        parser.error(str(error))
    for arm in (options.arm, FROZEN):
        if arm not in summary.runs or arm not in detection:
            parser.error(f"{options.experiment} and {options.detection} must both have the arm {arm!r}")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout
    name = {"rule": options.rule, "experiment": options.experiment.name, "commit": commit.strip()}
    rows = [
        row
        for row in json.loads(ROWS.read_text(encoding="utf-8"))
        if (row["rule"], row["experiment"]) != (options.rule, options.experiment.name)
    ]
    rows.append(name | row_of(summary, detection, options.arm))
    write_whole(ROWS, json.dumps(rows, indent=1) + "\n")
    write_whole(README, with_table(README.read_text(encoding="utf-8"), rows))
    print(table(rows[-1:]))


if __name__ == "__main__":
    main()
