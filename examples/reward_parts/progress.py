"""What the reward parts measured in runs: first five steps beside the last five.

    python examples/reward_parts/progress.py outputs/RUN ...

Rates of metrics are means over steps; findings are means over all programs of these steps that were rewarded.
"""

import json
import statistics
import sys
from pathlib import Path

STEPS = 5
TEST_METRICS = ("test/valid", "test/distinct_call_rate", "test/coverage", "test/mutants_killed")
METRICS = ("code/pass@1", *TEST_METRICS, "timing_s/step")


def findings(run: Path, step: int) -> list[float]:
    lines = (run / "rollouts" / f"train_{step:06d}.jsonl").read_text(encoding="utf-8").splitlines()
    terms = [(json.loads(line)["reward"] or {}).get("terms", {}) for line in lines]
    return [one["findings"] for one in terms if "findings" in one]


def main() -> None:
    names = (*METRICS, "findings a program")
    print("\n".join([f"| run, {STEPS} steps | {' | '.join(names)} |", "| --- " * (len(names) + 1) + "|"]))
    for run in map(Path, sys.argv[1:]):
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        rows = [row for row in rows if "timing_s/step" in row]
        for part, chosen in (("first", rows[:STEPS]), ("last", rows[-STEPS:])):
            values = [[row[name] for row in chosen if name in row] for name in METRICS]
            values.append([one for row in chosen for one in findings(run, row["step"])])
            shown = [f"{statistics.fmean(one):.3f}" if one else "" for one in values]
            print(f"| {run.name}, {part} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
