# ruff: noqa: PT028 - the function is named for the Test LLM, it is no test
"""The Test LLM's reward R_T.

K is ``num_cases``: the number of cases a suite is asked for.
"""

from collections.abc import Callable
from functools import partial

from .breakdown import Breakdown
from .code_llm_reward import pass_rate
from .interface import QuestionVerdicts
from .lookup import lookup
from .sandbox_seam import CandidateVerdict, SuiteVerdict

_LAYOUT_CHARACTERS = frozenset("\n\r\t")


def adversarial_as_released(*, fail_new: float | None, fail_hist: float | None) -> float:
    """Adversarial difficulty by the public release's formula, in [0, 1].

    ``(fail_new - fail_hist + 1) / 2`` with both; ``fail_new`` without history; 0 without a valid case.

    Args:
        fail_new: failures among the first K valid cases / K; None when the suite has no valid case.
        fail_hist: failed replays / replays; None without history.

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
    """Adversarial difficulty as the paper's pipeline figure prints it: no new failure earns nothing.

    The same as :func:`adversarial_as_released` for a suite that broke the candidate.

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
"""The two readings of the paper. "release" is the default: it is what the published runs trained with."""


def valid_and_adversarial_rewards(
    question: QuestionVerdicts, *, alpha: float = 0.5, adversarial: str = "release", nonprintable_penalty: bool = False
) -> list[list[Breakdown | None]]:
    """R_T of each suite by itself, see :func:`test_llm_reward`; the default ``rewards.test.name``."""
    reward_suite = partial(
        test_llm_reward,
        num_cases=question.num_cases,
        alpha=alpha,
        adversarial=adversarial,
        nonprintable_penalty=nonprintable_penalty,
    )
    rewards: list[list[Breakdown | None]] = []
    for candidate in question.candidates:
        verdict, texts = candidate.verdict, enumerate(candidate.suite_texts)
        rewards.append([None if verdict is None else reward_suite(verdict, s, response_text=text) for s, text in texts])
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
    """The paper's R_T: how valid one suite is, and how hard for the candidate that it was written against.

    ``R_T = alpha * Valid + (1 - alpha) * Adv``, and 0 for a candidate that does not load.

    - ``Valid = clip(min(|V| / K, 1 - invalid / K), 0, 1)``. V is the valid distinct cases. ``invalid`` counts rejected
      asserts (unparsable, no test, a duplicate, or the reference raises, hangs or varies on it) and valid cases with an
      incorrect assertion.
    - Adv joins ``fail_new`` and ``fail_hist`` by the reading ``adversarial``. ``fail_new`` is the number of failures
      among the first K valid cases, divided by K; cases that show one mistake (``CaseResult.family``) count once.
      ``fail_hist`` is the share of failed replays.

    Source: Code-A1, arXiv 2603.15611. The public release adds ``invalid``, the first K, and the 0 for a candidate that
    does not load.

    A refused response has no suite. Put an empty ``SuiteVerdict`` in its place, for which Valid and Adv are 0.

    Args:
        verdict: the judged candidate that the suite was written against.
        suite_index: place of the suite in ``verdict.suites``.
        num_cases: K, at least 1.
        alpha: weight of validity in [0, 1]; 0.5 in the published runs.
        adversarial: a name in ``ADVERSARIAL_READINGS``.
        response_text: the raw response, for ``nonprintable`` alone.
        nonprintable_penalty: subtract the share of non-printable characters in the response, as the release does. It is
            off by default: the paper's formula does not have it, it takes R_T below 0, and the extractor and the case
            parser already refuse garbage.

    Returns:
        Parts ``validity``, ``adversarial`` and, with the penalty, ``nonprintable``. Total in [0, 1], or in [-1, 1] with
        the penalty. Terms: ``valid``, ``adv``, ``fail_new``, ``fail_hist`` (0 where absent) and ``nonprintable`` in
        [0, 1], ``loaded`` (0 or 1), and counts.

    Raises:
        ValueError: ``num_cases``, ``alpha``, ``suite_index`` or ``adversarial`` is out of range or unknown.
    """
    if not isinstance(num_cases, int) or num_cases < 1:
        raise ValueError(f"num_cases (K, the cases a suite is asked for) must be at least 1, got {num_cases!r}")
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must be in [0, 1] (weight of validity against adversarial difficulty), got {alpha!r}")
    if not 0 <= suite_index < len(verdict.suites):
        raise ValueError(
            f"suite_index must name one of the verdict's {len(verdict.suites)} suites, counted from 0, "
            f"got {suite_index!r}; a refused response needs an empty SuiteVerdict in its place"
        )
    reading = lookup(adversarial, ADVERSARIAL_READINGS, what="reading of the adversarial reward")
    suite = verdict.suites[suite_index]
    # By family, since otherwise a suite could repeat one mistake in several spellings and be paid for each.
    num_failed = len({case.family or case.call for case in suite.cases[:num_cases] if case.outcome.failed})
    fail_new = num_failed / num_cases if suite.cases else None  # by K, so that missing cases earn nothing
    fail_hist = 1.0 - pass_rate(verdict.history) if verdict.history else None
    valid = validity(suite, num_cases=num_cases)
    adv = reading(fail_new=fail_new, fail_hist=fail_hist)
    nonprintable = nonprintable_frac(response_text)
    # A program that does not load fails every test, so its failures say nothing about the suite.
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
    """``clip(min(|V| / K, 1 - invalid / K), 0, 1)``; see :func:`test_llm_reward`.

    A case with an incorrect assertion is in V, because its call is used with the oracle's answer. It also counts as
    invalid, because the Test LLM predicted a wrong answer.
    """
    num_invalid = suite.num_rejected + suite.num_expected_incorrect
    return min(1.0, max(0.0, min(len(suite.cases) / num_cases, 1.0 - num_invalid / num_cases)))


def nonprintable_frac(text: str) -> float:
    """Share of characters that are neither printable nor a newline, return or tab; 0 for empty text."""
    odd = sum(not character.isprintable() and character not in _LAYOUT_CHARACTERS for character in text)
    return odd / max(1, len(text))
