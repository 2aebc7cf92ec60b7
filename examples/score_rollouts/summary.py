"""What a scoring run found, in a few lines: counts, mean rewards, validity, extraction failures, outages."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from code_a1_recipe.stats.tables import counts_text

Row = Mapping[str, Any]
_TOO_LONG = "without a reward: too long to be shown to the Test LLM"


class Summary:
    """Sums over output rows in any order. Rows of an outage count as outages and nowhere else."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.num_rows = self.num_outages = 0
        self._notes: Counter[str] = Counter()
        self.values: dict[str, defaultdict[str, list[float]]] = {"code": defaultdict(list), "test": defaultdict(list)}
        """Role -> name, as the text has it -> values; rates are in [0, 1]."""
        self._reasons = {"extraction failures": Counter[str](), "rejected asserts": Counter[str]()}
        for row in rows:
            self.num_rows += 1
            self.num_outages += bool(row.get("outage"))
            if not row.get("outage"):
                self._add(row)

    def text(self) -> str:
        """Lines for the terminal."""
        lines = [f"{self.num_rows} items, {self.num_outages} of them outages (no reward; the same command tries again)"]
        lines += [f"  {number} programs {note}" for note, number in self._notes.items()]
        for role, named in self.values.items():
            if named:
                shown = ", ".join(f"{name} {fmean(values):.4f}" for name, values in named.items())
                lines.append(f"  {role}: {len(named['reward'])} responses, {shown}")
        for what, counter in self._reasons.items():
            if counter:
                lines.append(f"  {what}: {counter.total()} ({counts_text(counter)})")
        return "\n".join(lines) + "\n"

    def _add(self, row: Row) -> None:
        role = row.get("role")
        if role != "test" and self._is_rewarded(row, "code", masked=_TOO_LONG):
            if role == "code" and row["reward"]["terms"].get("num_suites_without_case"):
                self._notes["met no valid test, which gives 0: see their 'suite' for why"] += 1
            self.values["code"]["loaded"].append(row["verdict"]["loaded"])
            self.values["code"]["reward 1"].append(row["reward"]["total"] == 1.0)
        # A flat row carries its one suite's reward and extraction failure itself.
        suites = [(row, row["suite"])] if role == "test" else [(one, one["verdict"]) for one in row.get("suites", ())]
        for rewarded, verdict in suites:
            if self._is_rewarded(rewarded, "test"):
                self._add_suite(rewarded["reward"]["terms"], verdict)

    def _is_rewarded(self, rewarded: Row, role: str, *, masked: str = "") -> bool:
        if rewarded["extraction_failure"]:
            self._reasons["extraction failures"][f"{role} {rewarded['extraction_failure']}"] += 1
        if rewarded["reward"] is not None:
            self.values[role]["reward"].append(rewarded["reward"]["total"])
        elif masked:
            self._notes[masked] += 1
        return rewarded["reward"] is not None

    def _add_suite(self, terms: Row, verdict: Row) -> None:
        for name in ("valid", "adv"):  # terms of the paper's reward, which another function may lack
            if name in terms:
                self.values["test"][name].append(terms[name])
        if "loaded" in terms:  # a program that does not load is broken by anything, so it shows nothing about a suite
            self.values["test"]["broke the program"].append(bool(terms["loaded"] and terms["num_failed"]))
        self._reasons["rejected asserts"].update(rejection["reason"] for rejection in verdict["rejections"])
