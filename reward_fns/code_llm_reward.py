"""The Code LLM's reward R_C.

Axes: S suites judged against one candidate, n its index.
"""

from collections.abc import Sequence
from dataclasses import replace

from .breakdown import Breakdown
from .interface import QuestionVerdicts
from .sandbox_seam import CandidateVerdict, CaseResult


def pass_rate(cases: Sequence[CaseResult]) -> float:
    """Share of ``cases`` that passed, in [0, 1]; 0 when there are none."""
    return sum(not case.outcome.failed for case in cases) / max(1, len(cases))


def pass_rate_rewards(question: QuestionVerdicts, *, skip_empty_suites: bool = False) -> list[Breakdown | None]:
    """R_C of each candidate by itself, see :func:`code_llm_reward`; the default ``rewards.code.name``, "pass_rate".

    ``skip_empty_suites``: a suite without a valid case says nothing about the program. The release, which is the
    default, counts it as failed where nothing is replayed, and so takes reward from correct programs.
    """
    verdicts = [candidate.code_verdict for candidate in question.candidates]
    if skip_empty_suites:
        verdicts = [
            one and replace(one, suites=tuple(suite for suite in one.suites if suite.cases)) for one in verdicts
        ]
    return [None if verdict is None else code_llm_reward(verdict) for verdict in verdicts]


def code_llm_reward(verdict: CandidateVerdict) -> Breakdown:
    """How well one candidate holds against the question's history and the new suites.

    ``R_C = (Pass_hist + mean_n Pass_new,n) / 2``, and ``R_C = mean_n Pass_new,n`` without history.
    ``Pass_new,n`` is the pass rate on the valid cases of suite n. A suite with no valid case counts 0
    when there is no history and leaves ``Pass_hist`` alone when there is.
    Source: Code-A1, arXiv 2603.15611; the rule for suites without a valid case is the public release's.

    In other words R_C is the mean over suites of ``(Pass_hist + Pass_new,n) / 2``, of ``Pass_hist``, of
    ``Pass_new,n`` or of 0, by what there is. Without any suite it is ``Pass_hist``, or 0.

    A candidate that could not be extracted or loaded has only NOT_LOADED outcomes, hence 0.

    Args:
        verdict: what the judge saw. ``verdict.history`` are the replayed cases.

    Returns:
        Parts ``history`` and ``new``; total in [0, 1]. Terms: ``loaded`` (0 or 1), ``pass_hist`` and
        ``pass_new`` (mean over the S suites) in [0, 1], counts ``num_history``, ``num_suites``,
        ``num_suites_without_case``.
    """
    pass_hist = pass_rate(verdict.history)
    rate_S = [pass_rate(suite.cases) for suite in verdict.suites]
    # Against the history's rate: 1/2 each where both exist, else all to one.
    weight = 0.5 if verdict.history else 1.0
    weight_S = [weight * bool(suite.cases) for suite in verdict.suites]
    num_suites = len(rate_S)
    if num_suites:
        history = pass_hist * sum(1.0 - weight for weight in weight_S) / num_suites
        new = sum(weight * rate for weight, rate in zip(weight_S, rate_S, strict=True)) / num_suites
    else:
        history, new = pass_hist, 0.0
    return Breakdown(
        parts={"history": history, "new": new},
        terms={
            "loaded": float(verdict.loaded),
            "pass_hist": pass_hist,
            "pass_new": sum(rate_S) / num_suites if num_suites else 0.0,
            "num_history": float(len(verdict.history)),
            "num_suites": float(num_suites),
            "num_suites_without_case": float(sum(not suite.cases for suite in verdict.suites)),
        },
    )
