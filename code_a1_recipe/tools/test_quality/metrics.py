"""Metrics of generated tests: correct assertions, coverage and killed mutants of N functions by their first k tests.

The definitions come from UnLeakedTestBench (Huang et al., arXiv 2508.00408) and its public scripts. All metrics are
percentages. Each is a ratio of two sums over functions, so that the functions can be resampled (``parts_of``).

- ``pass@k``: right tests among the first k, over N * k; a missing test counts as wrong.
- ``line_cov@k``, ``branch_cov@k``: lines and branches that the first k tests cover, right or wrong, over all lines and
  branches (micro average).
- ``mut@k``: mean over functions of killed / all mutants, under one of three rules, see ``MUTATION_RULES``.
- ``Mul = pass@5 * mut@5 / 100`` (Code-A1, arXiv 2603.15611), which ``tools.evaluate`` computes.

The scripts differ in five points:

- They choose the functions of ``mut@k`` by the first five tests whatever k is; here the first k tests choose.
- They count a function without mutants as 100 % killed; here it is left out.
- They report 100 % when no function qualifies; here there is no figure.
- They leave a function whose run broke off out of the coverage; here its tests cover nothing.
- They count the import lines that they put before the function as covered lines.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sandbox import (
    CandidateVerdict,
    CaseResult,
    JudgeRequest,
    SandboxUnavailableError,
    SuiteVerdict,
)

from ...algorithm.question import Question, request_for
from ...jobs.confinement import JudgeAll
from .mutants import Mutant

if TYPE_CHECKING:
    from .coverage import CallCoverage


Pair = tuple[float, float]
"""Numerator and denominator of a metric; 0 and 0 where nothing counts."""
Flags = tuple[bool, ...]
"""A truth value for each test, or for each mutant."""
MUTATION_RULES = (
    "mut",  # counts only functions with at least one test whose first k tests are all right: cosmic-ray's baseline
    "mut_all",  # counts all functions; a function that fails the baseline kills nothing
    "mut_right_only",  # counts all functions, by the right tests among the first k; not in UnLeakedTestBench
)
"""Metrics of mutants. They differ in the functions and tests that count."""


@dataclass(frozen=True, kw_only=True)
class FunctionResult:
    """Measurements of the tests of one function, in the order in which the tests were written."""

    right: Flags
    """[tests] True if the expected output equals the reference's return value."""
    kills: tuple[Flags, ...] = ()
    """[mutants][tests] True if the test is right and fails on the mutant."""
    killable: Flags | None = None
    """[mutants] True if the question's own tests kill the mutant. None lets the tests of this result decide."""
    num_lines: int = 0
    """Number of statements of the reference."""
    lines: tuple[frozenset[int], ...] = ()
    """[tests] statements that each test covers. Empty without a measured coverage."""
    num_branches: int = 0
    """Number of branches of the reference."""
    branches: tuple[frozenset[tuple[int, int]], ...] = ()
    """[tests] branches that each test covers."""


def parts_of(result: FunctionResult, k: int) -> dict[str, Pair]:
    """Return numerator and denominator of every metric of one function by its first k tests.

    The names are ``pass``, ``line_cov``, ``branch_cov`` and ``MUTATION_RULES``. The latter come again with the ending
    ``_killable``, for killable mutants only. Over several functions numerators and denominators add up.
    """
    lines = set().union(*result.lines[:k])
    branches = set().union(*result.branches[:k])
    parts: dict[str, Pair] = {
        "pass": (sum(result.right[:k]), k),
        "line_cov": (len(lines), result.num_lines),
        "branch_cov": (len(branches), result.num_branches),
    }
    killable = result.killable or map(any, result.kills)
    killable_rows = tuple(itertools.compress(result.kills, killable))
    for ending, rows in {"": result.kills, "_killable": killable_rows}.items():
        for rule in MUTATION_RULES:
            parts[f"{rule}{ending}"] = _killed(rows, result.right[:k], rule)
    return parts


def _killed(kills: Sequence[Sequence[bool]], right: Sequence[bool], rule: str) -> Pair:
    """Return the share of mutants that the first tests kill, and 1; or 0 and 0 where the function does not count.

    Args:
        kills: [mutants][tests]
        right: [first tests]
    """
    passes_baseline = bool(right) and all(right)
    if not kills or (rule == "mut" and not passes_baseline):
        return 0.0, 0.0
    if rule == "mut_all" and not passes_baseline:
        return 0.0, 1.0
    num_killed = sum(any(row[: len(right)]) for row in kills)
    return num_killed / len(kills), 1.0


