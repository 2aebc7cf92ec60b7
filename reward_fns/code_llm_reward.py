"""The Code LLM's reward R_C.

Axes: S suites are judged against one candidate, and n is the index of a suite.
"""

from collections.abc import Sequence
from dataclasses import replace

from sandbox import CandidateVerdict, CaseResult

from .breakdown import Breakdown
from .interface import QuestionVerdicts


def pass_rate(cases: Sequence[CaseResult]) -> float:
    """Share of ``cases`` that passed, in [0, 1]; 0 without cases."""
    num_passed = sum(not case.outcome.failed for case in cases)
    return num_passed / max(1, len(cases))


def pass_rate_rewards(question: QuestionVerdicts, *, skip_empty_suites: bool = False) -> list[Breakdown | None]:
    """R_C of each candidate, by :func:`code_llm_reward`; the default function, ``rewards.code.name=pass_rate``.

    Args:
        question: the judged question.
        skip_empty_suites: leave out suites without a valid case, which say nothing about the program. By default these
            suites count as in the paper's code. Without history, this code counts them as failed, which lowers the
            reward of correct programs.
    """
    rewards: list[Breakdown | None] = []
    for candidate in question.candidates:
        verdict = candidate.code_verdict
        if verdict is None:
            rewards.append(None)
            continue
        if skip_empty_suites:
            verdict = replace(verdict, suites=tuple(suite for suite in verdict.suites if suite.cases))
        rewards.append(code_llm_reward(verdict))
    return rewards


def code_llm_reward(verdict: CandidateVerdict) -> Breakdown:
    """The paper's R_C: the candidate's pass rates on the replayed cases and on the new suites.

    ``R_C = (Pass_hist + mean_n Pass_new,n) / 2``, and ``R_C = mean_n Pass_new,n`` without history.
    ``Pass_hist`` is the pass rate on the replayed cases, and ``Pass_new,n`` is the pass rate on the valid cases of
    suite n. Source: Code-A1, arXiv 2603.15611.

    So R_C is a mean over suites. A suite with valid cases adds ``(Pass_hist + Pass_new,n) / 2``, or ``Pass_new,n``
    without history. As in the public release, a suite without a valid case adds ``Pass_hist``, or 0 without history.
    Without any suite, R_C is ``Pass_hist``, or 0 without history.

    If no program was extracted, or the program does not load, all outcomes are NOT_LOADED, so the reward is 0.

    Args:
        verdict: the judged candidate; ``verdict.history`` has the replayed cases.

    Returns:
        A breakdown with the parts ``history`` and ``new``, and a total in [0, 1]. Terms: ``loaded`` (0 or 1),
        ``pass_hist`` and ``pass_new`` (the mean over the S suites) in [0, 1], and the counts ``num_history``,
        ``num_suites`` and ``num_suites_without_case``.
    """
    pass_hist = pass_rate(verdict.history)
    rate_S = [pass_rate(suite.cases) for suite in verdict.suites]
    # In a suite's share of R_C, this is the weight of Pass_new,n; Pass_hist has the remaining weight.
    new_weight = 0.5 if verdict.history else 1.0
    weight_S = [new_weight if suite.cases else 0.0 for suite in verdict.suites]
    num_suites = len(rate_S)
    num_without_case = sum(not suite.cases for suite in verdict.suites)
    if num_suites:
        history = pass_hist * sum(1.0 - weight for weight in weight_S) / num_suites
        new = sum(weight * rate for weight, rate in zip(weight_S, rate_S, strict=True)) / num_suites
    else:  # there are no suites after an extraction failure, or without a Test LLM
        history, new = pass_hist, 0.0
    return Breakdown(
        parts={"history": history, "new": new},
        terms={
            "loaded": float(verdict.loaded),
            "pass_hist": pass_hist,
            "pass_new": sum(rate_S) / max(1, num_suites),
            "num_history": float(len(verdict.history)),
            "num_suites": float(num_suites),
            "num_suites_without_case": float(num_without_case),
        },
    )
