"""The mutants of a reference that its tests notice.

Mutants (operators of cosmic-ray, see ``mutants``) go through the judge as candidates. One is killed when a correct test
fails on it: another value, an exception, a time-out, or a program that does not load. Most die on the first tests, so
survivors alone meet the rest: 8 tests, up to 64, all. What survives is either equivalent to the reference or shows
which tests are missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox import CandidateVerdict

from ..algorithm.question import Question, request_for
from ..jobs.confinement import JudgeAll
from .metrics import verdicts_of

STAGES = (8, 64, None)
"""Tests of a question that its mutants have met after each stage; None is all."""


@dataclass(frozen=True, kw_only=True)
class KillResult:
    """The mutants that a question's tests leave alive."""

    survivors: tuple[int, ...]
    """Places in the list of mutants."""
    num_right_tests: int
    """Tests met whose expected output equals the reference's return value; without any, the mutants were not tested."""


def kill_mutants(
    question: Question,
    sources: Sequence[str],
    tests: Sequence[str],
    judge_all: JudgeAll,
) -> KillResult:
    """Judge mutants of a question's reference on ``tests``, in stages.

    Raises:
        SandboxUnavailableError: something could not be judged.
    """
    alive = list(range(len(sources)))
    num_right = 0
    start = 0
    for stage in STAGES:
        batch = tests[start:stage]
        start += len(batch)
        if not batch or not alive:
            break
        requests = [request_for(question, sources[place], batch) for place in alive]
        verdicts = verdicts_of(judge_all, requests)
        num_right += sum(case.expected_correct for case in verdicts[0].suites[0].cases)
        alive = [place for place, verdict in zip(alive, verdicts, strict=True) if not _is_killed(verdict)]
    return KillResult(survivors=tuple(alive), num_right_tests=num_right)


def _is_killed(verdict: CandidateVerdict) -> bool:
    """A right test fails; where the mutant does not load, every test does."""
    cases = verdict.suites[0].cases
    return any(case.expected_correct and case.outcome.failed for case in cases)
