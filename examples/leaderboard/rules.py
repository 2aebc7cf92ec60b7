"""Rewards of the Test LLM that may make it a better adversary than the paper's: one function, a few keyword arguments.

    code-a1 train cpu micro.world=wide rewards.test.path=examples/leaderboard/rules.py rewards.test.name=adversary \
        'rewards.test.kwargs={fitness: kills, power: 1.0, claims: 0.25}'

With T the first K valid cases of suite s, written for program c, and m(t) how many suites written for c hold call t:

- ``usable = |T| / K``; ``right``: cases of T with a right expected value, over K, each times m(t) ** -power.
- ``fitness=kills``: ``Adv = 1/K * sum over t in T that c fails of m(t) ** -power``. power 0 is the paper's fail_new;
  with power 1 the Adv of a program's suites sum to the number of distinct calls that break it, over K (Shapley values
  of a coverage game; MIST-RL, arXiv 2603.01409, is the sequential form).
- ``fitness=sharing``: ``Adv = min(1, sum over programs c' that s breaks of 1 / N_c')``, N_c' the question's suites
  that break c' (competitive fitness sharing, Rosin and Belew 1997). Needs ``rewards.code_tests=pooled``.
- ``fitness=learnability``: ``Adv = 1/K * sum over T of 4 p_t (1 - p_t)``, p_t the share of the question's programs
  that fail t. Needs it too.

``R_T = usable * (claims * right + (1 - claims) * Adv)``, in [0, 1]; the product is a gate: what cannot be used earns 0.
"""

from collections import Counter
from collections.abc import Callable

from reward_fns import Breakdown, JudgedCandidate, QuestionVerdicts


def adversary(
    question: QuestionVerdicts, *, fitness: str = "kills", power: float = 1.0, claims: float = 0.25
) -> list[list[Breakdown | None]]:
    """Rewards [C][S]; see the module. None where a candidate has no verdict, 0 where it does not load."""
    value = _FITNESS[fitness](question, power)
    return [
        [_reward(question, one, s, value, power, claims) for s in range(len(one.suite_texts))]
        for one in question.candidates
    ]


def _cases(question: QuestionVerdicts, one: JudgedCandidate, s: int) -> tuple:
    return one.verdict.suites[s].cases[: question.num_cases]


def _times(one: JudgedCandidate) -> Counter:
    return Counter(case.key or case.call for suite in one.verdict.suites for case in suite.cases)


def _reward(question, one, s, value: Callable, power: float, claims: float) -> Breakdown | None:
    if one.verdict is None:
        return None
    loaded, cases, times = float(one.verdict.loaded), _cases(question, one, s), _times(one)
    usable = len(cases) / question.num_cases
    right = sum(times[case.key or case.call] ** -power for case in cases if case.expected_correct) / question.num_cases
    adv = min(1.0, value(one, s))
    parts = {"validity": loaded * usable * claims * right, "adversarial": loaded * usable * (1 - claims) * adv}
    return Breakdown(parts=parts, terms={"valid": usable, "adv": adv, "right": right})


def _kills(question: QuestionVerdicts, power: float) -> Callable:
    def value(one, s):
        times = _times(one)
        failed = [case for case in _cases(question, one, s) if case.outcome.failed]
        return sum(times[case.key or case.call] ** -power for case in failed) / question.num_cases

    return value


def _failed_keys(question: QuestionVerdicts) -> list[set[str]]:
    """Of each program that loads: the calls of the whole question that it fails."""
    loaded = [one for one in question.candidates if one.verdict is not None and one.verdict.loaded and one.pooled]
    return [{case.key or case.call for case in one.pooled.cases if case.outcome.failed} for one in loaded]


def _sharing(question: QuestionVerdicts, power: float) -> Callable:
    del power
    failed = _failed_keys(question)
    tested = [one for one in question.candidates if one.verdict is not None]
    suites = [
        {case.key or case.call for case in _cases(question, one, s)}
        for one in tested
        for s in range(len(one.suite_texts))
    ]
    breaking = [sum(bool(keys & calls) for calls in suites) for keys in failed]

    def value(one, s):
        calls = {case.key or case.call for case in _cases(question, one, s)}
        return sum(1 / number for keys, number in zip(failed, breaking, strict=True) if keys & calls)

    return value


def _learnability(question: QuestionVerdicts, power: float) -> Callable:
    del power
    failed = _failed_keys(question)

    def value(one, s):
        shares = [
            sum(case.key in keys or case.call in keys for keys in failed) / max(1, len(failed))
            for case in _cases(question, one, s)
        ]
        return sum(4 * p * (1 - p) for p in shares) / question.num_cases

    return value


_FITNESS = {"kills": _kills, "sharing": _sharing, "learnability": _learnability}
