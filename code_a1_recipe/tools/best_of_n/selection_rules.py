"""Best of N without a reference: rules that score programs by what generated tests say about them. Pure.

Axes: N programs of one question, M tests. A rule gives each program a score; the highest is chosen, and where several
are highest each of them with the same chance, so that no rule gains by the order in which programs come.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

NO_ANSWER = -1
"""In ``answers_NM``: hung, died, or gave no plain value. Equal to nothing, itself included."""
_TIE = 1e-9
"""Scores this close, in proportion, are a tie: sums of weights depend on their order in the last digits."""

Passes = NDArray[np.bool_]
Answers = NDArray[np.int64]
Scores = NDArray[np.float64]


def pass_count(passes_NM: Passes, answers_NM: Answers) -> Scores:
    """How many tests each program passes.

    Example:
        >>> pass_count(np.array([[True, False], [True, True]]), np.zeros((2, 2), int)).tolist()
        [1.0, 2.0]
    """
    return np.asarray(passes_NM.sum(axis=1), dtype=np.float64)


def codet(passes_NM: Passes, answers_NM: Answers) -> Scores:
    """Dual execution agreement: programs that pass the same tests form a set, which scores |programs| * |tests|.

    Source: Chen et al., CodeT, arXiv 2207.10397. Copies of a program or a test count each time. The authors'
    code takes the root of the first factor.
    """
    counts_N = pass_count(passes_NM, answers_NM)
    sizes_N = _sizes_of_equal_rows(passes_NM.astype(np.int64))
    return sizes_N * counts_N


def mbr_exec(passes_NM: Passes, answers_NM: Answers) -> Scores:
    """How many programs, itself included, give the same answers to all calls; the tests' expected outputs are not used.

    Minimum Bayes risk with the loss "some answer differs" (Shi et al., arXiv 2204.11454): the least
    expected loss is the largest group. A program with an answer that is ``NO_ANSWER`` agrees with none, as a failed
    execution in the authors' code. Ties are left; the authors break them by likelihood.
    """
    sizes_N = _sizes_of_equal_rows(answers_NM)
    lacks_answer_NM = answers_NM == NO_ANSWER
    return np.where(lacks_answer_NM.any(axis=1), 0.0, sizes_N)


def random_choice(passes_NM: Passes, answers_NM: Answers) -> Scores:
    """All programs alike: the lower bound, pass@1."""
    return np.zeros(len(passes_NM))


RULES: dict[str, Callable[[Passes, Answers], Scores]] = {
    "random": random_choice,
    "pass_count": pass_count,
    "codet": codet,
    "mbr_exec": mbr_exec,
}
"""Name -> ``(passes_NM, answers_NM) -> scores_N``, higher is better."""
ORACLE = "oracle"
"""Beside the rules in tables: 1 where any program is right."""


def best_programs(scores_N: Scores) -> NDArray[np.int64]:
    """Indices of the programs with the highest score, ties included; at least one program is there."""
    best = float(scores_N.max())
    tolerance = _TIE * max(1.0, abs(best))
    return np.flatnonzero(scores_N >= best - tolerance)


def expected_pass(scores_N: Scores, is_right_N: Passes) -> float:
    """Chance that the chosen program is right: the share of right ones among those with the highest score, in [0, 1].

    Example:
        >>> expected_pass(np.array([3.0, 3.0, 1.0]), np.array([True, False, True]))
        0.5
    """
    return float(is_right_N[best_programs(scores_N)].mean())


def _sizes_of_equal_rows(rows_NM: Answers) -> Scores:
    """For each row how many rows are equal to it, itself included."""
    rows = [tuple(row) for row in rows_NM.tolist()]
    sizes = Counter(rows)
    return np.array([sizes[row] for row in rows], dtype=np.float64)
