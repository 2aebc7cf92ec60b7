# ruff: noqa: PT028 - `test_llm_reward` is named after the Test LLM, and is no test
"""The Test LLM's reward R_T.

K is ``num_cases``, the number of cases that a suite should have.
"""

from collections.abc import Callable
from functools import partial

from sandbox import CandidateVerdict, SuiteVerdict

from .breakdown import Breakdown
from .code_llm_reward import pass_rate
from .interface import QuestionVerdicts, lookup

_LAYOUT_CHARACTERS = frozenset("\n\r\t")


def adversarial_as_released(*, fail_new: float | None, fail_hist: float | None) -> float:
    """Adversarial difficulty by the public release's formula, in [0, 1].

    The result is ``(fail_new - fail_hist + 1) / 2`` if both numbers are known, ``fail_new`` without history, and 0
    without a valid case.

    Args:
        fail_new: number of failures among the first K valid cases, divided by K; None without a valid case.
        fail_hist: share of the replays that failed; None without history.

    Example:
        >>> adversarial_as_released(fail_new=0.0, fail_hist=0.5)
        0.25
    """
    if fail_new is None:
        return 0.0
    if fail_hist is None:
        return fail_new
    return (fail_new - fail_hist + 1.0) / 2.0


def adversarial_as_in_figure(*, fail_new: float | None, fail_hist: float | None) -> float:
    """Adversarial difficulty as in the paper's pipeline figure: a suite without a new failure earns 0.

    A suite that broke the candidate earns the same as by :func:`adversarial_as_released`.

    Example:
        >>> adversarial_as_in_figure(fail_new=0.0, fail_hist=0.5)
        0.0
    """
    if not fail_new:
        return 0.0
    return adversarial_as_released(fail_new=fail_new, fail_hist=fail_hist)


ADVERSARIAL_READINGS: dict[str, Callable[..., float]] = {
    "release": adversarial_as_released,
    "figure": adversarial_as_in_figure,
}
"""The two readings of the paper's adversarial term. The published runs used "release", which is the default."""


def valid_and_adversarial_rewards(
    question: QuestionVerdicts, *, alpha: float = 0.5, adversarial: str = "release", nonprintable_penalty: bool = False
) -> list[list[Breakdown | None]]:
    """R_T of each suite, [C][S], by :func:`test_llm_reward`; the default function of ``rewards.test.name``."""
    reward_suite = partial(
        test_llm_reward,
        num_cases=question.num_cases,
        alpha=alpha,
        adversarial=adversarial,
        nonprintable_penalty=nonprintable_penalty,
    )
    rewards: list[list[Breakdown | None]] = []
    for candidate in question.candidates:
        verdict, texts = candidate.verdict, candidate.suite_texts
        if verdict is None:
            rewards.append([None] * len(texts))
            continue
        rewards.append([reward_suite(verdict, s, response_text=text) for s, text in enumerate(texts)])
    return rewards


