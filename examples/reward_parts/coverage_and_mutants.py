"""R_T with what a suite does to the reference: branches that it covers, and mutants that it kills.

    code-a1 cpu rewards.test.path=examples/reward_parts/coverage_and_mutants.py \
        rewards.test.name=coverage_and_mutants 'rewards.test.kwargs={coverage: 0.1, mutants: 0.2}'

    R     = (1 - coverage - mutants) * R_T + coverage * Cov + mutants * Kill; 0 for a program that does not load
    Cov   = branches of the reference that the suite's first K valid cases run, over all; statements where it has none
    Kill  = sum over mutants that these cases kill of 1 / n, over the mutants; n suites of the same program kill it

Coverage is a part of CVeDRL's reward (arXiv 2601.22803, which shapes it otherwise). A mutant is shared equally by
the suites of one program (a GRPO group) that kill it: each suite earns its Shapley value in the game whose worth is
the number of mutants killed by the group. MIST-RL (arXiv 2603.01409) credits the first suite in an order instead; the
suites of a group have no order, so that credit would reward the same text differently by chance.

A case kills by the reference's return value, whatever the assert expects. A mutant that runs out of time in any call
of the question is not counted there: a time-out is no reward. So a value depends on the question's calls alone, not on
what was asked before, though answers are kept by reference and call. All of it runs in a sandbox of this process.
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
"""References whose answers are kept in a process; those met last stay."""
MUTANT_CASE_SECONDS, MUTANT_SECONDS = 0.1, 4.0
"""CPU seconds of a mutant in one call, or ten times the reference's, and in all calls of a question."""


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
    """R of each suite, [C][S], see the module; in [0, 1] where R_T is.

    Args:
        question: the judged question, with its reference.
        coverage: weight of Cov; with ``mutants`` at most 1.
        mutants: weight of Kill.
        max_mutants: mutants of a reference, spread over its lines; at least 1.
        seconds: wall time after which no further mutant of a question is run; its unknown suites get no reward.
        alpha, adversarial, nonprintable_penalty: the keys under ``rewards`` of these names, as in R_T.
        sandbox: arguments of ``sandbox.LocalRunner``, of which ``limits`` may be a mapping; give the run's ``tier`` and
            ``allow_missing`` where they are not the default.

    Returns:
        R_T's parts, ``coverage`` and ``mutants``; terms ``coverage`` and ``mutants`` (Cov and Kill), ``mutants_killed``
        (a share of the mutants, not divided among suites). None without a verdict, and for all suites of a program
        where the sandbox did not say what a case of one of them covers or kills.

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
    """What of the arguments cannot work, before training starts.

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
    """What the reference and its mutants do in the calls of one question."""

    all: frozenset[Any]
    """Branches, or statements where there are none; empty without coverage."""
    covered: Mapping[str, frozenset[Any]]
    """By call; none for a call of which it is not known."""
    num_mutants: int
    killed: Mapping[str, frozenset[int]]
    """By call, as for ``covered``."""


_NOTHING = _Facts(all=frozenset(), covered={}, num_mutants=0, killed={})


def _cases(question: QuestionVerdicts, one: JudgedCandidate) -> list[tuple[CaseResult, ...]]:
    """[S] the first K valid cases of each suite; nothing of a program without a verdict, or that does not load."""
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
    """Terms of each suite of one program; None for all of them where a case of one is not known: its group is lost."""
    keys_S = [{case.id for case in cases} for cases in cases_S]
    if not set().union(*keys_S) <= facts.covered.keys() & facts.killed.keys():
        return [None] * len(keys_S)
    killed_S = [frozenset[int]().union(*(facts.killed[key] for key in keys)) for keys in keys_S]
    killers = Counter(mutant for killed in killed_S for mutant in killed)
    return [
        {
            "coverage": len(frozenset().union(*(facts.covered[key] for key in keys))) / max(1, len(facts.all)),
            "mutants": math.fsum(1.0 / killers[mutant] for mutant in killed) / max(1, facts.num_mutants),
            "mutants_killed": len(killed) / max(1, facts.num_mutants),
        }
        for keys, killed in zip(keys_S, killed_S, strict=True)
    ]


def _weighted(base: Breakdown, terms: Mapping[str, float], weights: Mapping[str, float]) -> Breakdown:
    rest = 1.0 - math.fsum(weights.values())
    parts = {name: rest * value for name, value in base.parts.items()}
    parts |= {name: weight * terms[name] for name, weight in weights.items()}
    return Breakdown(parts=parts, terms={**base.terms, **terms})


def _limits(sandbox: Mapping[str, Any]) -> Limits:
    return Limits.from_mapping(sandbox.get("limits") or {}, where="sandbox.limits")


@dataclass(slots=True, eq=False, kw_only=True)
class _Known:
    """What is known of one reference, by call. Only answers are kept, so nothing depends on when they were asked."""

    mutants: tuple[str, ...]
    """Their sources."""
    is_killed: list[dict[str, bool]]
    """[mutants] by the key of a call."""
    all: frozenset[Any] = frozenset()
    covered: dict[str, frozenset[Any]] = field(default_factory=dict)


class _Measures:
    """What the references and mutants of many questions do, run in a sandbox that is made on first use. Thread-safe."""

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
        """What of ``calls`` (text by key) is known in the end; an outage is logged and leaves out what it hit."""
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
    """Note what each call covers that is not known yet; nothing of one that got no answer."""
    interface = Interface.of(reference.reference, reference.entry_points, kind=Kind(reference.kind))
    read = {key: parse_call(text, interface) for key, text in calls.items() if key not in known.covered}
    new = {key: case.call for key, case in read.items() if isinstance(case, Case)}
    if not new:
        return
    found = measure_coverage(runner, reference.reference, list(new.values()), prelude=reference.prelude)
    known.all = found.branches or found.lines
    covered_K = found.branches_of_call if found.branches else found.lines_of_call
    for key, lines, covered in zip(new, found.lines_of_call, covered_K, strict=True):
        if lines:  # loading the program is a part of every answer
            known.covered[key] = covered


def _meet(known: _Known, number: int, reference: JudgeRequest, calls: Mapping[str, str], judge: Judge) -> bool:
    """Ask a mutant the calls that it has not answered yet; False where it ran out of time in one of them."""
    is_killed = known.is_killed[number]
    new = tuple(text for key, text in calls.items() if key not in is_killed)
    if not new:
        return True
    cases = judge.judge(replace(reference, candidate=known.mutants[number], history=new)).history
    answered = [case for case in cases if case.outcome is not CaseOutcome.TIMED_OUT]
    is_killed |= {case.id: case.outcome.failed for case in answered}
    return len(answered) == len(cases)


def _start_anew() -> None:
    """In a forked child: the parent's sandbox is not its own, and another thread of the parent may hold the lock."""
    global _SHARED
    _SHARED = _Measures()


_SHARED = _Measures()
os.register_at_fork(after_in_child=_start_anew)
atexit.register(lambda: _SHARED.close())
