"""Metrics of generated tests: correct assertions, coverage and killed mutants, for the first k tests of N functions.

The definitions come from UnLeakedTestBench (Huang et al., arXiv 2508.00408) and its public scripts. All metrics are
percentages. Each metric is a ratio of two sums over functions (``parts_of``), so that functions can be resampled.

- ``pass@k`` is the number of right tests among the first k, divided by N * k. A missing test counts as wrong.
- ``line_cov@k`` and ``branch_cov@k`` are the shares of all lines and branches that the first k tests cover (micro
  average). Wrong tests cover lines too.
- ``mut@k`` is the mean share of killed mutants over the functions that pass cosmic-ray's baseline: they have a test,
  and their first k tests are all right. For ``mut_all@k`` all functions count, and a function that fails the baseline
  counts as 0.
- ``Mul = pass@5 * mut@5 / 100`` (Code-A1, arXiv 2603.15611) is computed by ``tools.evaluate``.

The public scripts differ from these definitions in five points:

- For every k, the scripts choose the functions of ``mut@k`` by the first five tests. This module uses the first k
  tests.
- The scripts count a function without mutants as 100 % killed. This module leaves such a function out.
- The scripts report 100 % if no function passes the baseline. In this module, the metric is then undefined.
- The scripts ignore the coverage of a function whose run broke off. In this module, only the test that broke off covers
  nothing.
- The scripts put imports before the function and count the import lines as covered. This module does not count such
  lines.
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

if TYPE_CHECKING:
    from .coverage import CallCoverage


Pair = tuple[float, float]
"""Numerator and denominator of a metric for one function. Both are 0 if the function does not count."""
Flags = tuple[bool, ...]
"""A truth value for each test, or for each mutant."""


@dataclass(frozen=True, kw_only=True)
class FunctionResult:
    """Measurements of the tests of one function. The tests keep the order in which they were written."""

    right: Flags
    """[tests] True if the expected output equals the reference's return value."""
    kills: tuple[Flags, ...] = ()
    """[mutants][tests] True if the test is right and fails on the mutant."""
    killable: Flags | None = None
    """[mutants] True if the question's own tests kill the mutant. None if none of the question's own tests is right."""
    num_lines: int = 0
    """Number of statements of the reference."""
    lines: tuple[frozenset[int], ...] = ()
    """[tests] statements that each test covers. Empty if coverage was not measured."""
    num_branches: int = 0
    """Number of branches of the reference."""
    branches: tuple[frozenset[tuple[int, int]], ...] = ()
    """[tests] branches that each test covers. Empty if coverage was not measured."""


def parts_of(result: FunctionResult, k: int) -> dict[str, Pair]:
    """Return the numerator and denominator of every metric for the first k tests of one function.

    The names are ``pass``, ``line_cov``, ``branch_cov``, ``mut`` and ``mut_all``. ``mut_killable`` and
    ``mut_all_killable`` count only killable mutants, and are left out if these mutants are unknown. To combine several
    functions, add their numerators and add their denominators.
    """
    right = result.right[:k]
    lines = set().union(*result.lines[:k])
    branches = set().union(*result.branches[:k])
    parts: dict[str, Pair] = {
        "pass": (sum(right), k),
        "line_cov": (len(lines), result.num_lines),
        "branch_cov": (len(branches), result.num_branches),
    }
    kills_of = {"": result.kills}
    if result.killable is not None:
        kills_of["_killable"] = tuple(itertools.compress(result.kills, result.killable))
    passes_baseline = bool(right) and all(right)
    for ending, kills in kills_of.items():
        killed = sum(any(row[:k]) for row in kills) / max(1, len(kills)) if passes_baseline else 0.0
        parts[f"mut{ending}"] = (killed, float(passes_baseline and bool(kills)))
        parts[f"mut_all{ending}"] = (killed, float(bool(kills)))
    return parts


