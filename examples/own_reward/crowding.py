"""An example of your own reward function for the Test LLM: suites that make the same call share the reward for it.

    code-a1 train cpu rewards.test.path=examples/own_reward/crowding.py rewards.test.name=crowding \
        'rewards.test.kwargs={power: 0.5}'

The parameter ``alpha`` gets the value of ``rewards.alpha``, because both have the name ``alpha``. The parameter
``power`` gets its value from ``rewards.test.kwargs``.
"""

from collections import Counter

from reward_fns import Breakdown, QuestionVerdicts, validity


def crowding(question: QuestionVerdicts, *, alpha: float, power: float = 1.0) -> list[list[Breakdown | None]]:
    """Compute ``alpha * Valid + (1 - alpha) / K * sum of m^-power`` over the failed cases of each suite.

    Here, m is the number of cases in all suites of the question that make the same call.
    """
    num_same: Counter[str] = Counter()
    for candidate in question.candidates:
        if candidate.verdict is None or not candidate.suite_texts:
            continue
        for suite in candidate.verdict.suites:
            num_same.update(case.id for case in suite.cases)
    rows: list[list[Breakdown | None]] = []
    for candidate in question.candidates:
        row: list[Breakdown | None] = [None] * len(candidate.suite_texts)
        rows.append(row)
        if candidate.verdict is None:
            continue
        loaded = float(candidate.verdict.loaded)
        for s in range(len(row)):
            suite = candidate.verdict.suites[s]
            cases = suite.cases[: question.num_cases]
            failed = [case for case in cases if case.outcome.failed]
            adv = sum(num_same[case.id] ** -power for case in failed) / question.num_cases
            valid = validity(suite, num_cases=question.num_cases)
            parts = {
                "validity": loaded * alpha * valid,
                "adversarial": loaded * (1.0 - alpha) * adv,
            }
            row[s] = Breakdown(parts=parts, terms={"valid": valid, "adv": adv})
    return rows
