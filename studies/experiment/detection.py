"""Detection curves: how many fixed buggy programs, narrow and wide, do the suites of a Test LLM break, over its steps?

    python -m examples.leaderboard.detection outputs/EXPERIMENT --recorded recorded.jsonl --output detection

EXPERIMENT is a folder of ``examples.experiment`` (``<arm>/seed<n>``) whose runs validated on a file that
``recorded.py`` made. A program counts as detected where a valid case of any of its suites breaks it; as caught where
such a case is also right as written. Writes ``detection.json``, ``detection.md`` and ``detection.png``; intervals are
over seeds.
"""

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from code_a1_recipe.errors import CodeA1Error
from code_a1_recipe.files import write_whole
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.stats.estimates import mean_estimate

from .recorded import NARROW, WIDE, kinds_file

Rates = dict[str, float]


def rates_of(run: RunRecords, step: int, kinds: dict[str, dict[str, dict[str, object]]]) -> Rates:
    """Shares of programs in [0, 1] by ``<kind>``, ``<kind> at <stage>`` and ``<kind> caught``."""
    found: dict[str, list[bool]] = defaultdict(list)
    for record in run.validation(step):
        if record.kind != "buggy_program" or record.outage:
            continue
        program = kinds[record.question][record.source or ""]
        failed = [case for _, cases in record.met_cases() for case in cases if case.outcome.failed]
        for name in (program["kind"], f"{program['kind']} at {program['stage']}"):
            found[str(name)].append(bool(failed))
        found[f"{program['kind']} caught"].append(any(case.expected_correct for case in failed))
    return {name: statistics.fmean(values) for name, values in sorted(found.items())}


def curves(experiment: Path, kinds: dict[str, dict[str, dict[str, object]]]) -> dict[str, dict[str, dict[int, Rates]]]:
    """``[arm][seed][step]``: rates of every run that measured a Test LLM on the recorded programs."""
    found: dict[str, dict[str, dict[int, Rates]]] = defaultdict(dict)
    for folder in sorted(experiment.glob("*/seed*/")):
        run = RunRecords.open(folder)
        by_step = {step: rates_of(run, step, kinds) for step in run.validation_steps}
        if any(by_step.values()):
            found[folder.parent.name][folder.name] = by_step
    return found


def table(found: dict[str, dict[str, dict[int, Rates]]]) -> str:
    """Markdown: a row for each arm and step, a column for each rate, means with 95 % intervals over seeds."""
    names = sorted(
        {name for seeds in found.values() for steps in seeds.values() for row in steps.values() for name in row}
    )
    lines = ["| arm | step | " + " | ".join(names) + " |", "| --- | ---: |" + " ---: |" * len(names)]
    for arm, seeds in found.items():
        for step in sorted({step for steps in seeds.values() for step in steps}):
            values = [[steps[step].get(name) for steps in seeds.values() if step in steps] for name in names]
            cells = [mean_estimate([one for one in row if one is not None]).plus_minus() for row in values]
            lines.append(f"| {arm} | {step} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def ratios(found: dict[str, dict[str, dict[int, Rates]]], base: str) -> str:
    """Markdown: narrow and wide detection at each arm's last step over that of ``base``, paired by seed."""
    lines = [f"| last step, over {base} | narrow | wide |", "| --- | ---: | ---: |"]
    last = {arm: {seed: steps[max(steps)] for seed, steps in seeds.items()} for arm, seeds in found.items()}
    for arm, seeds in last.items():
        shared = [seed for seed in seeds if seed in last[base]]
        row = [mean_estimate([seeds[one][kind] / last[base][one][kind] for one in shared]) for kind in (NARROW, WIDE)]
        lines.append(f"| {arm} | " + " | ".join(one.plus_minus() for one in row) + " |")
    return "\n".join(lines) + "\n"


def draw(found: dict[str, dict[str, dict[int, Rates]]], path: Path) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for axis, kind in zip(axes, (NARROW, WIDE), strict=True):
        for arm, seeds in found.items():
            steps = sorted({step for one in seeds.values() for step in one})
            rows = [[one[step][kind] for one in seeds.values() if step in one] for step in steps]
            axis.plot(steps, [statistics.fmean(row) for row in rows], marker="o", label=arm)
            axis.fill_between(steps, [min(row) for row in rows], [max(row) for row in rows], alpha=0.2)
        axis.set(title=f"{kind} bugs", xlabel="training step", ylim=(0, 1))
    axes[0].set_ylabel("share of fixed buggy programs broken")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", type=Path)
    parser.add_argument("--recorded", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--base", default="frozen", help="arm that the others are divided by")
    options = parser.parse_args()
    try:
        found = curves(options.experiment, json.loads(kinds_file(options.recorded).read_text(encoding="utf-8")))
    except (CodeA1Error, OSError) as error:
        parser.error(str(error))
    if not found:
        parser.error(f"{options.experiment} holds no run (<arm>/seed<n>) with suites for recorded programs")
    options.output.mkdir(parents=True, exist_ok=True)
    write_whole(options.output / "detection.json", json.dumps(found, indent=1) + "\n")
    text = table(found) + ("\n" + ratios(found, options.base) if options.base in found else "")
    write_whole(options.output / "detection.md", text)
    draw(found, options.output / "detection.png")
    print(text)


if __name__ == "__main__":
    main()
