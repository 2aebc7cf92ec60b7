"""Best of N without a reference: rules that score programs by generated tests. Pure functions.

Axes: N programs of one question, M tests. A rule gives each program a score, and the program with the highest score is
chosen. Programs that share the highest score have equal chances, so that no rule gains from the order of the programs.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

NO_ANSWER = -1
"""Entry of ``answers_NM`` for a call that hung, died, or gave no plain value.

Such an entry equals no answer, not even another ``NO_ANSWER``.
"""

Passes = NDArray[np.bool_]
Answers = NDArray[np.int64]
Scores = NDArray[np.float64]


def pass_count(passes_NM: Passes, answers_NM: Answers) -> Scores:
    """Count the tests that each program passes.

    Example:
        >>> pass_count(np.array([[True, False], [True, True]]), np.zeros((2, 2), int)).tolist()
        [1.0, 2.0]
    """
    counts_N = passes_NM.sum(axis=1)
    return np.asarray(counts_N, dtype=np.float64)


def codet(passes_NM: Passes, answers_NM: Answers) -> Scores:
    """Score by dual execution agreement: number of programs that pass the same tests, times the number of these tests.

    Source: Chen et al., CodeT, arXiv 2207.10397. Each copy of a program or a test counts. The authors' code uses the
    square root of the number of programs.
    """
    counts_N = pass_count(passes_NM, answers_NM)
    sizes_N = _sizes_of_equal_rows(passes_NM.astype(np.int64))
    return sizes_N * counts_N


def mbr_exec(passes_NM: Passes, answers_NM: Answers) -> Scores:
    """Score a program by the number of programs, itself included, that give the same answers to all calls.

    The tests' expected outputs are not used. The rule is minimum Bayes risk (Shi et al., arXiv 2204.11454) with the
    loss "some answer differs". A program of the largest group of equal programs has the least expected loss. A program
    with a ``NO_ANSWER`` agrees with no program. The authors' code treats a failed execution in the same way. The
    authors break ties by likelihood, but this function keeps ties.
    """
    sizes_N = _sizes_of_equal_rows(answers_NM)
    lacks_answer_NM = answers_NM == NO_ANSWER
    lacks_answer_N = lacks_answer_NM.any(axis=1)
    return np.where(lacks_answer_N, 0.0, sizes_N)


def random_choice(passes_NM: Passes, answers_NM: Answers) -> Scores:
    """Give all programs the same score. A right choice then has the chance pass@1, the baseline of the other rules."""
    return np.zeros(len(passes_NM))


RULES: dict[str, Callable[[Passes, Answers], Scores]] = {
    "random": random_choice,
    "pass_count": pass_count,
    "codet": codet,
    "mbr_exec": mbr_exec,
}
"""Name -> rule ``(passes_NM, answers_NM) -> scores_N``. A higher score is better."""
ORACLE = "oracle"
"""Name in tables of the upper bound, which is 1 if any program is right, else 0."""


def best_programs(scores_N: Scores) -> NDArray[np.int64]:
    """Find the indices of the programs with the highest score, ties included. ``scores_N`` must not be empty."""
    # Every rule counts programs or tests, so scores are whole numbers, and `==` finds ties exactly.
    return np.flatnonzero(scores_N == scores_N.max())


def expected_pass(scores_N: Scores, is_right_N: Passes) -> float:
    """Return the chance in [0, 1] that a rule's choice is right: the share of right programs among the best programs.

    Example:
        >>> expected_pass(np.array([3.0, 3.0, 1.0]), np.array([True, False, True]))
        0.5
    """
    best = best_programs(scores_N)
    return float(is_right_N[best].mean())


def _sizes_of_equal_rows(rows_NM: Answers) -> Scores:
    """Count for each row the rows that are equal to it, itself included."""
    rows = [tuple(row) for row in rows_NM.tolist()]
    sizes = Counter(rows)
    return np.array([sizes[row] for row in rows], dtype=np.float64)