def test_llm_reward(
    verdict: CandidateVerdict,
    suite_index: int,
    *,
    num_cases: int,
    alpha: float = 0.5,
    adversarial: str = "release",
    response_text: str = "",
    nonprintable_penalty: bool = False,
) -> Breakdown:
    """The paper's R_T: the validity of one suite, and its difficulty for the candidate that it tests.

    ``R_T = alpha * Valid + (1 - alpha) * Adv``, and 0 for a candidate that does not load.

    - ``Valid = clip(min(|V| / K, 1 - invalid / K), 0, 1)``. V is the set of valid cases. ``invalid`` counts rejected
      asserts and valid cases with an incorrect assertion. An assert is rejected if it does not parse, is no test, or
      repeats another assert, or if the reference raises, hangs or varies on it.
    - Adv combines ``fail_new`` and ``fail_hist`` by the reading ``adversarial``. ``fail_new`` is the number of failures
      among the first K valid cases, divided by K; cases that show the same mistake (``CaseResult.id``) count once.
      ``fail_hist`` is the share of failed replays.

    Source: Code-A1, arXiv 2603.15611. Three rules come from the public release, not from the paper: ``invalid``, the
    first K cases, and the 0 for a candidate that does not load.

    A response without asserts needs an empty ``SuiteVerdict``, for which Valid and Adv are 0.

    Args:
        verdict: the judged candidate that the suite tests.
        suite_index: index of the suite in ``verdict.suites``.
        num_cases: K, at least 1.
        alpha: weight of validity in [0, 1]; 0.5 in the published runs.
        adversarial: a name in ``ADVERSARIAL_READINGS``.
        response_text: the raw response, only used for ``nonprintable``.
        nonprintable_penalty: subtract the share of non-printable characters in the response, as the release does. The
            penalty is off by default, because it is not in the paper's formula and can make R_T negative. Also,
            Python's parser already refuses such characters outside strings and comments.

    Returns:
        A breakdown with the parts ``validity``, ``adversarial`` and, with the penalty, ``nonprintable``. The total is
        in [0, 1], or in [-1, 1] with the penalty. Terms: ``valid``, ``adv``, ``fail_new``, ``fail_hist`` (0 if
        unknown) and ``nonprintable`` in [0, 1], ``loaded`` (0 or 1), and counts.

    Raises:
        ValueError: ``num_cases``, ``alpha`` or ``suite_index`` is out of range, or ``adversarial`` is unknown.
    """
    if not isinstance(num_cases, int) or num_cases < 1:
        raise ValueError(f"num_cases (K, the number of cases in a suite) must be at least 1, got {num_cases!r}")
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha (weight of validity) must be in [0, 1], got {alpha!r}")
    if not 0 <= suite_index < len(verdict.suites):
        raise ValueError(
            f"suite_index must be an index of the verdict's {len(verdict.suites)} suites, counted from 0, "
            f"got {suite_index!r}; a response without asserts needs an empty SuiteVerdict"
        )
    reading = lookup(adversarial, ADVERSARIAL_READINGS, what="reading of the adversarial reward")
    suite = verdict.suites[suite_index]
    # All cases of a family show the same mistake, so a suite cannot earn more by repeating a mistake.
    num_failed = len({case.id for case in suite.cases[:num_cases] if case.outcome.failed})
    fail_new = num_failed / num_cases if suite.cases else None  # divided by K, so missing cases earn nothing
    fail_hist = 1.0 - pass_rate(verdict.history) if verdict.history else None
    valid = validity(suite, num_cases=num_cases)
    adv = reading(fail_new=fail_new, fail_hist=fail_hist)
    num_nonprintable = sum(not (letter.isprintable() or letter in _LAYOUT_CHARACTERS) for letter in response_text)
    nonprintable = num_nonprintable / max(1, len(response_text))
    # A program that does not load fails every test, so its failures say nothing about a suite.
    gate = float(verdict.loaded)
    parts = {"validity": gate * alpha * valid, "adversarial": gate * (1.0 - alpha) * adv}
    if nonprintable_penalty:
        parts["nonprintable"] = -gate * nonprintable
    return Breakdown(
        parts=parts,
        terms={
            "loaded": gate,
            "valid": valid,
            "adv": adv,
            "fail_new": fail_new or 0.0,
            "fail_hist": fail_hist or 0.0,
            "nonprintable": nonprintable,
            "num_valid": float(len(suite.cases)),
            "num_rejected": float(suite.num_rejected),
            "num_expected_incorrect": float(suite.num_expected_incorrect),
            "num_failed": float(suite.num_failed),
            "num_history": float(len(verdict.history)),
        },
    )


def validity(suite: SuiteVerdict, *, num_cases: int) -> float:
    """``Valid = clip(min(|V| / K, 1 - invalid / K), 0, 1)``, see :func:`test_llm_reward`.

    A case with an incorrect assertion is in V, because its call is used with the oracle's answer. This case also counts
    as invalid, because the Test LLM expected a wrong answer.
    """
    num_invalid = suite.num_rejected + suite.num_expected_incorrect
    return min(1.0, max(0.0, min(len(suite.cases) / num_cases, 1.0 - num_invalid / num_cases)))
