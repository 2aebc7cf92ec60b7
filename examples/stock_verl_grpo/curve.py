"""Prints the reward curve of a job: python curve.py METRICS.jsonl"""

import json
import sys
from pathlib import Path

REWARD = "critic/score/mean"
WINDOW = 10
BARS = "▁▂▃▄▅▆▇█"


def rewards(path: Path) -> list[float]:
    """Read the mean reward of each step, in order, from the file of verl's "file" logger."""
    curve = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)["data"]
        if REWARD in row:
            curve.append(row[REWARD])
    return curve


def summary(curve: list[float]) -> str:
    """Draw one bar for each step, and compare the means of the first and last ten steps.

    With fewer than twenty steps, the means are those of the two halves.
    """
    window = max(1, min(WINDOW, len(curve) // 2))
    low, high = min(curve), max(curve)
    bars = "".join(BARS[round((len(BARS) - 1) * (value - low) / (high - low or 1.0))] for value in curve)
    first, last = curve[:window], curve[-window:]
    return (
        f"{bars}  ({low:.3f} to {high:.3f})\n"
        f"mean reward: first {window} steps {sum(first) / window:.3f}, last {window} steps {sum(last) / window:.3f}"
    )


if __name__ == "__main__":
    print(summary(rewards(Path(sys.argv[1]))))
