"""R_T by other rules than the paper's: rewards that pay for what the suites of a question find together.

Axes: C candidates of a question, S suites of a candidate, K cases of a suite. T holds the first K valid cases of suite
s, written for candidate c; m(t) counts the suites that have call t in T: those for c, or the question's (``scope``);
asked(t) how often programs met t before, as far as that is known: of the cases in the Mistake Book, which are replayed.

    w(t)   = m(t) ** -crowding * (1 + asked(t)) ** -novelty
    Usable = |T| / K
    Valid  = clip(min(sum of w over T / K, 1 - invalid / K), 0, 1)
    Claim  = sum of w over the cases of T with a correct expected value / K
    R_T    = gate * (alpha * Valid + claims * Claim + (1 - alpha - claims) * Adv)

``gate`` is Usable with ``gated=True`` and 1 without; 0 for a candidate that does not load. ``crowding=0, claims=0``,
``fitness="paper"`` and no gate is the paper's R_T. What Adv is, ``fitness`` says:

- ``paper``: the paper's term of ``fail_new = sum of w over failed cases of T / K`` and ``fail_hist``.
- ``kills``: ``fail_new`` alone; ``fail_hist`` is the same for all suites of a candidate. With ``crowding=1`` the Adv of
  a candidate's suites sum to the number of distinct calls that it fails, over K: each suite earns its Shapley value in
  the game whose worth is that number (MIST-RL, arXiv 2603.01409, is the sequential form).
- ``set``: one suite of a set of k. 1 for a suite that breaks c; else the chance that a set of it and k - 1 of the other
  S - 1 suites does: ``1 - binom(S - 1 - b, k - 1) / binom(S - 1, k - 1)``, b of them breaking c. S / k times the
  unbiased estimator of PKPO (arXiv 2505.15201): nothing is to be gained once enough suites break c.
- ``sharing``: ``min(1, sum over candidates c' that s breaks of 1 / N_c')``, N_c' the question's suites that break c'
  (competitive fitness sharing, Rosin and Belew 1997). Calls of other candidates' suites count for c as well, which
  needs ``rewards.code_tests=pooled``.
- ``learnability``: ``sum over T of w(t) 4 p_t (1 - p_t) / K``, p_t the share of the question's candidates that fail t
  (CURE, arXiv 2506.03136; unsupervised environment design). Needs the pooled cases too.

Each costs one pass over the question's verdicts, microseconds a suite; ``sharing`` and ``learnability`` also make every
program run on the cases of all others.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from .breakdown import Breakdown
from .code_reward import pass_rate
from .interface import JudgedCandidate, QuestionVerdicts
from .lookup import lookup
from .sandbox_seam import CandidateVerdict, CaseResult
from .suite_reward import ADVERSARIAL_READINGS

SCOPES = ("candidate", "question")
NEED_POOLED = ("sharing", "learnability")
"""Fitness that asks how all candidates do on a case (``rewards.code_tests=pooled``)."""


class _Together:
    """What a rule may need to know of all suites of a question, found once."""

    def __init__(self, question: QuestionVerdicts) -> None:
        self._tested = [candidate for candidate in question.candidates if candidate.verdict is not None]
        self.num_cases = question.num_cases

    @cached_property
    def failed(self) -> list[set[str]]:
        """Calls of the whole question that a candidate fails, for each that loads and met them."""
        return [
            {_key(case) for case in one.pooled.cases if case.outcome.failed}
            for one in self._tested
            if one.verdict is not None and one.verdict.loaded and one.pooled is not None
        ]

    @cached_property
    def num_breaking(self) -> list[int]:
        """Suites that break the candidate of each item of ``failed``."""
        suites = [suite for one in self._tested if one.verdict is not None for suite in one.verdict.suites]
        asked = [{_key(case) for case in suite.cases[: self.num_cases]} for suite in suites]
        return [sum(bool(keys & calls) for calls in asked) for keys in self.failed]


@dataclass(frozen=True, kw_only=True)
class _Suite:
    """One suite with what a rule may need to know of it."""

    together: _Together
    verdict: CandidateVerdict
    """Of the candidate that it was written for."""
    number: int
    cases: tuple[CaseResult, ...]
    """T: at most K."""
    weight: Callable[[CaseResult], float]
    """w(t)"""
    reading: Callable[..., float]
    set_size: int

    def rate(self, counts: Callable[[CaseResult], float]) -> float:
        """``sum over T of w(t) * counts(t) / K``, in [0, 1] where ``counts`` is."""
        return math.fsum(self.weight(case) * counts(case) for case in self.cases) / self.together.num_cases


def adversary_rewards(
    question: QuestionVerdicts,
    *,
    fitness: str = "kills",
    crowding: float = 1.0,
    novelty: float = 0.0,
    scope: str = "candidate",
    gated: bool = True,
    alpha: float = 0.0,
    claims: float = 0.0,
    adversarial: str = "release",
    set_size: int = 4,
) -> list[list[Breakdown | None]]:
    """R_T of each suite, [C][S], see the module; ``rewards.test.name=adversary``.

    Args:
        question: the judged question.
        fitness: a name in ``FITNESS``.
        crowding: exponent, at least 0. 0: a repeated call is worth as much as a new one; 1: its makers share its worth.
        novelty: exponent, at least 0. Above 0 a case that is in the Mistake Book already is worth less than a new one.
        scope: whose calls crowd, a name in ``SCOPES``.
        gated: what cannot be used earns nothing.
        alpha: weight of validity; with ``claims`` at most 1.
        claims: weight of correct expected values. GRPO divides advantages by their deviation, so where no suite of a
            group breaks the program even a small weight decides the whole update.
        adversarial: reading of the paper's term, a name in ``ADVERSARIAL_READINGS``.
        set_size: k of ``fitness="set"``, at least 1.

    Returns:
        Parts ``validity``, ``claims`` and ``adversarial``, total in [0, 1]; terms ``valid``, ``adv``, ``usable`` and
        ``expected_correct`` in [0, 1]. None where a candidate has no verdict.

    Raises:
        ValueError: an argument is out of range or unknown.
    """
    _check(crowding=crowding, novelty=novelty, alpha=alpha, claims=claims, set_size=set_size)
    lookup(scope, dict.fromkeys(SCOPES), what="scope of crowding")
    rule = lookup(fitness, FITNESS, what="fitness")
    reading = lookup(adversarial, ADVERSARIAL_READINGS, what="reading of the adversarial reward")
    together, number = _Together(question), question.num_cases
    of_question = _times(question.candidates, num_cases=number)

    def reward(candidate: JudgedCandidate, s: int, times: Counter[str]) -> Breakdown | None:
        if candidate.verdict is None:
            return None
        suite = _Suite(
            together=together,
            verdict=candidate.verdict,
            number=s,
            cases=candidate.verdict.suites[s].cases[: question.num_cases],
            weight=lambda case: times[_key(case)] ** -crowding * (1 + question.asked.get(_key(case), 0)) ** -novelty,
            reading=reading,
            set_size=set_size,
        )
        return _breakdown(suite, rule(suite), gated=gated, alpha=alpha, claims=claims)

    rows = []
    for candidate in question.candidates:
        times = of_question if scope == "question" else _times([candidate], num_cases=number)
        rows.append([reward(candidate, s, times) for s in range(len(candidate.suite_texts))])
    return rows


def _breakdown(
    suite: _Suite,
    adv: float,
    *,
    gated: bool,
    alpha: float,
    claims: float,
) -> Breakdown:
    verdict, num_cases = suite.verdict.suites[suite.number], suite.together.num_cases
    usable = len(suite.cases) / num_cases
    not_invalid = 1.0 - (verdict.num_rejected + verdict.num_expected_incorrect) / num_cases
    valid = max(0.0, min(suite.rate(lambda case: 1.0), not_invalid, 1.0))
    right = suite.rate(lambda case: case.expected_correct)
    gate = suite.verdict.loaded * (usable if gated else 1.0)
    return Breakdown(
        parts={
            "validity": gate * alpha * valid,
            "claims": gate * claims * right,
            "adversarial": gate * (1.0 - alpha - claims) * adv,
        },
        terms={"valid": valid, "adv": adv, "usable": usable, "expected_correct": right},
    )


def _key(case: CaseResult) -> str:
    return case.key or case.call


def _times(candidates: Sequence[JudgedCandidate], *, num_cases: int) -> Counter[str]:
    """How many suites make each call among their first K valid cases."""
    suites = [suite for one in candidates if one.verdict is not None for suite in one.verdict.suites]
    return Counter(key for suite in suites for key in {_key(case) for case in suite.cases[:num_cases]})


def _kills(suite: _Suite) -> float:
    return suite.rate(lambda case: case.outcome.failed)


def _paper(suite: _Suite) -> float:
    history = suite.verdict.history
    fail_hist = 1.0 - pass_rate(history) if history else None
    return suite.reading(fail_new=_kills(suite) if suite.cases else None, fail_hist=fail_hist)


def _set(suite: _Suite) -> float:
    number = suite.together.num_cases
    breaks = [any(case.outcome.failed for case in one.cases[:number]) for one in suite.verdict.suites]
    if breaks[suite.number]:
        return 1.0
    others, k = len(breaks) - 1, min(suite.set_size, len(breaks)) - 1
    return 1.0 - math.comb(others - sum(breaks), k) / math.comb(others, k)


def _sharing(suite: _Suite) -> float:
    own, together = {_key(case) for case in suite.cases}, suite.together
    shares = zip(together.failed, together.num_breaking, strict=True)
    return min(1.0, math.fsum(1.0 / number for keys, number in shares if keys & own))


def _learnability(suite: _Suite) -> float:
    failed = suite.together.failed
    rate = {_key(case): sum(_key(case) in keys for keys in failed) / max(1, len(failed)) for case in suite.cases}
    return suite.rate(lambda case: 4.0 * rate[_key(case)] * (1.0 - rate[_key(case)]))


FITNESS: dict[str, Callable[[_Suite], float]] = {
    "paper": _paper,
    "kills": _kills,
    "set": _set,
    "sharing": _sharing,
    "learnability": _learnability,
}
"""Adv by name, each in [0, 1]."""


def _check(*, crowding: float, novelty: float, alpha: float, claims: float, set_size: int) -> None:
    for name, value in (("crowding", crowding), ("novelty", novelty)):
        if not (value >= 0.0 and math.isfinite(value)):
            raise ValueError(f"{name} (exponent of a repeated call's worth) must be at least 0, got {value!r}")
    if not (alpha >= 0.0 and claims >= 0.0 and alpha + claims <= 1.0):
        raise ValueError(
            f"alpha and claims (weights of validity and of correct expected values) must be at least 0 and at most 1 "
            f"together, got {alpha!r} and {claims!r}"
        )
    if set_size < 1:
        raise ValueError(f"set_size (suites of a set) must be at least 1, got {set_size!r}")