def measure_function(
    question: Question,
    asserts: Sequence[str],
    *,
    judge_all: JudgeAll,
    mutants: Sequence[Mutant] = (),
    coverage: "CallCoverage | None" = None,
    killable: Flags | None = None,
) -> FunctionResult:
    """Judge the generated tests of one function on its reference and on mutants.

    Mutants are judged as candidates, on the right asserts only. A test kills a mutant that answers otherwise, raises,
    runs out of time or does not load.

    Args:
        question: the function; its own tests are not used.
        asserts: the generated tests, in order.
        judge_all: judges requests, see ``JudgeAll``; it is called twice.
        mutants: mutants of the question's reference.
        coverage: coverage by the calls of the asserts, in their order, see ``coverage.measure_coverage``.
        killable: [mutants] see ``FunctionResult.killable``.

    Raises:
        SandboxUnavailableError: the sandbox could not judge a program.
    """
    # Each assert is a suite of its own, because a repeated call counts here as it would in a test file.
    suites = [(text,) for text in asserts]
    (verdict,) = verdicts_of(judge_all, [request_for(question, None, *suites)])
    right = tuple(any(case.expected_correct for case in suite.cases) for suite in verdict.suites)
    kills: tuple[Flags, ...] = ((False,) * len(asserts),) * len(mutants)
    if any(right):
        right_suites = list(itertools.compress(suites, right))
        requests = [request_for(question, mutant.source, *right_suites) for mutant in mutants]
        kills = tuple(_kills(verdict, right) for verdict in verdicts_of(judge_all, requests))
    result = FunctionResult(right=right, kills=kills, killable=killable)
    if coverage is None:
        return result
    return replace(
        result,
        num_lines=len(coverage.lines),
        lines=coverage.lines_of_call,
        num_branches=len(coverage.branches),
        branches=coverage.branches_of_call,
    )


def _kills(verdict: CandidateVerdict, right: Sequence[bool]) -> Flags:
    """Make the row of a mutant in ``kills``. Its verdict has suites for the right tests only."""
    suites = iter(verdict.suites)
    kills = []
    for is_right in right:
        cases = next(suites).cases if is_right else ()
        fails = any(case.outcome.failed for case in cases)
        kills.append(fails or (is_right and not verdict.loaded))
    return tuple(kills)


def verdicts_of(judge_all: JudgeAll, requests: Sequence[JudgeRequest]) -> list[CandidateVerdict]:
    """Judge ``requests`` and return their verdicts in order.

    Raises:
        SandboxUnavailableError: a request met an outage; the first of these errors is raised.
    """
    verdicts = []
    for result in judge_all(requests):
        if isinstance(result, SandboxUnavailableError):
            raise result
        verdicts.append(result)
    return verdicts


def killable_by(question: Question, sources: Sequence[str], tests: Sequence[str], judge_all: JudgeAll) -> Flags | None:
    """Return [sources] True if a right test fails on the program. None if no test is right.

    Raises:
        SandboxUnavailableError: the sandbox could not judge a program.
    """
    alive = list(range(len(sources)))
    has_right = False
    # Most mutants die on the first few tests, so only survivors meet the others.
    for batch in (tests[:8], tests[8:64], tests[64:]):
        if not batch or not alive:
            break
        requests = [request_for(question, sources[index], batch) for index in alive]
        survivors = []
        for index, verdict in zip(alive, verdicts_of(judge_all, requests), strict=True):
            right = [case for case in verdict.suites[0].cases if case.expected_correct]
            has_right |= bool(right)
            if not any(case.outcome.failed for case in right):
                survivors.append(index)
        alive = survivors
    if not has_right:
        return None
    return tuple(index not in alive for index in range(len(sources)))


def cases_by_place(tests: Sequence[str], suite: SuiteVerdict) -> Iterator[tuple[int, CaseResult]]:
    """Yield each valid case with the index of its text in ``tests``."""
    refused = {rejection.text for rejection in suite.rejections}
    # The cases stand in the order of the texts, without refused ones.
    places = [place for place, text in enumerate(tests) if text not in refused]
    return zip(places, suite.cases, strict=True)


def is_broken(case: CaseResult) -> bool:
    """True if the program gave another value, raised, timed out or did not load; an unasked call proves nothing."""
    return case.outcome.failed and not case.is_unasked
