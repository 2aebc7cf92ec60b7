"""An R_T that pays suites for failed calls: suites with the same call share its worth, and unusable suites get less.

Axes: C candidates of a question, S suites of a candidate, K cases of a suite. T is the first K valid cases of a suite,
and m(t) is the number of the candidate's suites whose T has the call t:

    w(t)   = m(t) ** -crowding
    Usable = |T| / K
    Valid  = clip(min(sum of w over T / K, 1 - invalid / K), 0, 1)
    Adv    = sum of w over the failed cases of T / K
    R_T    = Usable * (alpha * Valid + (1 - alpha) * Adv), 0 for a candidate that does not load

With ``crowding=1`` the Adv of all suites of a candidate sum to the number of distinct calls that it fails, divided by
K. Each suite then earns its Shapley value in a game with this number as its worth; MIST-RL, arXiv 2603.01409, is the
sequential form. The paper's ``fail_hist`` is left out, because it is the same for all suites of a candidate.
"""

import math
from collections import Counter
from collections.abc import Sequence

from .breakdown import Breakdown
from .interface import JudgedCandidate, QuestionVerdicts
from .sandbox_seam import CaseResult
from .test_llm_reward import validity


def adversary_rewards(
    question: QuestionVerdicts, *, crowding: float = 1.0, alpha: float = 0.0
) -> list[list[Breakdown | None]]:
    """R_T of each suite, [C][S], by the formula above; ``rewards.test.name=adversary``.

    Args:
        question: the judged question.
        crowding: exponent, at least 0. With 0 a repeated call is worth as much as a new one; with 1 the suites that
            have it share its worth.
        alpha: weight of validity, in [0, 1]. GRPO divides advantages by their deviation. So even a small weight decides
            the whole update where no suite of a group breaks the program.

    Returns:
        Parts ``validity`` and ``adversarial``, total in [0, 1]; terms ``valid``, ``adv`` and ``usable`` in [0, 1].
        None for the suites of a candidate without a verdict.

    Raises:
        ValueError: an argument is out of range.
    """
    if not (crowding >= 0.0 and math.isfinite(crowding)):
        raise ValueError(f"crowding (exponent of a repeated call's worth) must be at least 0, got {crowding!r}")
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
    # The Test LLM wrote no text for a suite of the dataset's tests, which gets no reward.
    suites = verdict.suites[: len(candidate.suite_texts)]
    num_suites_with = Counter(case_id for suite in suites for case_id in {case.id for case in suite.cases[:num_cases]})

    def worth(cases: Sequence[CaseResult]) -> float:
        shares = [num_suites_with[case.id] ** -crowding for case in cases]
        return math.fsum(shares) / num_cases

    rewards: list[Breakdown | None] = []
    for suite in suites:
        cases = suite.cases[:num_cases]
        usable = len(cases) / num_cases
        valid = min(worth(cases), validity(suite, num_cases=num_cases))
        adv = worth([case for case in cases if case.outcome.failed])
        # Any test breaks a program that does not load, so such a suite has shown nothing.
        gate = verdict.loaded * usable
        reward = Breakdown(
            parts={"validity": gate * alpha * valid, "adversarial": gate * (1.0 - alpha) * adv},
            terms={"valid": valid, "adv": adv, "usable": usable},
        )
        rewards.append(reward)
    return rewards
