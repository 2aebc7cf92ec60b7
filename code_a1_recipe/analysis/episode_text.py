"""Recorded episodes as text a person can read: the question, the program, the suites, what they found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sandbox import CaseResult

from ..algorithm.question import Question
from ..runs.rollout_record import SUITE, RolloutRecord, SuiteRecord

OUTCOMES: dict[str, str] = {
    "detected": "wrong, and a test that it met broke it: new, given, pooled or replayed",
    "undetected": "wrong, and no test that it met broke it",
    "untested": "wrong by the hidden tests, and it met no other",
    "solved": "right by the hidden tests",
    "unusable": "no program could be read from the response, or it does not load",
    "outage": "the sandbox could not judge it",
    "unknown": "not judged on hidden tests (validation.hidden_in_training)",
}
"""What a program of a rollout came to."""


def outcome_of(record: RolloutRecord) -> str:
    """A name of ``OUTCOMES``."""
    if record.outage:
        return "outage"
    if record.source is None or (record.verdict is not None and not record.verdict.loaded):
        return "unusable"
    if record.is_broken():
        return "detected"
    if record.kind != "buggy_program":  # which are programs that are known to be wrong
        if record.hidden_tests is None:
            return "unknown"
        if record.is_solved:
            return "solved"
    return "undetected" if any(cases for _, cases in record.met_cases()) else "untested"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """One assert of a suite."""

    text: str
    remark: str
    """What it came to, in words; empty for a valid case that the program passed."""
    broke: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteView:
    """Tests that came together."""

    name: str
    """Where they come from."""
    cases: tuple[CaseView, ...]
    reward: float | None
    """The Test LLM's, of a suite that it wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeView:
    """One program with its suites, ready to print."""

    step: int
    question_id: str
    kind: str
    prompt: str
    reference: str
    program: str
    outcome: str
    reward: float | None
    suites: tuple[SuiteView, ...]

    def text(self) -> str:
        """Plain text, without colours; what a terminal would not print but obey is escaped."""
        reward = "no reward" if self.reward is None else f"reward {self.reward:.3f}"
        lines = [
            f"step {self.step}  {self.question_id}  {self.kind}: {self.outcome} ({OUTCOMES[self.outcome]}), {reward}",
            f"  question: {self.prompt}",
            *[f"    {line}" for line in self.program.split("\n")],
        ]
        for suite in self.suites:
            earned = "" if suite.reward is None else f", reward {suite.reward:.3f}"
            lines.append(f"  {suite.name}{earned}")
            lines += [f"    {'x' if case.broke else ' '} {case.text}  {case.remark}".rstrip() for case in suite.cases]
        return "\n".join(_printable(line).replace("\n", "\n      ") for line in lines)


def _printable(text: str) -> str:
    """The text with every character escaped that moves the cursor, hides text or ends in an error when printed."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def view_of(record: RolloutRecord, questions: Mapping[str, Question]) -> EpisodeView:
    """A record with its question's text, where the question is known."""
    question = questions.get(record.question)
    others = [(name, cases) for name, cases in record.met_cases() if name != SUITE]
    return EpisodeView(
        step=record.step,
        question_id=record.question,
        kind=record.kind,
        prompt=question.prompt if question else "(its file is not there any more)",
        reference=question.reference if question else "",
        program=record.source if record.source is not None else f"(no program: {record.extraction_failure})",
        outcome=outcome_of(record),
        reward=None if record.reward is None else record.reward.total,
        suites=(
            *map(_suite_view, record.suites),
            *[SuiteView(name=name, cases=tuple(map(_case_view, cases)), reward=None) for name, cases in others],
        ),
    )


def _suite_view(suite: SuiteRecord) -> SuiteView:
    reward = None if suite.reward is None else suite.reward.total
    if suite.verdict is None:
        return SuiteView(name=SUITE, cases=(), reward=reward)
    refused = [
        CaseView(text=entry.text, remark=f"refused: {entry.reason}", broke=False) for entry in suite.verdict.rejections
    ]
    return SuiteView(name=SUITE, cases=(*map(_case_view, suite.verdict.cases), *refused), reward=reward)


def _case_view(case: CaseResult) -> CaseView:
    remarks = [f"broke it: {case.outcome}"] if case.outcome.failed else []
    remarks += [] if case.expected_correct else [f"wrong claim {case.expected}"]
    return CaseView(
        text=f"assert {case.call} == {case.reference_value}", remark=", ".join(remarks), broke=case.outcome.failed
    )


def pick_episodes(records: Iterable[RolloutRecord], *, outcome: str, limit: int) -> list[RolloutRecord]:
    """A few records of an outcome, each of another question; first those that few cases of a suite broke.

    They are the finer catches; those that replays alone broke come last.
    """
    chosen: dict[str, tuple[tuple[bool, int], RolloutRecord]] = {}
    for record in records:
        if outcome_of(record) == outcome:
            by_suites = sum(suite.verdict.num_failed for suite in record.suites if suite.verdict is not None)
            broken = (by_suites == 0, by_suites)
            best = chosen.get(record.question)
            if best is None or broken < best[0]:
                chosen[record.question] = (broken, record)
    return [record for _, record in sorted(chosen.values(), key=lambda item: item[0])[:limit]]


def matching(records: Iterable[RolloutRecord], *, question: str = "", outcome: str = "") -> list[RolloutRecord]:
    """Records of a question (the start of its id suffices) and an outcome; empty: any."""
    return [
        record for record in records if record.question.startswith(question) and outcome in ("", outcome_of(record))
    ]