def measure_function(
    question: Question,
    asserts: Sequence[str],
    *,
    judge_all: JudgeAll,
    mutants: Sequence[str] = (),
    coverage: "CallCoverage | None" = None,
    killable: Flags | None = None,
) -> FunctionResult:
    """Judge the generated tests of one function on its reference and on mutants.

    Mutants are judged like candidate programs, and only on the right asserts. A test kills a mutant that returns
    another value, raises, runs out of time or does not load.

    Args:
        question: gives the function and its reference. The question's own tests are not used.
        asserts: the generated tests, in order.
        judge_all: judges requests, see ``JudgeAll``. It is called twice.
        mutants: sources of mutants of the question's reference.
        coverage: coverage of each assert's call, in the order of ``asserts``, see ``measure_coverage``.
        killable: [mutants], see ``FunctionResult.killable``.

    Raises:
        SandboxUnavailableError: the sandbox could not judge a program.
    """
    # Make a suite of each single assert, so that a repeated call counts twice, as in a test file.
    suites = [(text,) for text in asserts]
    (on_reference,) = verdicts_of(judge_all, [request_for(question, None, *suites, given=True)])
    right = tuple(any(case.expected_correct for case in suite.cases) for suite in on_reference.suites)
    kills: tuple[Flags, ...] = ((False,) * len(asserts),) * len(mutants)
    if any(right):
        right_suites = list(itertools.compress(suites, right))
        requests = [request_for(question, mutant, *right_suites) for mutant in mutants]
        verdicts = verdicts_of(judge_all, requests)
        kills = tuple(_kills(verdict, right) for verdict in verdicts)
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
    """Make a mutant's row of ``kills``. The mutant's verdict has suites only for the right tests."""
    suites = iter(verdict.suites)
    kills = []
    for is_right in right:
        # If a program does not load, all its cases have failed.
        cases = next(suites).cases if is_right else ()
        kills.append(any(case.outcome.failed for case in cases))
    return tuple(kills)


def verdicts_of(judge_all: JudgeAll, requests: Sequence[JudgeRequest]) -> list[CandidateVerdict]:
    """Judge ``requests`` and return their verdicts in order.

    Raises:
        SandboxUnavailableError: a request met an outage. The error of the first such request is raised.
    """
    verdicts = []
    for result in judge_all(requests):
        if isinstance(result, SandboxUnavailableError):
            raise result
        verdicts.append(result)
    return verdicts


def killable_by(question: Question, sources: Sequence[str], tests: Sequence[str], judge_all: JudgeAll) -> Flags | None:
    """Return for each source whether a right test fails on it. Returns None if no test is right.

    Raises:
        SandboxUnavailableError: the sandbox could not judge a program.
    """
    alive = list(range(len(sources)))
    has_right = False
    # The first few tests kill most mutants, so only survivors run on the later tests.
    for batch in (tests[:8], tests[8:64], tests[64:]):
        if not batch or not alive:
            break
        requests = [request_for(question, sources[index], batch, given=True) for index in alive]
        survivors = []
        for index, verdict in zip(alive, verdicts_of(judge_all, requests), strict=True):
            right = [case.outcome for case in verdict.suites[0].cases if case.expected_correct]
            has_right |= bool(right)
            if not any(outcome.failed for outcome in right):
                survivors.append(index)
        alive = survivors
    if not has_right:
        return None
    return tuple(index not in alive for index in range(len(sources)))


def cases_by_place(tests: Sequence[str], suite: SuiteVerdict) -> Iterator[tuple[int, CaseResult]]:
    """Yield (index in ``tests``, case) for each valid case."""
    refused = {rejection.text for rejection in suite.rejections}
    # The cases have the same order as the texts in `tests`. A refused text has no case.
    places = [place for place, text in enumerate(tests) if text not in refused]
    return zip(places, suite.cases, strict=True)


def is_broken(case: CaseResult) -> bool:
    """True if the program failed the case. A call that was not made does not count as a failure."""
    return case.outcome.failed and not case.is_unasked
