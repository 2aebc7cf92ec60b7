"""A reward function of one's own for the Test LLM: suites that make the same call share what its failure earns.

    code-a1 train cpu rewards.test.path=examples/own_reward/crowding.py rewards.test.name=crowding \
        'rewards.test.kwargs={power: 0.5}'

``alpha`` is the key ``rewards.alpha``, since the function has a parameter of that name; ``power`` is one of ``kwargs``.
"""

from collections import Counter

from reward_fns import Breakdown, QuestionVerdicts, validity


def crowding(question: QuestionVerdicts, *, alpha: float, power: float = 1.0) -> list[list[Breakdown | None]]:
    """``alpha * Valid + (1 - alpha) / K * sum over failed cases of m^-power``, m its suites in the question."""
    tested = [one for one in question.candidates if one.verdict is not None and one.suite_texts]
    times = Counter(case.id for one in tested for suite in one.verdict.suites for case in suite.cases)
    rows: list[list[Breakdown | None]] = []
    for candidate in question.candidates:
        row: list[Breakdown | None] = [None] * len(candidate.suite_texts)
        for s in range(len(row)) if candidate.verdict is not None else ():
            suite, loaded = candidate.verdict.suites[s], float(candidate.verdict.loaded)
            failed = [case for case in suite.cases[: question.num_cases] if case.outcome.failed]
            adv = sum(times[case.id] ** -power for case in failed) / question.num_cases
            valid = validity(suite, num_cases=question.num_cases)
            parts = {"validity": loaded * alpha * valid, "adversarial": loaded * (1.0 - alpha) * adv}
            row[s] = Breakdown(parts=parts, terms={"valid": valid, "adv": adv})
        rows.append(row)
    return rows
