"""`gpu_report.md`: what the runs took, beside what was planned, for whoever reads it far from the machine."""

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from code_a1_recipe.runs.folder import versions_text

from .card import GIB, Card
from .runs import Measured

_PARTS = ("step", "episodes", "update_code", "update_test", "update_weights")
_COLUMNS = ("run", "exit", "steps", "start and end s", *(f"{part} s" for part in _PARTS), "peak GiB", "planned GiB")
_ISSUE = "A test failed, or a figure looks odd? Open an issue, say what you ran, and send this file with your report."


@dataclass(kw_only=True)
class Report:
    """Grows with each run."""

    card: Card | None
    shape: str
    """Of both policies."""
    runs: dict[str, Measured] = field(default_factory=dict)

    def text(self, stats: Mapping[str, Sequence[Any]]) -> str:
        """Markdown; ``stats`` are pytest's reports by outcome."""
        where = "rehearsal on a CPU, no card"
        if self.card:
            where = f"{self.card.name}, {self.card.total / GIB:.1f} GiB, driver {self.card.driver}"
        passed = sum("tests/gpu/" in one.nodeid for one in stats.get("passed", ()))
        tests = [
            (one.nodeid.split("::")[-1], outcome, _first_line(one.longrepr))
            for outcome in ("failed", "error", "skipped")
            for one in stats.get(outcome, ())
            if "tests/gpu/" in one.nodeid
        ]
        return "\n".join(
            (
                f"# GPU report: {where}\n",
                f"Random weights, shape of {self.shape}; {versions_text()}; {platform.platform()}\n",
                _table(
                    (*_COLUMNS, "probs diff mean", "max", "correlation"), [self._row(run) for run in self.runs.values()]
                ),
                "Seconds of the last step; start and end are all that is no step.\n",
                *(f"- {note}" for note in self._notes()),
                f"- {passed} tests passed\n",
                _table(("test", "outcome", "why"), tests),
                _ISSUE,
            )
        )

    def _row(self, measured: Measured) -> tuple[str, ...]:
        rows = measured.rows
        last = rows[-1] if rows else {}
        outside = measured.seconds - sum(row["timing_s/step"] for row in rows)
        parts = [f"{last[key]:.1f}" if (key := f"timing_s/{part}") in last else "-" for part in _PARTS]
        amounts = [f"{amount / GIB:.1f}" if self.card else "-" for amount in (measured.peak, measured.planned)]
        diffs = [
            f"{max(measured.values(f'rollout_probs_diff_{kind}'), default=math.nan):.2g}" for kind in ("mean", "max")
        ]
        diffs.append(f"{min(measured.values('rollout_actor_probs_pearson_corr'), default=math.nan):.4f}")
        return (measured.name, str(measured.run.returncode), str(len(rows)), f"{outside:.0f}", *parts, *amounts, *diffs)

    def _notes(self) -> list[str]:
        digests = [self.runs[name].digest for name in ("deterministic", "repeated") if name in self.runs]
        equal = {2: "yes", 1: "NO"}[3 - len(set(digests))] if len(digests) == 2 else "not run twice"
        notes = [f"deterministic=true gives the same twice: {equal} ({', '.join(digests)})"]
        for run in self.runs.values() if self.card else ():
            if freed := [row["before"] - row["after"] for row in run.sleeps if row["what"] == "sleep"]:
                notes.append(f"{run.name}: a server that goes to sleep frees {min(freed) / GIB:.1f} GiB or more")
        return notes


def _first_line(longrepr: Any) -> str:
    """Why a test was skipped, or the error of one that failed."""
    if isinstance(longrepr, tuple):
        return str(longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(longrepr, "reprcrash", None)
    return crash.message.splitlines()[0][:200].replace("|", "/") if crash else ""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (columns, ["---"] * len(columns), *rows))
