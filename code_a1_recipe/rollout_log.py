"""The rollout log: one JSON line for each candidate, with its suites, verdicts and reward parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reward_fns import Breakdown
from sandbox import CandidateVerdict, CaseResult, SuiteVerdict

from .episode_data import CandidateResult, Episode


def episode_records(episode: Episode, *, selected: Sequence[int]) -> Iterator[dict[str, Any]]:
    """One record per program; ``selected`` marks candidates whose suites train the Test LLM.

    ``kind`` is "sampled", or in validation also "greedy" (the program at temperature 0) and "probe" (a wrong
    program of the question, with the suites written for it).
    """
    for c, candidate in enumerate(episode.candidates):
        yield _record(episode, "sampled", c, candidate, selected=c in selected)
    if episode.greedy is not None:
        yield _record(episode, "greedy", 0, episode.greedy, selected=False)
    for p, probe in enumerate(episode.probes):
        yield _record(episode, "probe", p, probe, selected=False)


def _record(episode: Episode, kind: str, number: int, candidate: CandidateResult, *, selected: bool) -> dict[str, Any]:
    return {
        "step": episode.task.step,
        "question": episode.task.question.id,
        "data_source": episode.task.question.data_source,
        "kind": kind,
        "candidate": number,
        "response": candidate.response.text,
        "response_tokens": len(candidate.response.token_ids),
        "prompt_tokens": len(candidate.response.prompt_ids),
        "source": candidate.source,
        "refusal": candidate.refusal,
        "outage": candidate.outage,
        "verdict": verdict_record(candidate.verdict),
        "reward": reward_record(candidate.reward),
        "given_tests": suite_record(_given(candidate)),
        "pooled_tests": suite_record(candidate.pooled),
        "hidden_tests": suite_record(candidate.hidden.suites[0] if candidate.hidden else None),
        "selected": selected,
        "span": candidate.span,
        "judge_span": candidate.judge_span,
        "hidden_span": candidate.hidden_span,
        "pooled_span": candidate.pooled_span,
        "shared_with": candidate.shared_with,
        "suites": list(_suites(candidate)),
    }


def _given(candidate: CandidateResult) -> SuiteVerdict | None:
    """The dataset's own tests that the reward was made of: a suite of the verdict that nobody wrote."""
    if candidate.verdict is None or candidate.shared_with is not None:
        return None
    if len(candidate.verdict.suites) == len(candidate.suites):
        return None
    return candidate.verdict.suites[0]


def _suites(candidate: CandidateResult) -> Iterator[dict[str, Any]]:
    for s, suite in enumerate(candidate.suites):
        yield {
            "response": suite.response.text,
            "response_tokens": len(suite.response.token_ids),
            "refusal": suite.refusal,
            "reward": reward_record(suite.reward),
            "verdict": suite_record(candidate.verdict.suites[s]) if candidate.verdict else None,
            "span": suite.span,
            "cached_tokens": suite.response.cached_tokens,
            "prompt_tokens": len(suite.response.prompt_ids),
        }


def verdict_record(verdict: CandidateVerdict | None) -> dict[str, Any] | None:
    """A verdict without its suites; None stands for an outage."""
    if verdict is None:
        return None
    return {
        "loaded": verdict.loaded,
        "load_error": verdict.load_error,
        "history": [_case(case) for case in verdict.history],
        "cpu_seconds": verdict.cpu_seconds,
    }


def suite_record(verdict: SuiteVerdict | None) -> dict[str, Any] | None:
    """A suite's cases and rejections; None where there is none."""
    if verdict is None:
        return None
    return {
        "cases": [_case(case) for case in verdict.cases],
        "rejections": [{"text": entry.text, "reason": entry.reason.value} for entry in verdict.rejections],
    }


def _case(case: CaseResult) -> dict[str, Any]:
    return {
        "call": case.call,
        "answer": case.answer,
        "claimed": case.claimed,
        "claimed_right": case.claimed_right,
        "outcome": case.outcome.value,
        "key": case.key,
    }


def reward_record(reward: Breakdown | None) -> dict[str, Any] | None:
    """A reward with its parts and terms; None where there is none."""
    if reward is None:
        return None
    return {"total": reward.total, "parts": dict(reward.parts), "terms": dict(reward.terms)}
