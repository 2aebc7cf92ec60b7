"""`gpu_report.md`: what the runs took, beside what was planned, for whoever reads a report from another machine."""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from code_a1_recipe.config.run_config import RunConfig
from code_a1_recipe.runs.folder import versions_text
from code_a1_recipe.training.plan.check import Plan
from code_a1_recipe.training.plan.needs import Place

from .card import GIB, Card

POLICIES = ("code", "test")
_PARTS = ("step", "episodes", "update_code", "update_test", "update_weights")
_MEASURES = ("peak GiB", "planned GiB", "probs diff mean", "max")
_ISSUE = (
    "If a test failed, or a figure looks odd: open an issue, say what you ran, and send this file with your report."
)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run, what it took, and what it left behind, read when it ended. Bytes, and seconds."""

    name: str
    run: Any
    config: RunConfig
    plan: Plan
    seconds: float
    peak: int
    processes_left: list[str]
    memory_left: int
    rows: list[dict[str, Any]] = field(init=False, default_factory=list)
    """Of metrics.jsonl."""
    sleeps: list[dict[str, Any]] = field(init=False, default_factory=list)
    """Sleeps and wakes in their order."""
    digest: str = field(init=False, default="")
    """Hash of every response and reward, and of every figure of the updates."""

    def __post_init__(self) -> None:
        if (self.run.folder / "metrics.jsonl").exists():
            self.rows.extend(self.run.metrics)
            object.__setattr__(self, "digest", self._digest())
        if (log := self.run.folder / "sleeps.jsonl").exists():
            self.sleeps.extend(json.loads(line) for line in log.read_text().splitlines())

    def _digest(self) -> str:
        content: list[Any] = []
        for row in self.rows:
            for record in self.run.rollouts(row["step"]):
                suites = [(suite.response, suite.reward and suite.reward.total) for suite in record.suites]
                content.append((record.question, record.response, record.reward and record.reward.total, suites))
            names = [name for name in row if "/actor/" in name or "rollout_probs_diff" in name]
            content.append([(name, row[name]) for name in sorted(names)])
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    @property
    def planned(self) -> int:
        """Most memory of a card at a moment, by `code-a1 plan`."""
        return max((row.needed for row in self.plan.rows if row.place.startswith(Place.CARD)), default=0)

    def diffs(self, kind: str) -> list[float]:
        """Differences between servers and training of all steps and policies; ``kind`` is "mean" or "max"."""
        names = [f"{policy}/rollout_probs_diff_{kind}" for policy in POLICIES]
        return [row[name] for row in self.rows for name in names if name in row]


@dataclass(kw_only=True)
class Report:
    """Grows with each run."""

    card: Card | None
    shape: str
    """Of both policies."""
    runs: list[Measured] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def max_mean_diff(self) -> float:
        """Above what rounding does (about 0.003 in bfloat16, 1e-8 in float32), below what other weights do (0.03)."""
        return 0.01 if self.card else 1e-5

    def text(self, stats: Mapping[str, Sequence[Any]]) -> str:
        """Markdown; ``stats`` are pytest's reports by outcome."""
        where = f"{self.card.name}, {self.card.total / GIB:.1f} GiB" if self.card else "REHEARSAL on a CPU, no card"
        driver = f", driver {self.card.driver}" if self.card else ""
        outcomes = [
            (outcome, one)
            for outcome in ("passed", "failed", "error", "skipped")
            for one in stats.get(outcome, ())
            if "tests/gpu" in one.nodeid
        ]
        return "\n".join(
            [
                f"# GPU report: {where}{driver}",
                "",
                f"Policies: random weights, shape {self.shape}. {platform.platform()}; {versions_text()}",
                "",
                "Seconds a step are those of the last step; start and end are all that is no step.",
                "",
                _table(
                    ("run", "exit", "steps", "start, end s", *(f"{part} s" for part in _PARTS), *_MEASURES),
                    [self._row(run) for run in self.runs],
                ),
                "",
                *(f"- {note}" for note in [*self._determinism(), *self._sleeping(), *self.notes]),
                "",
                _table(("test", "outcome"), [(one.nodeid.split("::")[-1], outcome) for outcome, one in outcomes]),
                "",
                _ISSUE,
                "",
            ]
        )

    def _row(self, measured: Measured) -> tuple[str, ...]:
        rows = measured.rows
        last = rows[-1] if rows else {}
        stepping = sum(row.get("timing_s/step", 0.0) for row in rows)
        parts = [f"{last[key]:.1f}" if (key := f"timing_s/{part}") in last else "-" for part in _PARTS]
        amounts = [f"{amount / GIB:.1f}" if self.card else "-" for amount in (measured.peak, measured.planned)]
        diffs = [f"{max(measured.diffs(kind), default=float('nan')):.2g}" for kind in ("mean", "max")]
        start = f"{measured.seconds - stepping:.0f}"
        return (measured.name, str(measured.run.returncode), str(len(rows)), start, *parts, *amounts, *diffs)

    def _determinism(self) -> list[str]:
        digests = [run.digest for run in self.runs if run.name in ("deterministic", "repeated")]
        if len(digests) < 2:
            return ["deterministic=true: not run twice"]
        return [f"deterministic=true: {'yes' if len(set(digests)) == 1 else 'NO'} ({', '.join(digests)})"]

    def _sleeping(self) -> list[str]:
        notes = []
        for run in self.runs if self.card else ():
            freed = [row["before"] - row["after"] for row in run.sleeps if row["what"] == "sleep"]
            if freed:
                notes.append(f"{run.name}: a sleeping server frees {min(freed) / GIB:.1f} GiB or more")
        return notes


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
