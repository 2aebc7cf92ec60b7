"""What a run's rollouts say of one question, in sums: how hard is it, and how did it go?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean

from ..runs.rollout_record import RolloutRecord

HEAD = ("visits", "programs", "solved", "reward", "suites", "right", "broke", "suites' reward", "outages")
"""Names of ``QuestionTotals.cells``."""
LEGEND = (
    "visits: steps with the question; solved: share of the programs that pass all hidden tests; right: share of the\n"
    "suites whose claims are all right; broke: share of the suites that broke their program; outages: programs lost"
)


@dataclass(slots=True, kw_only=True)
class QuestionTotals:
    """Sums over programs and their suites. Programs lost to an outage count as outages and nowhere else."""

    steps: set[int] = field(default_factory=set)
    num_programs: int = 0
    solved: list[float] = field(default_factory=list)
    """1.0 or 0.0 for each program that was judged on the hidden tests."""
    rewards: list[float] = field(default_factory=list)
    suite_rewards: list[float] = field(default_factory=list)
    num_suites: int = 0
    """With a verdict."""
    num_right: int = 0
    num_broke: int = 0
    num_outages: int = 0

    def add(self, record: RolloutRecord) -> None:
        """Count one program with its suites."""
        self.steps.add(record.step)
        if record.outage:
            self.num_outages += 1
            return
        self.num_programs += 1
        if record.kind != "buggy_program" and record.hidden_tests is not None:  # buggy programs are known to be wrong
            self.solved.append(record.is_solved)
        if record.reward is not None and record.kind == "sampled":
            self.rewards.append(record.reward.total)
        for suite in record.suites:
            if suite.reward is not None:
                self.suite_rewards.append(suite.reward.total)
            if (verdict := suite.verdict) is not None:
                self.num_suites += 1
                self.num_right += 0 < verdict.num_valid == verdict.num_expected_correct and not verdict.rejections
                self.num_broke += verdict.num_failed > 0

    @property
    def hardness(self) -> tuple[float, float]:
        """Sorts the hardest question first: the share solved, then the mean reward; what is unknown comes last."""
        return fmean(self.solved) if self.solved else 2.0, fmean(self.rewards) if self.rewards else 2.0

    def cells(self) -> list[str]:
        """Texts of a row under ``HEAD``; a dash where nothing was counted."""
        return [
            str(len(self.steps)),
            str(self.num_programs),
            _mean(self.solved),
            _mean(self.rewards),
            str(self.num_suites),
            _rate(self.num_right, self.num_suites),
            _rate(self.num_broke, self.num_suites),
            _mean(self.suite_rewards),
            str(self.num_outages),
        ]


def totals_by_question(records: Iterable[RolloutRecord]) -> dict[str, QuestionTotals]:
    """Sums of every question, the hardest first; ties by id."""
    found: dict[str, QuestionTotals] = {}
    for record in records:
        found.setdefault(record.question, QuestionTotals()).add(record)
    return dict(sorted(found.items(), key=lambda item: (item[1].hardness, item[0])))


def totals_by_step(records: Iterable[RolloutRecord]) -> dict[int, QuestionTotals]:
    """Sums of one question's records for each step, in order."""
    found: dict[int, QuestionTotals] = {}
    for record in records:
        found.setdefault(record.step, QuestionTotals()).add(record)
    return dict(sorted(found.items()))


def _mean(values: list[float]) -> str:
    return f"{fmean(values):.2f}" if values else "-"


def _rate(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "-"
