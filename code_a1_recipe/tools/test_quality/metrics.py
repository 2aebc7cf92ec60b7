"""Figures of generated tests: correct assertions, coverage and killed mutants of N functions, by their first k tests.

The definitions come from UnLeakedTestBench (Huang et al., arXiv 2508.00408) and its public scripts. All metrics are
percentages and all are a ratio of two sums over functions, so that the functions can be resampled (``parts_of``).

- ``pass@k``: right tests among the first k, over N * k; a missing test counts as wrong.
- ``line_cov@k``, ``branch_cov@k``: covered by the first k tests, right or wrong, over all there are (micro average).
- ``mut@k``: mean over functions of killed / all mutants, under one of three rules, see ``MUTATION_RULES``.
- ``Mul = pass@5 * mut@5 / 100`` (Code-A1, arXiv 2603.15611), which ``evaluation`` makes of the two.

What the scripts do otherwise: they choose the functions of ``mut@k`` by the first five tests whatever k is (here by
the first k), count a function without mutants as 100 % killed (here it is left out),
report 100 % when no function qualifies (here nothing), leave a function whose run broke off out of the coverage (here
its tests cover nothing), and count the import lines that they put before the function as covered lines.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sandbox import (
    CandidateVerdict,
    CaseOutcome,
    CaseResult,
    JudgeRequest,
    SandboxUnavailableError,
    SuiteVerdict,
)
from sandbox.text import HANGS_THROUGHOUT, TOTAL_SPENT

from ...algorithm.question import Question, request_for
from ...jobs.confinement import JudgeAll
from .mutants import Mutant

if TYPE_CHECKING:
    from .coverage import CallCoverage


Pair = tuple[float, float]
"""Numerator and denominator of a metric; 0 and 0 where nothing counts."""


Flags = tuple[bool, ...]
"""One for each test, or for each mutant."""
MUTATION_RULES = (
    "mut",  # only functions whose first tests are all right, at least one of them there; cosmic-ray's baseline
    "mut_all",  # all functions; one that fails the baseline kills nothing
    "mut_right_only",  # all functions; their right tests among the first k do the killing; not of UnLeakedTestBench
)
"""Metrics, and which functions and tests each counts."""


@dataclass(frozen=True, kw_only=True)
class FunctionResult:
    """The verdicts about the tests of one function, in the order in which they were written."""

    right: Flags
    """[tests] the expected output equals the reference's return value."""
    kills: tuple[Flags, ...] = ()
    """[mutants][tests] the test fails on the mutant; False for tests that are not right."""
    killable: Flags | None = None
    """[mutants] the question's own tests (or others that the caller names) kill it; None: a test here does."""
    num_lines: int = 0
    """Statements of the reference."""
    lines: tuple[frozenset[int], ...] = ()
    """[tests] statements covered by each, or nothing where coverage was not measured."""
    num_branches: int = 0
    branches: tuple[frozenset[tuple[int, int]], ...] = ()
    """[tests] branches covered by each."""


def parts_of(result: FunctionResult, k: int) -> dict[str, Pair]:
    """The metrics of one function by its first k tests, before the division, by name: ``pass``, ``line_cov``,
    ``branch_cov``, ``mut`` (baseline), ``mut_all``, ``mut_right_only``, and the last three with only killable mutants,
    such as ``mut_killable``. Over several functions numerators and denominators add up.
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
    for ending, rows in (("", result.kills), ("_killable", killable_rows)):
        for rule in MUTATION_RULES:
            parts[f"{rule}{ending}"] = _killed(rows, result.right[:k], rule)
    return parts


def _killed(kills: Sequence[Sequence[bool]], right: Sequence[bool], rule: str) -> Pair:
    """The share of mutants that the first tests kill, and 1; 0 and 0 where the function does not count.

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
    """Judge one function's generated tests on its reference and on mutants of it.

    Each assert is a suite of its own: one that repeats another's call still counts, as it would in a test file.
    Mutants are judged as candidates, on the right asserts only; a test kills a mutant that answers otherwise, raises,
    runs out of time or does not load.

    Args:
        question: its own tests are not used.
        asserts: the generated tests, in order.
        judge_all: of a ``JudgeProcesses``; called twice, with requests of this question alone.
        mutants: of the question's reference.
        coverage: of the asserts' calls, in their order, see ``coverage.measure_coverage`` and ``calls_in``.
        killable: [mutants] see ``FunctionResult.killable``.

    Raises:
        SandboxUnavailableError: the sandbox could not judge something; nothing is made up for it.
    """
    (verdict,) = verdicts_of(judge_all, [request_for(question, None, *((text,) for text in asserts))])
    right = tuple(any(case.expected_correct for case in suite.cases) for suite in verdict.suites)
    kills: tuple[Flags, ...] = ((False,) * len(asserts),) * len(mutants)
    suites = [(text,) for text in itertools.compress(asserts, right)]
    if suites and mutants:
        requests = [request_for(question, mutant.source, *suites) for mutant in mutants]
        kills = tuple(_spread(verdict, right) for verdict in verdicts_of(judge_all, requests))
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


def _spread(verdict: CandidateVerdict, right: Sequence[bool]) -> Flags:
    """One row of ``kills``: the judged suites in the places of the right tests."""
    kills = (not verdict.loaded or any(case.outcome.failed for case in suite.cases) for suite in verdict.suites)
    return tuple(is_right and next(kills) for is_right in right)


def verdicts_of(judge_all: JudgeAll, requests: Sequence[JudgeRequest]) -> list[CandidateVerdict]:
    """The verdicts of ``requests``, in order.

    Raises:
        SandboxUnavailableError: the first outage among them.
    """
    verdicts = []
    for result in judge_all(requests):
        if isinstance(result, SandboxUnavailableError):
            raise result
        verdicts.append(result)
    return verdicts


def killable_by(question: Question, sources: Sequence[str], tests: Sequence[str], judge_all: JudgeAll) -> Flags | None:
    """[sources] whether a right test fails on each program; None where no test that was met is right.

    Most mutants die on the first tests, so survivors alone meet the rest: 8 tests, up to 64, all. What survives is
    either equivalent to the reference or shows which tests are missing.

    Raises:
        SandboxUnavailableError: something could not be judged.
    """
    alive = list(range(len(sources)))
    num_right = 0
    for start, end in ((0, 8), (8, 64), (64, None)):
        batch = tests[start:end]
        if not batch or not alive:
            break
        verdicts = verdicts_of(judge_all, [request_for(question, sources[place], batch) for place in alive])
        suites = [verdict.suites[0].cases for verdict in verdicts]
        num_right += sum(case.expected_correct for case in suites[0])
        is_killed = [any(case.expected_correct and case.outcome.failed for case in cases) for cases in suites]
        alive = [place for place, killed in zip(alive, is_killed, strict=True) if not killed]
    return tuple(place not in alive for place in range(len(sources))) if num_right else None


def cases_by_place(tests: Sequence[str], suite: SuiteVerdict) -> Iterator[tuple[int, CaseResult]]:
    """Each valid case with the place of its text: cases come in written order, without what was refused."""
    refused = {rejection.text for rejection in suite.rejections}
    places = [place for place, text in enumerate(tests) if text not in refused]
    return zip(places, suite.cases, strict=True)


def is_broken(case: CaseResult) -> bool:
    """Say if the case broke the program: another value, an exception, a time-out, or it does not load.

    A call for which the program had no time left, or that it was not asked because it hung in all before, says nothing.
    """
    if case.outcome is CaseOutcome.TIMED_OUT:
        return case.detail not in (TOTAL_SPENT, HANGS_THROUGHOUT)
    return case.outcome.failed
