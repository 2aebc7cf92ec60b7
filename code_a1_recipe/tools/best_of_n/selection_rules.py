"""Best of N without a reference: rules that score programs by generated tests. Pure.

Axes: N programs of one question, M tests. A rule gives each program a score, and the highest score is chosen. Among
several highest ones each has the same chance, so that no rule gains from the order of the programs.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

NO_ANSWER = -1
"""Entry of ``answers_NM`` for a call that hung, died, or gave no plain value. It equals nothing, not even itself."""

Passes = NDArray[np.bool_]
Answers = NDArray[np.int64]
Scores = NDArray[np.float64]


def pass_count(passes_NM: Passes, answers_NM: Answers) -> Scores:
    """Count the tests that each program passes.

    Example:
        >>> pass_count(np.array([[True, False], [True, True]]), np.zeros((2, 2), int)).tolist()
        [1.0, 2.0]
    """
    return np.asarray(passes_NM.sum(axis=1), dtype=np.float64)


def codet(passes_NM: Passes, answers_NM: Answers) -> Scores:
    """Score by dual execution agreement: programs that pass the same tests form a set with |programs| * |tests|.

    Source: Chen et al., CodeT, arXiv 2207.10397. Each copy of a program or a test counts. The authors' code takes the
    square root of the first factor.
    """
    counts_N = pass_count(passes_NM, answers_NM)
    sizes_N = _sizes_of_equal_rows(passes_NM.astype(np.int64))
    return sizes_N * counts_N


def mbr_exec(passes_NM: Passes, answers_NM: Answers) -> Scores:
    """Count the programs, itself included, that give the same answers to all calls.

    The tests' expected outputs are not used. This is minimum Bayes risk with the loss "some answer differs" (Shi et
    al., arXiv 2204.11454): a program of the largest group has the least expected loss. A program with a ``NO_ANSWER``
    agrees with none, like a failed execution in the authors' code. Ties stay; the authors break them by likelihood.
    """
    sizes_N = _sizes_of_equal_rows(answers_NM)
    lacks_answer_NM = answers_NM == NO_ANSWER
    return np.where(lacks_answer_NM.any(axis=1), 0.0, sizes_N)


def random_choice(passes_NM: Passes, answers_NM: Answers) -> Scores:
    """Score all programs alike. This lower bound is pass@1."""
    return np.zeros(len(passes_NM))


RULES: dict[str, Callable[[Passes, Answers], Scores]] = {
    "random": random_choice,
    "pass_count": pass_count,
    "codet": codet,
    "mbr_exec": mbr_exec,
}
"""Name -> rule: ``(passes_NM, answers_NM) -> scores_N``, higher is better."""
ORACLE = "oracle"
"""Upper bound of all rules in tables: 1 if any program is right, else 0."""


def best_programs(scores_N: Scores) -> NDArray[np.int64]:
    """Find the indices of the programs with the highest score, ties included. ``scores_N`` must not be empty."""
    return np.flatnonzero(scores_N == scores_N.max())  # all rules count, so their scores are whole numbers


def expected_pass(scores_N: Scores, is_right_N: Passes) -> float:
    """Chance in [0, 1] that the chosen program is right: the share of right programs among the highest scores.

    Example:
        >>> expected_pass(np.array([3.0, 3.0, 1.0]), np.array([True, False, True]))
        0.5
    """
    return float(is_right_N[best_programs(scores_N)].mean())


def _sizes_of_equal_rows(rows_NM: Answers) -> Scores:
    """Count for each row the rows that equal it, itself included."""
    rows = [tuple(row) for row in rows_NM.tolist()]
    sizes = Counter(rows)
    return np.array([sizes[row] for row in rows], dtype=np.float64)
