"""What a scoring run found, in a few lines: counts, mean rewards, validity, extraction failures, outages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

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
    values: dict[str, dict[str, list[float]]] = field(default_factory=lambda: {"code": {}, "test": {}})
    """Role -> name, as the text has it -> values; rates are in [0, 1]."""
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
        if row.get("outage"):
            self.num_outages += 1
            return
        role = row.get("role")
        if role != "test":
            self._add_program(row)
        suites = row.get("suites", [row.get("suite")] if role != "code" else [])
        for suite in suites:
            # A flat row carries its one suite's reward and extraction failure itself.
            self._add_suite(row if role == "test" else suite, suite if role == "test" else suite["verdict"])

    def text(self) -> str:
        """Lines for the terminal."""
        lines = [f"{self.num_rows} items, {self.num_outages} of them outages (no reward; the same command tries again)"]
        if self.num_masked:
            lines.append(f"  {self.num_masked} programs without a reward: too long to be shown to the Test LLM")
        if self.num_untested:
            lines.append(f"  {self.num_untested} programs met no valid test, which gives 0: see their 'suite' for why")
        for role, named in self.values.items():
            if named:
                shown = ", ".join(f"{name} {sum(values) / len(values):.4f}" for name, values in named.items())
                lines.append(f"  {role}: {len(named['reward'])} responses, {shown}")
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
        self._count("code", "reward", row["reward"]["total"])
        self._count("code", "loaded", row["verdict"]["loaded"])
        self._count("code", "reward 1", row["reward"]["total"] == 1.0)

    def _add_suite(self, rewarded: Row, verdict: Row) -> None:
        if rewarded["extraction_failure"]:
            self.extraction_failures[f"test {rewarded['extraction_failure']}"] += 1
        if rewarded["reward"] is None:
            return
        terms = rewarded["reward"]["terms"]
        self._count("test", "reward", rewarded["reward"]["total"])
        for name in ("valid", "adv"):  # terms of the paper's reward, which another function may lack
            if name in terms:
                self._count("test", name, terms[name])
        if "loaded" in terms:  # a program that does not load is broken by anything, so it shows nothing about a suite
            self._count("test", "broke the program", bool(terms["loaded"] and terms["num_failed"]))
        self.rejections.update(rejection["reason"] for rejection in verdict["rejections"])

    def _count(self, role: str, name: str, value: float) -> None:
        self.values[role].setdefault(name, []).append(float(value))
