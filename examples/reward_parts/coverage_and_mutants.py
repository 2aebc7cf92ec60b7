"""Adds two parts to R_T: branches of the reference that a suite covers, and mutants of the reference that it kills.

    code-a1 cpu rewards.test.path=examples/reward_parts/coverage_and_mutants.py \
        rewards.test.name=coverage_and_mutants 'rewards.test.kwargs={coverage: 0.1, mutants: 0.2}'

    R     = (1 - coverage - mutants) * R_T + coverage * Cov + mutants * Kill; 0 for a program that does not load
    Cov   = share of the reference's branches that the suite's first K valid cases run; without branches, of statements
    Kill  = sum of 1 / n over the mutants that these cases kill, divided by the number of all mutants
    n     = number of suites for the same program that kill the mutant

Coverage is also a part of CVeDRL's reward (arXiv 2601.22803), in another form. The suites for one program (a GRPO
group) that kill a mutant share its credit equally: each suite gets its Shapley value in the game whose worth is the
number of mutants that the group kills. MIST-RL (arXiv 2603.01409) credits the first suite in an order instead. The
suites of a group have no order, so this credit would depend on chance.

A case kills a mutant that does not answer with the reference's return value. The expected output of the assert does not
matter. A mutant that runs out of time in any call of the question does not count for this question, so that time-outs
give no reward. Answers are kept by reference and call, but a value depends only on the question's calls, not on earlier
questions. References and mutants run in a sandbox of this process.
"""

import atexit
import inspect
import logging
import math
import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from code_a1_recipe.tools.test_quality.coverage import measure_coverage
from code_a1_recipe.tools.test_quality.mutants import check_cosmic_ray, mutants_of
from reward_fns import Breakdown, JudgedCandidate, QuestionVerdicts, find_test_reward
from sandbox import (
    CaseOutcome,
    CaseResult,
    Judge,
    JudgeRequest,
    Kind,
    Limits,
    LocalRunner,
    SandboxUnavailableError,
)
from sandbox.text import Case, Interface, parse_call

logger = logging.getLogger(__name__)

MAX_REFERENCES = 1024
"""Number of references whose answers a process keeps. The most recent references stay."""
MUTANT_CASE_SECONDS, MUTANT_SECONDS = 0.1, 4.0
"""Limits of a mutant's CPU seconds in one call and in all calls of a question. A call may always take ten times as long
as on the reference."""


def coverage_and_mutants(
    question: QuestionVerdicts,
    *,
    coverage: float = 0.1,
    mutants: float = 0.2,
    max_mutants: int = 20,
    seconds: float = 60.0,
    alpha: float = 0.5,
    adversarial: str = "release",
    nonprintable_penalty: bool = False,
    sandbox: Mapping[str, Any] | None = None,
) -> list[list[Breakdown | None]]:
    """Reward each suite by the formula of the module. The reward lies in [0, 1] if R_T does.

    Args:
        question: the judged question, with its reference.
        coverage: weight of Cov; ``coverage + mutants`` is at most 1.
        mutants: weight of Kill.
        max_mutants: largest number of mutants of a reference, spread over its lines; at least 1.
        seconds: wall time after which no further mutant of a question is run. Suites with unknown values then get no
            reward.
        alpha: key of the same name under ``rewards``, as in R_T.
        adversarial: key of the same name under ``rewards``, as in R_T.
        nonprintable_penalty: key of the same name under ``rewards``, as in R_T.
        sandbox: arguments of ``sandbox.LocalRunner``; ``limits`` may be a mapping. If the run's ``tier`` and
            ``allow_missing`` are not the default, they must be given here too.

    Returns:
        [C][S] rewards. Each has R_T's parts and the parts ``coverage`` and ``mutants``; and the terms ``coverage`` and
        ``mutants`` (Cov and Kill) and ``mutants_killed`` (share of all mutants that the suite kills). The reward is
        None without a verdict. If the sandbox failed for a case of a program, all suites for this program have None.

    Raises:
        ValueError: the question has no reference, or reads standard input and ``coverage`` is above 0.
    """
    options = {"alpha": alpha, "adversarial": adversarial, "nonprintable_penalty": nonprintable_penalty}
    base = find_test_reward("valid_and_adversarial", kwargs=options)(question)
    cases_CS = [_cases(question, one) if coverage or mutants else [] for one in question.candidates]
    calls = {case.id: case.call for cases_S in cases_CS for cases in cases_S for case in cases}
    facts = _NOTHING
    if calls:
        reference = _reference_of(question, coverage=coverage)
        sizes = {"max_mutants": max_mutants if mutants else 0, "with_coverage": coverage > 0, "seconds": seconds}
        facts = _SHARED.measure(reference, calls, **sizes, sandbox=dict(sandbox or {}))
    weights = {"coverage": coverage, "mutants": mutants}
    return [
        [
            None if reward is None or terms is None else _weighted(reward, terms, weights)
            for reward, terms in zip(rewards, _terms(cases_S or [()] * len(rewards), facts), strict=True)
        ]
        for rewards, cases_S in zip(base, cases_CS, strict=True)
    ]


