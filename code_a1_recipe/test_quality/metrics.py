"""How good are generated tests? Right claims, coverage and killed mutants of N functions, by their first k tests.

The definitions are those of UnLeakedTestBench (Huang et al., arXiv 2508.00408) and its public scripts. All metrics are
percentages and all are a ratio of two sums over functions, so that the functions can be resampled (``Parts``).

- ``pass@k``: right tests among the first k, over N * k; a missing test counts as wrong.
- ``line_cov@k``, ``branch_cov@k``: covered by the first k tests, right or wrong, over all there are (micro average).
- ``mut@k``: mean over functions of killed / all mutants, under one of three rules, see ``MutationRule``.
- ``Mul = pass@5 * mut@5 / 100`` (Code-A1, arXiv 2603.15611).

What the scripts do otherwise: they choose the functions of ``mut@k`` by the first five tests whatever k is (here by
``baseline_tests``, the first k by default), count a function without mutants as 100 % killed (here it is left out),
report 100 % when no function qualifies (here nothing), leave a function whose run broke off out of the coverage (here
its tests cover nothing), and count the import lines that they put before the function as covered lines.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox import CandidateVerdict, JudgeRequest, SandboxUnavailableError

from ..algorithm.question import Question
from ..jobs.confinement import JudgeAll
from .kill_matrix import suites_request
from .mutants import Mutant

if TYPE_CHECKING:
    from .coverage import CallCoverage


class MutationRule(enum.StrEnum):
    """Which functions and tests ``mut@k`` counts."""

    BASELINE = "baseline"
    """Only functions whose first tests are all right, at least one of them there; cosmic-ray's baseline."""
    ALL = "all"
    """All functions; one that fails the baseline kills nothing."""
    RIGHT_ONLY = "right_only"
    """All functions; their right tests among the first k do the killing. Not of UnLeakedTestBench."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionResult:
    """What is known about the tests of one function, in the order in which they were written."""

    question_id: str
    right: tuple[bool, ...]
    """[tests] the claim equals the reference's answer."""
    kills: tuple[tuple[bool, ...], ...] = ()
    """[mutants][tests] the test fails on the mutant; False for tests that are not right."""
    killable: tuple[bool, ...] | None = None
    """[mutants] the question's own tests (or others that the caller names) kill it; None: a test here does."""
    num_lines: int = 0
    """Statements of the reference."""
    lines: tuple[frozenset[int], ...] = ()
    """[tests] statements covered by each, or nothing where coverage was not measured."""
    num_branches: int = 0
    branches: tuple[frozenset[tuple[int, int]], ...] = ()
    """[tests] branches covered by each."""

    def __post_init__(self) -> None:
        num_tests, num_mutants = len(self.right), len(self.kills)
        widths = [len(row) for row in self.kills] + [len(row) for row in (self.lines, self.branches) if row]
        if any(width != num_tests for width in widths):
            raise ValueError(f"{self.question_id}: kills, lines and branches must have one column for each of the "
                             f"{num_tests} tests, got {sorted(set(widths))}")  # fmt: skip
        if self.killable is not None and len(self.killable) != num_mutants:
            raise ValueError(f"{self.question_id}: {len(self.killable)} killable flags for {num_mutants} mutants")

    def num_right(self, k: int) -> int:
        """Right tests among the first k."""
        return sum(self.right[:k])

    def passes_baseline(self, k: int) -> bool:
        """There is a test among the first k, and all of them are right."""
        return bool(self.right[:k]) and all(self.right[:k])

    def counted_mutants(self, *, only_killable: bool = False) -> list[tuple[bool, ...]]:
        """Rows of ``kills``, all or those of killable mutants."""
        if not only_killable:
            return list(self.kills)
        flags = self.killable if self.killable is not None else tuple(map(any, self.kills))
        return [row for row, is_killable in zip(self.kills, flags, strict=True) if is_killable]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A metric before its last division. A resample of the functions resamples both lists alike."""

    numerators: tuple[float, ...]
    """[functions]"""
    denominators: tuple[float, ...]
    """[functions] 0 where a function does not count."""

    @property
    def percent(self) -> float | None:
        """``100 * sum(numerators) / sum(denominators)``; None when no function counts."""
        total = sum(self.denominators)
        return 100.0 * sum(self.numerators) / total if total else None


def pass_parts(results: Sequence[FunctionResult], k: int) -> Parts:
    """``pass@k``: right tests among the first k of each function, over k."""
    _check_k(k)
    return _parts((result.num_right(k), k) for result in results)


def line_parts(results: Sequence[FunctionResult], k: int) -> Parts:
    """``line_cov@k``: statements covered by the first k tests, over all."""
    _check_k(k)
    return _parts((len(frozenset[int]().union(*result.lines[:k])), result.num_lines) for result in results)


def branch_parts(results: Sequence[FunctionResult], k: int) -> Parts:
    """``branch_cov@k``: branches covered by the first k tests, over all; functions without branches add nothing."""
    _check_k(k)
    nothing = frozenset[tuple[int, int]]()
    return _parts((len(nothing.union(*result.branches[:k])), result.num_branches) for result in results)


def mutation_parts(
    results: Sequence[FunctionResult],
    k: int,
    *,
    rule: MutationRule = MutationRule.BASELINE,
    only_killable: bool = False,
    baseline_tests: int | None = None,
) -> Parts:
    """``mut@k``: each function's share of killed mutants, over 1 for each function that counts.

    Args:
        results: functions without (killable) mutants do not count, under any rule.
        k: tests of each function that are looked at, the first ones.
        rule: which functions count, and which of these tests.
        only_killable: leave out the mutants that no test at hand kills; the others may be equivalent.
        baseline_tests: how many first tests must be right for the baseline; k if None. UnLeakedTestBench's scripts
            take 5 for every k.
    """
    _check_k(k)
    needed = k if baseline_tests is None else baseline_tests
    pairs: list[tuple[float, float]] = []
    for result in results:
        mutants = result.counted_mutants(only_killable=only_killable)
        may_kill = rule is MutationRule.RIGHT_ONLY or result.passes_baseline(needed)
        killed = sum(any(row[:k]) for row in mutants) if may_kill else 0
        counts = bool(mutants) and (may_kill or rule is MutationRule.ALL)
        pairs.append((killed / len(mutants), 1.0) if counts else (0.0, 0.0))
    return _parts(pairs)


def mul(pass_percent: float, mutation_percent: float) -> float:
    """``pass@k * mut@k / 100``, both in percent, so 0 to 100 (Code-A1, arXiv 2603.15611).

    Example:
        >>> round(mul(27.05, 26.41), 2)
        7.14
    """
    return pass_percent * mutation_percent / 100.0


def parts_of(results: Sequence[FunctionResult], *, ks: Sequence[int] = (1, 2, 5)) -> dict[str, Parts]:
    """All metrics by name: ``pass@1``, ``line_cov@1``, ``branch_cov@1``, ``mut@1`` (baseline), ``mut_all@1``,
    ``mut_right_only@1``, and the last three with only killable mutants, such as ``mut_killable@1``."""
    found: dict[str, Parts] = {}
    for k in ks:
        found |= {
            f"pass@{k}": pass_parts(results, k),
            f"line_cov@{k}": line_parts(results, k),
            f"branch_cov@{k}": branch_parts(results, k),
        }
        for only_killable in (False, True):
            for rule in MutationRule:
                name = "mut" if rule is MutationRule.BASELINE else f"mut_{rule}"
                name = f"{name}_killable@{k}" if only_killable else f"{name}@{k}"
                found[name] = mutation_parts(results, k, rule=rule, only_killable=only_killable)
    return found


def metrics_of(results: Sequence[FunctionResult], *, ks: Sequence[int] = (1, 2, 5)) -> dict[str, float | None]:
    """The values of ``parts_of`` in percent, and ``mul@k`` of each k; None where no function counts."""
    found = {name: parts.percent for name, parts in parts_of(results, ks=ks).items()}
    for k in ks:
        right, killed = found[f"pass@{k}"], found[f"mut@{k}"]
        found[f"mul@{k}"] = None if right is None or killed is None else mul(right, killed)
    return found


def judge_claims(question: Question, asserts: Sequence[str], judge_all: JudgeAll) -> tuple[bool, ...]:
    """[asserts] whether each is a valid case whose claim equals the reference's answer.

    Raises:
        SandboxUnavailableError: the sandbox could not say.
    """
    verdict = verdicts_of(judge_all, [suites_request(question, None, [(text,) for text in asserts])])[0]
    return tuple(any(case.expected_correct for case in suite.cases) for suite in verdict.suites)


def judge_kills(
    question: Question, asserts: Sequence[str], judge_all: JudgeAll, *, right: Sequence[bool], sources: Sequence[str]
) -> tuple[tuple[bool, ...], ...]:
    """[sources][asserts] whether each right assert fails on each program; False where ``right`` is.

    Raises:
        SandboxUnavailableError: a program could not be judged.
    """
    judged = [text for text, is_right in zip(asserts, right, strict=True) if is_right]
    if not judged or not sources:
        return ((False,) * len(asserts),) * len(sources)
    requests = [suites_request(question, source, [(text,) for text in judged]) for source in sources]
    return tuple(_spread(verdict, right) for verdict in verdicts_of(judge_all, requests))


def measure_function(
    question: Question,
    asserts: Sequence[str],
    *,
    judge_all: JudgeAll,
    mutants: Sequence[Mutant] = (),
    coverage: CallCoverage | None = None,
    killable: Sequence[bool] | None = None,
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
    right = judge_claims(question, asserts, judge_all)
    sources = [mutant.source for mutant in mutants]
    return FunctionResult(
        question_id=question.id,
        right=right,
        kills=judge_kills(question, asserts, judge_all, right=right, sources=sources),
        killable=None if killable is None else tuple(killable),
        num_lines=len(coverage.lines) if coverage is not None else 0,
        lines=coverage.lines_of_call if coverage is not None else (),
        num_branches=len(coverage.branches) if coverage is not None else 0,
        branches=coverage.branches_of_call if coverage is not None else (),
    )


def _spread(verdict: CandidateVerdict, right: Sequence[bool]) -> tuple[bool, ...]:
    """One row of ``kills``: the judged suites in the places of the right tests."""
    failed = (not verdict.loaded or any(case.outcome.failed for case in suite.cases) for suite in verdict.suites)
    return tuple(is_right and next(failed) for is_right in right)


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


def _parts(pairs: Iterable[tuple[float, float]]) -> Parts:
    numerators, denominators = zip(*pairs, strict=True) if (pairs := list(pairs)) else ((), ())
    return Parts(numerators=numerators, denominators=denominators)


def _check_k(k: int) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1 (the first k tests of each function), got {k!r}")
