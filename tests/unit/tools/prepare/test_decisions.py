"""The decision that follows from the facts about a reference."""

from dataclasses import replace
from pathlib import Path

import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.tools.prepare.options import PrepareOptions
from code_a1_recipe.tools.prepare.references import UNREADABLE, Fault, JudgedReference, decide
from code_a1_recipe.tools.prepare.rows import Dropped, Entry, Reason

TESTS = ("assert f(1) == 1", "assert f(2) == 2", "assert f(1) == 1")
GOLDEN = ("assert f(3) == 3", "assert f(2) == 2")
QUESTION = Question(id="q", prompt="p", reference="def f(x): return x", tests=TESTS, golden_tests=GOLDEN)


def decided(*faults, load_error="", question=QUESTION, **options):
    """Of the three distinct tests of QUESTION; faults are (place, reason)."""
    found = tuple(Fault(place=place, reason=reason, detail=f"remark {place}") for place, reason in faults)
    judged = JudgedReference(key="k", load_error=load_error, faults=found)
    options = PrepareOptions(inputs=(), output=Path("out.parquet"), **options)
    return decide(Entry(file="a", row=0, question=question), judged, options)


def remaining(decision):
    """Tests and golden tests of a row that stays."""
    assert isinstance(decision, Entry)
    return decision.question.tests, decision.question.golden_tests


def reason(decision):
    assert isinstance(decision, Dropped)
    return decision.reason


def test_a_good_reference_stays_with_distinct_tests():
    assert remaining(decided()) == (TESTS[:2], GOLDEN)


@pytest.mark.parametrize("fault", [Reason.REFERENCE_FAILS, Reason.UNENCODABLE])
def test_one_test_that_does_not_hold_costs_the_row(fault):
    decision = decided((1, fault))
    assert (decision.reason, decision.detail) == (fault, "1 of 3 tests do not hold, the first: remark 1")


@pytest.mark.parametrize("fault", [Reason.REFERENCE_SLOW, Reason.REFERENCE_NONDETERMINISTIC])
def test_slow_and_flaky_references_always_go(fault):
    assert reason(decided((0, Reason.REFERENCE_FAILS), (2, fault))) == fault


def test_what_does_not_load_goes_first():
    decision = decided((0, Reason.REFERENCE_FAILS), load_error="NameError: x")
    assert (decision.reason, decision.detail) == (Reason.LOAD_FAILED, "NameError: x")


def test_tests_that_the_judge_cannot_read_cost_themselves_only():
    assert remaining(decided((0, UNREADABLE)))[0] == TESTS[1:2]


def test_golden_tests_do_not_count_towards_the_least_number():
    assert isinstance(decided(min_tests=2), Entry)
    assert reason(decided(min_tests=3)) == Reason.TOO_FEW_TESTS
    decision = decided((0, UNREADABLE), min_tests=2)
    assert decision.reason == Reason.TOO_FEW_TESTS
    assert decision.detail.startswith("1 of 2 tests remain")
    assert decision.detail.endswith("the first: remark 0")


def test_the_first_tests_that_hold_become_golden_where_a_row_has_none():
    bare = replace(QUESTION, golden_tests=())
    assert remaining(decided(golden=1))[1] == GOLDEN
    assert remaining(decided(question=bare, golden=1)) == (TESTS[1:2], TESTS[:1])
    decision = decided(question=bare, golden=2)
    assert (decision.reason, decision.detail) == (Reason.TOO_FEW_TESTS, "0 of 2 tests remain beside 2 golden tests")
