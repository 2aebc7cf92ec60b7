"""The reward curve of a job: python curve.py METRICS.jsonl"""

import json
import sys
from pathlib import Path

REWARD = "critic/score/mean"
WINDOW = 10
BARS = "▁▂▃▄▅▆▇█"


def rewards(path: Path) -> list[float]:
    """Mean reward of each step, in order, from the file of verl's "file" logger."""
    rows = [json.loads(line)["data"] for line in path.read_text(encoding="utf-8").splitlines()]
    return [row[REWARD] for row in rows if REWARD in row]


def summary(curve: list[float]) -> str:
    """One bar a step, and the means of the first and last ten steps (of each half, when there are fewer)."""
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
