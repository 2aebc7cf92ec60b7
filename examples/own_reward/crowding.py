"""An example of your own reward function for the Test LLM: suites that show the same mistake share the reward for it.

    code-a1 train cpu rewards.test.path=examples/own_reward/crowding.py rewards.test.name=crowding \
        'rewards.test.kwargs={power: 0.5}'

The parameter ``alpha`` gets the value of ``rewards.alpha``, because both have the name ``alpha``. The parameter
``power`` gets its value from ``rewards.test.kwargs``.
"""

from collections import Counter

from reward_fns import Breakdown, QuestionVerdicts, validity


def crowding(question: QuestionVerdicts, *, alpha: float, power: float = 1.0) -> list[list[Breakdown | None]]:
    """Compute ``alpha * Valid + (1 - alpha) / K * sum of m^-power`` over the mistakes that each suite shows.

    Here, m is the number of suites of the question that have a case of this kind.
    """
    num_same: Counter[str] = Counter()
    for candidate in question.candidates:
        if candidate.verdict is None or not candidate.suite_texts:
            continue
        for suite in candidate.verdict.suites:
            num_same.update({case.id for case in suite.cases})
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
            mistakes = {case.id for case in cases if case.outcome.failed}
            adv = sum(sorted(num_same[name] ** -power for name in mistakes)) / question.num_cases
            valid = validity(suite, num_cases=question.num_cases)
            parts = {
                "validity": loaded * alpha * valid,
                "adversarial": loaded * (1.0 - alpha) * adv,
            }
            row[s] = Breakdown(parts=parts, terms={"valid": valid, "adv": adv})
    return rows