def check_arguments(
    *,
    coverage: float = 0.1,
    mutants: float = 0.2,
    max_mutants: int = 20,
    seconds: float = 60.0,
    sandbox: Mapping[str, Any] | None = None,
    **of_the_base: object,
) -> None:
    """Check the arguments before training starts.

    Raises:
        ValueError: a value is out of range, or cosmic-ray, which makes the mutants, is not installed.
    """
    del of_the_base
    for name, value in (("coverage", coverage), ("mutants", mutants)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value <= 1.0:
            raise ValueError(f"{name} must be a weight in [0, 1], got {value!r}; 0.1 is a small one")
    if coverage + mutants > 1.0:
        raise ValueError(f"coverage + mutants must be at most 1, got {coverage + mutants:g}; the rest weighs R_T")
    if type(max_mutants) is not int or max_mutants < 1:
        raise ValueError(f"max_mutants must be an integer of at least 1, got {max_mutants!r}; mutants: 0 does without")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
        raise ValueError(f"seconds must be a number above 0, got {seconds!r}; 60 is the default")
    if mutants:
        check_cosmic_ray()
    if unknown := sorted(set(sandbox or {}) - set(inspect.signature(LocalRunner).parameters)):
        raise ValueError(f"sandbox must hold arguments of sandbox.LocalRunner, got {unknown}; such as tier and limits")
    _limits(sandbox or {})


coverage_and_mutants.check_arguments = check_arguments  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """Coverage and kills of the calls of one question. Calls whose result is unknown are left out."""

    all: frozenset[Any]
    """All branches of the reference, or all statements if it has no branches; empty without coverage."""
    covered: Mapping[str, frozenset[Any]]
    """Key of a call -> the branches or statements that the call runs."""
    num_mutants: int
    killed: Mapping[str, frozenset[int]]
    """Key of a call -> numbers of the mutants that the call kills."""


_NOTHING = _Facts(all=frozenset(), covered={}, num_mutants=0, killed={})


def _cases(question: QuestionVerdicts, one: JudgedCandidate) -> list[tuple[CaseResult, ...]]:
    """List the first K valid cases of each suite; empty for a program that does not load or has no verdict."""
    if one.verdict is None or not one.verdict.loaded or not one.suite_texts:
        return []
    return [suite.cases[: question.num_cases] for suite in one.verdict.suites]


def _reference_of(question: QuestionVerdicts, *, coverage: float) -> JudgeRequest:
    if question.reference is None:
        raise ValueError(f"QuestionVerdicts.reference must be given, got None for question {question.question_id!r}")
    if coverage and question.reference.kind == Kind.STDIN:
        raise ValueError(f"coverage must be 0 for programs that read input, got {coverage}: only calls are covered")
    return question.reference


def _terms(cases_S: Sequence[Sequence[CaseResult]], facts: _Facts) -> list[dict[str, float] | None]:
    """Compute the terms of each suite for one program. If a case of one suite is unknown, all suites have None."""
    covered_S = []
    killed_S = []
    killers: Counter[int] = Counter()
    for cases in cases_S:
        keys = {case.id for case in cases}
        if not keys <= facts.covered.keys() & facts.killed.keys():
            return [None] * len(cases_S)
        covered_S.append(frozenset().union(*(facts.covered[key] for key in keys)))
        killed_S.append(frozenset[int]().union(*(facts.killed[key] for key in keys)))
        killers.update(killed_S[-1])
    num_parts = max(1, len(facts.all))
    num_mutants = max(1, facts.num_mutants)
    rows: list[dict[str, float] | None] = []
    for covered, killed in zip(covered_S, killed_S, strict=True):
        credit = math.fsum(1.0 / killers[mutant] for mutant in killed)
        terms = {
            "coverage": len(covered) / num_parts,
            "mutants": credit / num_mutants,
            "mutants_killed": len(killed) / num_mutants,
        }
        rows.append(terms)
    return rows


def _weighted(base: Breakdown, terms: Mapping[str, float], weights: Mapping[str, float]) -> Breakdown:
    rest = 1.0 - math.fsum(weights.values())
    parts = {name: rest * value for name, value in base.parts.items()}
    parts |= {name: weight * terms[name] for name, weight in weights.items()}
    return Breakdown(parts=parts, terms={**base.terms, **terms})


def _limits(sandbox: Mapping[str, Any]) -> Limits:
    return Limits.from_mapping(sandbox.get("limits") or {}, where="sandbox.limits")


@dataclass(slots=True, eq=False, kw_only=True)
class _Known:
    """The known results for one reference. Only answers are kept, so no result depends on the order of the calls."""

    mutants: tuple[str, ...]
    """Sources of the mutants."""
    is_killed: list[dict[str, bool]]
    """For each mutant: key of a call -> True if the call kills the mutant."""
    all: frozenset[Any] = frozenset()
    covered: dict[str, frozenset[Any]] = field(default_factory=dict)


class _Measures:
    """Runs references and mutants in a sandbox that starts on first use, and keeps the results. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runner: LocalRunner | None = None
        self._judge: Judge | None = None
        self._known: OrderedDict[tuple[object, ...], _Known] = OrderedDict()

    def measure(
        self,
        reference: JudgeRequest,
        calls: Mapping[str, str],
        *,
        max_mutants: int,
        with_coverage: bool,
        seconds: float,
        sandbox: Mapping[str, Any],
    ) -> _Facts:
        """Measure the calls (key -> text). After an outage, which is logged, the result lacks the affected calls."""
        with self._lock:
            known = self._of(reference, max_mutants)
            hanging: set[int] = set()
            try:
                runner, judge = self._open(sandbox)
                if with_coverage:
                    _cover(known, reference, calls, runner)
                deadline = time.monotonic() + seconds
                for number in range(len(known.mutants)):
                    if not _meet(known, number, reference, calls, judge):
                        hanging.add(number)
                    if time.monotonic() > deadline:
                        logger.warning(
                            "question=%s %g s were not enough for its mutants", reference.question_id, seconds
                        )
                        break
            except SandboxUnavailableError as error:
                logger.warning("question=%s coverage or mutants are not known: %s", reference.question_id, error)
        counted = [number for number in range(len(known.mutants)) if number not in hanging]
        killed = {
            key: frozenset(number for number in counted if known.is_killed[number][key])
            for key in calls
            if all(key in known.is_killed[number] for number in counted)
        }
        covered = known.covered if with_coverage else dict.fromkeys(calls, frozenset())
        return _Facts(all=known.all, covered=covered, num_mutants=len(counted), killed=killed)

    def close(self) -> None:
        with self._lock:
            if self._runner is not None:
                self._runner.close()
            self._runner = self._judge = None

    def _open(self, sandbox: Mapping[str, Any]) -> tuple[LocalRunner, Judge]:
        if self._runner is None or self._judge is None:
            limits = _limits(sandbox)
            self._runner = LocalRunner(**{**sandbox, "limits": limits})
            seconds = min(limits.cpu_seconds_per_case, MUTANT_CASE_SECONDS)
            least = min(limits.min_cpu_seconds_per_case, seconds)
            total = min(limits.total_seconds, MUTANT_SECONDS)
            few = {"cpu_seconds_per_case": seconds, "min_cpu_seconds_per_case": least, "total_seconds": total}
            self._judge = Judge(self._runner, limits=replace(limits, **few))
        return self._runner, self._judge

    def _of(self, reference: JudgeRequest, max_mutants: int) -> _Known:
        key = (max_mutants, reference.prelude, reference.reference, reference.entry_points, reference.kind)
        if key not in self._known:
            made = mutants_of(reference.reference, max_mutants=max_mutants) if max_mutants else ()
            self._known[key] = _Known(mutants=tuple(one.source for one in made), is_killed=[{} for _ in made])
        self._known.move_to_end(key)
        while len(self._known) > MAX_REFERENCES:
            self._known.popitem(last=False)
        return self._known[key]


def _cover(known: _Known, reference: JudgeRequest, calls: Mapping[str, str], runner: LocalRunner) -> None:
    """Measure the coverage of new calls. A call without an answer stays unknown."""
    interface = Interface.of(reference.reference, reference.entry_points, kind=Kind(reference.kind))
    read = {key: parse_call(text, interface) for key, text in calls.items() if key not in known.covered}
    new = {key: case.call for key, case in read.items() if isinstance(case, Case)}
    if not new:
        return
    found = measure_coverage(runner, reference.reference, list(new.values()), prelude=reference.prelude)
    known.all = found.branches or found.lines
    covered_K = found.branches_of_call if found.branches else found.lines_of_call
    for key, lines, covered in zip(new, found.lines_of_call, covered_K, strict=True):
        if lines:  # every answered call has lines, at least those of loading the program
            known.covered[key] = covered


def _meet(known: _Known, number: int, reference: JudgeRequest, calls: Mapping[str, str], judge: Judge) -> bool:
    """Make the new calls on a mutant. Return False if it ran out of time in one of them."""
    is_killed = known.is_killed[number]
    new = tuple(text for key, text in calls.items() if key not in is_killed)
    if not new:
        return True
    cases = judge.judge(replace(reference, candidate=known.mutants[number], history=new)).history
    answered = [case for case in cases if case.outcome is not CaseOutcome.TIMED_OUT]
    is_killed |= {case.id: case.outcome.failed for case in answered}
    return len(answered) == len(cases)


def _start_anew() -> None:
    """Forget the parent's sandbox in a forked child. It belongs to the parent, and the lock may be held for ever."""
    global _SHARED
    _SHARED = _Measures()


_SHARED = _Measures()
os.register_at_fork(after_in_child=_start_anew)
atexit.register(lambda: _SHARED.close())
