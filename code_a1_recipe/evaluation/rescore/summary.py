"""What a scoring run found, in a few lines: counts, mean rewards, validity, extraction failures, outages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .rows import is_outage

Row = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Summary:
    """Sums over output rows. Rows of an outage count as outages and nowhere else."""

    num_rows: int = 0
    num_outages: int = 0
    num_masked: int = 0
    """Judged, yet without a reward: programs that the Test LLM could not be shown."""
    num_untested: int = 0
    """Programs none of whose tests is a valid case: reward 0, whatever they do."""
    means: dict[str, list[float]] = field(default_factory=dict)
    """Name -> [sum, count]; rates are in [0, 1]."""
    extraction_failures: Counter[str] = field(default_factory=Counter)
    """Responses without a program or a suite, by role and reason."""
    rejections: Counter[str] = field(default_factory=Counter)
    """Refused asserts of generated suites, by reason."""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Summary:
        """Add up output rows in any order."""
        summary = cls()
        for row in rows:
            summary.add(row)
        return summary

    def add(self, row: Row) -> None:
        """Count one output row."""
        self.num_rows += 1
        if is_outage(row):
            self.num_outages += 1
            return
        role = row.get("role")
        if role != "test":
            self._add_program(row)
        suites = row.get("suites", [row.get("suite")] if role != "code" else [])
        for suite in suites:
            # A flat row carries its one suite's reward and extraction failure itself.
            self._add_suite(row if role == "test" else suite, suite if role == "test" else suite["verdict"])

    def mean(self, name: str) -> float | None:
        """The mean of ``name``, None when nothing was counted."""
        total, count = self.means.get(name, (0.0, 0))
        return total / count if count else None

    def text(self) -> str:
        """Lines for the terminal."""
        lines = [f"{self.num_rows} items, {self.num_outages} of them outages (no reward; the same command tries again)"]
        if self.num_masked:
            lines.append(f"  {self.num_masked} programs without a reward: too long to be shown to the Test LLM")
        if self.num_untested:
            lines.append(f"  {self.num_untested} programs met no valid test, which gives 0: see their 'suite' for why")
        for role, names in (("code", _CODE_NAMES), ("test", _TEST_NAMES)):
            _, count = self.means.get(f"{role} reward", (0.0, 0))
            if count:
                known = ((name, self.mean(key)) for name, key in names)
                shown = ", ".join(f"{name} {mean:.4f}" for name, mean in known if mean is not None)
                lines.append(f"  {role}: {int(count)} responses, {shown}")
        for what, counter in (("extraction failures", self.extraction_failures), ("rejected asserts", self.rejections)):
            if counter:
                reasons = ", ".join(f"{reason} {count}" for reason, count in counter.most_common())
                lines.append(f"  {what}: {counter.total()} ({reasons})")
        return "\n".join(lines) + "\n"

    def _add_program(self, row: Row) -> None:
        if row["extraction_failure"]:
            self.extraction_failures[f"code {row['extraction_failure']}"] += 1
        if row["reward"] is None:
            self.num_masked += 1
            return
        if row.get("role") == "code":
            self.num_untested += bool(row["reward"]["terms"].get("num_suites_without_case"))
        self._count("code reward", row["reward"]["total"])
        self._count("code loaded", row["verdict"]["loaded"])
        self._count("code all passed", row["reward"]["total"] == 1.0)

    def _add_suite(self, rewarded: Row, verdict: Row) -> None:
        if rewarded["extraction_failure"]:
            self.extraction_failures[f"test {rewarded['extraction_failure']}"] += 1
        if rewarded["reward"] is None:
            return
        terms = rewarded["reward"]["terms"]
        self._count("test reward", rewarded["reward"]["total"])
        for name in ("valid", "adv"):  # terms of the paper's reward, which another function may lack
            if name in terms:
                self._count(f"test {name}", terms[name])
        if "loaded" in terms:  # a program that does not load is broken by anything, so it shows nothing about a suite
            self._count("test broke", bool(terms["loaded"] and terms["num_failed"]))
        self.rejections.update(rejection["reason"] for rejection in verdict["rejections"])

    def _count(self, name: str, value: float) -> None:
        entry = self.means.setdefault(name, [0.0, 0])
        entry[0] += float(value)
        entry[1] += 1


_CODE_NAMES = (("reward", "code reward"), ("loaded", "code loaded"), ("reward 1", "code all passed"))
_TEST_NAMES = (
    ("reward", "test reward"),
    ("valid", "test valid"),
    ("adv", "test adv"),
    ("broke the program", "test broke"),
)
