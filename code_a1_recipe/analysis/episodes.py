"""Recorded episodes as text a person can read: the question, the program, the suites, what they found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..questions import Question
from .measures import fails, is_solved
from .records import Record

OUTCOMES: dict[str, str] = {
    "caught": "wrong, and a suite written for it broke it",
    "missed": "wrong, and every suite written for it let it pass",
    "solved": "right by the hidden tests",
    "refused": "no program could be read from the response, or it does not load",
    "outage": "the sandbox could not judge it",
    "unknown": "not judged on hidden tests (validation.hidden_in_training)",
}
"""What a program of a rollout came to."""


def outcome_of(record: Record) -> str:
    """A name of ``OUTCOMES``."""
    if record["outage"]:
        return "outage"
    if record["source"] is None or (record["verdict"] is not None and not record["verdict"]["loaded"]):
        return "refused"
    broke = any(fails(case) for suite in record["suites"] if suite["verdict"] for case in suite["verdict"]["cases"])
    if broke:
        return "caught"
    if record["hidden_tests"] is None:
        return "unknown"
    return "solved" if is_solved(record) else "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """One assert of a suite."""

    text: str
    remark: str
    """What it came to, in words; empty for a valid case that the program passed."""
    broke: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteView:
    cases: tuple[CaseView, ...]
    reward: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeView:
    """One program with its suites, ready to print."""

    step: int
    question_id: str
    prompt: str
    reference: str
    program: str
    outcome: str
    reward: float | None
    suites: tuple[SuiteView, ...]

    def text(self) -> str:
        """Plain text, without colours."""
        reward = "no reward" if self.reward is None else f"reward {self.reward:.3f}"
        lines = [
            f"step {self.step}  {self.question_id}  {self.outcome} ({OUTCOMES[self.outcome]}), {reward}",
            f"  question: {self.prompt}",
            *[f"    {line}" for line in self.program.splitlines()],
        ]
        for suite in self.suites:
            earned = "" if suite.reward is None else f", reward {suite.reward:.3f}"
            lines.append(f"  suite{earned}")
            lines += [f"    {'x' if case.broke else ' '} {case.text}  {case.remark}".rstrip() for case in suite.cases]
        return "\n".join(lines)


def view_of(record: Record, questions: Mapping[str, Question]) -> EpisodeView:
    """A record with its question's text, where the question is known."""
    question = questions.get(str(record["question"]))
    return EpisodeView(
        step=int(record["step"]),
        question_id=str(record["question"]),
        prompt=question.prompt if question else "(its file is not there any more)",
        reference=question.reference if question else "",
        program=record["source"] if record["source"] is not None else f"(refused: {record['refusal']})",
        outcome=outcome_of(record),
        reward=None if record["reward"] is None else float(record["reward"]["total"]),
        suites=tuple(_suite_view(suite) for suite in record["suites"]),
    )


def _suite_view(suite: Mapping[str, object]) -> SuiteView:
    verdict, reward = suite["verdict"], suite["reward"]
    total = float(reward["total"]) if isinstance(reward, Mapping) else None
    if not isinstance(verdict, Mapping):
        return SuiteView(cases=(), reward=total)
    cases = [*map(_case_view, verdict["cases"])]
    cases += [
        CaseView(text=entry["text"], remark=f"refused: {entry['reason']}", broke=False)
        for entry in verdict["rejections"]
    ]
    return SuiteView(cases=tuple(cases), reward=total)


def _case_view(case: Mapping[str, str]) -> CaseView:
    broke = fails(case)
    remarks = [] if case["claimed_right"] else [f"wrong claim {case['claimed']}"]
    if broke:
        remarks.insert(0, f"broke it: {case['outcome']}")
    return CaseView(text=f"assert {case['call']} == {case['answer']}", remark=", ".join(remarks), broke=broke)


def pick_episodes(records: Iterable[Record], *, outcome: str, limit: int) -> list[Record]:
    """A few records of an outcome, each of another question; those that few cases broke first: the finer catches."""
    chosen: dict[str, tuple[int, Record]] = {}
    for record in records:
        if outcome_of(record) == outcome:
            broken = sum(fails(case) for suite in record["suites"] for case in suite["verdict"]["cases"])
            best = chosen.get(str(record["question"]))
            if best is None or broken < best[0]:
                chosen[str(record["question"])] = (broken, record)
    return [record for _, record in sorted(chosen.values(), key=lambda item: item[0])[:limit]]


def matching(records: Iterable[Record], *, question: str = "", outcome: str = "") -> Iterator[Record]:
    """Records of a question (the start of its id suffices) and an outcome; empty: any."""
    for record in records:
        if str(record["question"]).startswith(question) and outcome in ("", outcome_of(record)):
            yield record
