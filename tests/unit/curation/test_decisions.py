"""What follows from the facts about a reference."""

from dataclasses import replace

import msgspec
import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.curation.rows import Reason
from code_a1_recipe.curation.references import Fault, ReferenceFacts, TestFault, decide, distinct_tests

TESTS = ("assert f(1) == 1", "assert f(2) == 2", "assert f(1) == 1")
GOLDEN = ("assert f(3) == 3", "assert f(2) == 2")
QUESTION = Question(id="q", prompt="p", reference="def f(x): return x", tests=TESTS, golden_tests=GOLDEN)
KINDS = (Fault.INCORRECT_ASSERTION, Fault.RAISES, Fault.UNENCODABLE)


def facts(*faults, load_error=""):
    """Of the three distinct tests of QUESTION; faults are (place, fault)."""
    return ReferenceFacts(
        num_tests=3,
        load_error=load_error,
        faults=tuple(TestFault(place=place, fault=fault, detail=f"remark {place}") for place, fault in faults),
        cpu_seconds=0.5,
    )


def decided(*faults, drop_tests=False, min_tests=1, **changes):
    return decide(QUESTION, facts(*faults, **changes), drop_tests=drop_tests, min_tests=min_tests)


def remaining(decision):
    """Tests and golden tests of a row that stays."""
    assert isinstance(decision, Question)
    return decision.tests, decision.golden_tests


def test_each_text_is_a_test_once_and_golden_ones_come_last():
    assert distinct_tests(QUESTION) == ("assert f(1) == 1", "assert f(2) == 2", "assert f(3) == 3")


def test_a_good_reference_stays_with_distinct_tests():
    assert remaining(decided()) == (TESTS[:2], GOLDEN)


@pytest.mark.parametrize("fault", KINDS)
def test_one_test_that_does_not_hold_costs_the_row(fault):
    reason = Reason.UNENCODABLE if fault is Fault.UNENCODABLE else Reason.REFERENCE_FAILS
    assert decided((1, fault)) == (reason, f"1 of 3 tests ({fault.value} 1), the first: remark 1")


@pytest.mark.parametrize("fault", KINDS)
def test_or_only_itself_where_that_is_asked_for(fault):
    assert remaining(decided((1, fault), drop_tests=True)) == (TESTS[:1], GOLDEN[:1])


def test_a_reference_none_of_whose_tests_holds_goes_in_any_case():
    every = [(place, Fault.INCORRECT_ASSERTION) for place in range(3)]
    assert decided(*every, drop_tests=True, min_tests=0)[0] is Reason.REFERENCE_FAILS
    unreadable = [(0, Fault.UNREADABLE), (1, Fault.RAISES), (2, Fault.INCORRECT_ASSERTION)]
    assert decided(*unreadable, drop_tests=True, min_tests=0)[0] is Reason.REFERENCE_FAILS
    assert remaining(decided(*every[:2], drop_tests=True, min_tests=0)) == ((), GOLDEN[:1])


@pytest.mark.parametrize("drop_tests", [False, True])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [(Fault.SLOW, Reason.REFERENCE_SLOW), (Fault.NONDETERMINISTIC, Reason.REFERENCE_NONDETERMINISTIC)],
)
def test_slow_and_flaky_references_always_go(fault, reason, drop_tests):
    assert decided((0, Fault.INCORRECT_ASSERTION), (2, fault), drop_tests=drop_tests)[0] is reason


def test_what_does_not_load_goes_first():
    decision = decided((0, Fault.RAISES), load_error="NameError: x", drop_tests=True)
    assert decision == (Reason.LOAD_FAILED, "NameError: x")


def test_tests_that_the_judge_cannot_read_cost_themselves_only():
    assert remaining(decided((0, Fault.UNREADABLE)))[0] == TESTS[1:2]


def test_golden_tests_do_not_count_towards_the_least_number():
    assert isinstance(decided(min_tests=2), Question)
    assert decided(min_tests=3)[0] is Reason.TOO_FEW_TESTS
    detail = "1 of 2 tests remain; the first that does not: remark 0"
    assert decided((0, Fault.UNREADABLE), min_tests=2) == (Reason.TOO_FEW_TESTS, detail)


def test_the_first_tests_that_hold_become_golden_where_a_row_has_none():
    assert decide(QUESTION, facts(), drop_tests=False, min_tests=1, num_golden=1).golden_tests == GOLDEN
    bare = replace(QUESTION, golden_tests=())
    decision = decide(bare, facts(), drop_tests=False, min_tests=1, num_golden=1)
    assert remaining(decision) == (TESTS[1:2], TESTS[:1])
    decision = decide(bare, facts(), drop_tests=False, min_tests=1, num_golden=2)
    detail = "0 tests of the form assert f(literals) == literal beside 2 golden ones"
    assert decision == (Reason.TOO_FEW_TESTS, detail)


def test_a_record_of_facts_gives_them_back():
    found = facts((1, Fault.SLOW), load_error="é")
    assert msgspec.convert(msgspec.to_builtins(found), ReferenceFacts) == found
    for damage in ({"num_tests": None}, {"faults": [[1]]}, {"faults": [[1, "odd", ""]]}):
        with pytest.raises((ValueError, TypeError)):
            msgspec.convert(msgspec.to_builtins(found) | damage, ReferenceFacts)
