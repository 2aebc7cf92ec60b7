"""An R_T that pays suites for failed cases. If several suites have the same case, they share its worth. Suites with
fewer valid cases get less.

Axes: C candidates of a question, S suites of a candidate, K cases of a suite. V has the first K valid cases of a suite,
and T has their identifiers (``CaseResult.id``): cases that show the same mistake count once. m(t) is the number of the
candidate's suites whose T contains t:

    w(t)   = m(t) ** -crowding
    Usable = |V| / K
    Valid  = clip(min((sum of w over T) / K, 1 - invalid / K), 0, 1)
    Adv    = (sum of w over the identifiers of V's failed cases) / K
    R_T    = Usable * (alpha * Valid + (1 - alpha) * Adv), 0 for a candidate that does not load

With ``crowding=1``, the sum of Adv over a candidate's suites is the number of mistakes of the candidate that they show,
divided by K. The Adv of a suite is then the suite's Shapley value, which is its fair share of this number. MIST-RL
(arXiv 2603.01409) is the sequential form. The paper's ``fail_hist`` is left out, because it is the same for all suites
of a candidate.
"""

import math
from collections import Counter
from collections.abc import Sequence

from sandbox import CaseResult

from .breakdown import Breakdown
from .interface import JudgedCandidate, QuestionVerdicts
from .test_llm_reward import validity


def adversary_rewards(
    question: QuestionVerdicts, *, crowding: float = 1.0, alpha: float = 0.0
) -> list[list[Breakdown | None]]:
    """R_T of each suite, [C][S], by the formula above; ``rewards.test.name=adversary``.

    Args:
        question: the judged question.
        crowding: exponent, at least 0. With 0, a repeated call is worth as much as a new call; with 1, all suites with
            the call share its worth equally.
        alpha: weight of validity, in [0, 1]. GRPO divides advantages by the standard deviation of the rewards in the
            group. So even a small weight decides the whole update of a group in which no suite breaks the program.

    Returns:
        Breakdowns with the parts ``validity`` and ``adversarial``, a total in [0, 1], and the terms ``valid``, ``adv``
        and ``usable`` in [0, 1]. The suites of a candidate without a verdict get None.

    Raises:
        ValueError: an argument is out of range.
    """
    if not (crowding >= 0.0 and math.isfinite(crowding)):
        raise ValueError(f"crowding (exponent of a repeated call's worth) must be finite and >= 0, got {crowding!r}")
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha (weight of validity) must be in [0, 1], got {alpha!r}")
    return [_suite_rewards(candidate, question.num_cases, crowding, alpha) for candidate in question.candidates]


def _suite_rewards(
    candidate: JudgedCandidate,
    num_cases: int,
    crowding: float,
    alpha: float,
) -> list[Breakdown | None]:
    verdict = candidate.verdict
    if verdict is None:
        return [None] * len(candidate.suite_texts)
    # A suite of the dataset's tests was not written by the Test LLM, so it gets no reward.
    suites = verdict.suites[: len(candidate.suite_texts)]
    num_suites_with = Counter[str]()
    for suite in suites:
        num_suites_with.update({case.id for case in suite.cases[:num_cases]})

    def worth(cases: Sequence[CaseResult]) -> float:
        shares = [num_suites_with[name] ** -crowding for name in {case.id for case in cases}]
        return math.fsum(shares) / num_cases

    rewards: list[Breakdown | None] = []
    for suite in suites:
        cases = suite.cases[:num_cases]
        usable = len(cases) / num_cases
        valid = min(worth(cases), validity(suite, num_cases=num_cases))
        adv = worth([case for case in cases if case.outcome.failed])
        # Every test breaks a program that does not load, so a suite against it earns nothing.
        gate = verdict.loaded * usable
        reward = Breakdown(
            parts={"validity": gate * alpha * valid, "adversarial": gate * (1.0 - alpha) * adv},
            terms={"valid": valid, "adv": adv, "usable": usable},
        )
        rewards.append(reward)
    return rewards
