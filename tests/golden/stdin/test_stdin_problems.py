"""Fifty problems whose programs read standard input: right programs pass, and wrong ones fail as they were made to."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import pytest

from sandbox import CaseOutcome, Judge, JudgeRequest, LocalRunner, SuiteVerdict

from .problem import KINDS, Problem
from .problems import PROBLEMS

PROMISED = {
    "edge": CaseOutcome.WRONG_VALUE,
    "logic": CaseOutcome.WRONG_VALUE,
    "format": CaseOutcome.WRONG_VALUE,
    "crash": CaseOutcome.RAISED,
    "slow": CaseOutcome.TIMED_OUT,
}
CHECKERS = {"tokens": 34, "exact": 6, "floats": 5, "floats:1e-4": 1, "accepted": 4}
READING = {
    "input()": r"\binput\(\)",
    "read": r"stdin\.read\(\)",
    "lines": r"\bin (sys\.)?stdin:",
    "readline": r"stdin\.readlines?\(\)",
    "bytes": r"stdin\.buffer|os\.read\(0",
    "open(0)": r"\bopen\(0",
    "until the end": r"EOFError|\bin (sys\.stdin|open\(0\)):",
    "main guard": r'__name__ == "__main__"',
    "exit": r"sys\.exit\(|SystemExit|\bexit\(\)",
}
FEWEST_OF_A_STYLE = 4
MOST_WORDS_IN_COMMON = 0.4
"""Of two statements, relative to all words that they have."""
each_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=[problem.id for problem in PROBLEMS])


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with LocalRunner() as runner:
        yield Judge(runner)


def judged(judge: Judge, problem: Problem, program: str) -> SuiteVerdict:
    """What becomes of the program; the expected outputs of the asserts are wrong and do not matter."""
    request = JudgeRequest(
        question_id=problem.id,
        reference=problem.reference,
        candidate=program,
        suites=(tuple(f"assert run({text!r}) == 'x'" for text in problem.inputs),),
        kind="stdin",
        checker=problem.checker,
    )
    return judge.judge(request).suites[0]


def failures(suite: SuiteVerdict) -> list[tuple[str, str, CaseOutcome, str]]:
    """Of each failed case: the call, the right output, the outcome, a remark."""
    return [(one.call, one.reference_value, one.outcome, one.detail) for one in suite.cases if one.outcome.failed]


@each_problem
def test_the_reference_answers_every_input_and_passes(judge, problem):
    suite = judged(judge, problem, problem.reference)
    assert suite.rejections == ()
    assert len({case.key for case in suite.cases}) == len(problem.inputs)
    assert failures(suite) == []


@each_problem
def test_another_right_program_passes(judge, problem):
    suite = judged(judge, problem, problem.right)
    assert suite.num_valid == len(problem.inputs)
    assert failures(suite) == []


@pytest.mark.parametrize("kind", KINDS)
@each_problem
def test_a_wrong_program_fails_as_it_was_made_to(judge, problem, kind):
    suite = judged(judge, problem, problem.wrong[kind])
    assert suite.num_valid == len(problem.inputs)
    failed = failures(suite)
    assert failed, "it passes every case"
    assert [one for one in failed if one[2] is not PROMISED[kind]] == []
    if kind == "edge":
        assert 2 * len(failed) < suite.num_valid
    if kind == "slow":
        assert len(failed) <= 2  # each costs half a second


def test_there_are_fifty_different_problems():
    assert len(PROBLEMS) == 50
    assert len({problem.id for problem in PROBLEMS}) == 50
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", problem.id) for problem in PROBLEMS)
    programs = [program for one in PROBLEMS for program in (one.reference, one.right, *one.wrong.values())]
    assert len(set(programs)) == len(programs) == 350
    assert all(tuple(problem.wrong) == KINDS and 6 <= len(problem.inputs) <= 10 for problem in PROBLEMS)


def test_no_statement_is_a_near_copy_of_another():
    words = {problem.id: set(re.findall("[a-z]{3,}", problem.statement.lower())) for problem in PROBLEMS}
    near = {
        (one, other): len(words[one] & words[other]) / len(words[one] | words[other])
        for one, other in combinations(words, 2)
    }
    assert {pair: share for pair, share in near.items() if share > MOST_WORDS_IN_COMMON} == {}


def test_checkers_and_ways_of_reading_are_spread():
    assert Counter(problem.checker for problem in PROBLEMS) == CHECKERS
    programs = [program for problem in PROBLEMS for program in (problem.reference, problem.right)]
    found = {name: sum(bool(re.search(style, one)) for one in programs) for name, style in READING.items()}
    assert {name: count for name, count in found.items() if count < FEWEST_OF_A_STYLE} == {}
