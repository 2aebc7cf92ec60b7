"""Problems whose programs read standard input: right programs pass, and wrong ones fail as they were made to.

Ten of the fifty problems are judged in the ordinary command, the others under the mark ``nightly``.
"""

from collections.abc import Iterator

import pytest

from sandbox import CaseOutcome, CaseResult, Judge, JudgeRequest, LocalRunner

from .stdin_problems import KINDS, Problem, read_problems

PROBLEMS = read_problems()
DAILY = {
    "spread-of-readings",
    "speed-of-the-trip",
    "two-teams",
    "heaviest-backpack",
    "bracket-depth",
    "cheapest-ferry",
    "mirrored-lines",
    "colony-on-a-torus",
    "unpack-runs",
    "deep-tree",
}
"""At least one problem of each checker."""
PROMISED = {
    "edge": CaseOutcome.WRONG_VALUE,
    "logic": CaseOutcome.WRONG_VALUE,
    "format": CaseOutcome.WRONG_VALUE,
    "crash": CaseOutcome.RAISED,
    "slow": CaseOutcome.TIMED_OUT,
}
each_problem = pytest.mark.parametrize(
    "problem",
    [
        pytest.param(problem, id=problem.id, marks=[] if problem.id in DAILY else pytest.mark.nightly)
        for problem in PROBLEMS
    ],
)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with LocalRunner() as runner:
        yield Judge(runner)


def cases_of(judge: Judge, problem: Problem, program: str) -> list[CaseResult]:
    """One case for each input; the expected outputs of the asserts are wrong and do not matter."""
    request = JudgeRequest(
        question_id=problem.id,
        reference=problem.reference,
        candidate=program,
        suites=(tuple(f"assert run({text!r}) == 'x'" for text in problem.inputs),),
        kind="stdin",
        checker=problem.checker,
    )
    suite = judge.judge(request).suites[0]
    assert suite.rejections == ()
    assert len({case.key for case in suite.cases}) == len(problem.inputs)
    return list(suite.cases)


@each_problem
def test_right_programs_pass_every_input(judge, problem):
    for program in (problem.reference, problem.right):
        failed = [case for case in cases_of(judge, problem, program) if case.outcome.failed]
        assert failed == []


@each_problem
def test_wrong_programs_fail_as_they_were_made_to(judge, problem):
    for kind in KINDS:
        cases = cases_of(judge, problem, problem.wrong[kind])
        failed = [case for case in cases if case.outcome.failed]
        assert {case.outcome for case in failed} == {PROMISED[kind]}, kind
        if kind == "edge":
            assert 2 * len(failed) < len(cases)
        if kind == "slow":
            assert len(failed) <= 2  # each costs half a second


def test_there_are_fifty_problems_with_seven_different_programs_each():
    programs = {program for one in PROBLEMS for program in (one.reference, one.right, *one.wrong.values())}
    assert len(programs) == 350
    assert len({problem.id for problem in PROBLEMS} | DAILY) == 50
    assert all(tuple(problem.wrong) == KINDS for problem in PROBLEMS)
