"""Rows S80 to S99: what the static gate accepts, what it refuses and why, and which cases are duplicates."""

import pytest

from code_a1_recipe.algorithm.book_update import collect_book_update
from code_a1_recipe.algorithm.mistake_book import MistakeBook
from sandbox import Rejection
from sandbox.text import Case, Interface, parse_assert

REFERENCE = """
def f(n, k=2, *, flag=False):
    return n

class Stack:
    def __init__(self, items=()):
        self.items = list(items)
    def push(self, item):
        self.items.append(item)
        return self
    def add(self, item):
        self.items.append(item)
    def pop(self):
        return self.items.pop()
"""
INTERFACE = Interface.of(REFERENCE)
READERS = ("list", "tuple", "set", "frozenset", "dict", "sorted", "len", "sum", "min", "max", "abs", "round", "float")


def accepted(*texts):
    cases = [parse_assert(text, INTERFACE) for text in texts]
    assert [case for case in cases if not isinstance(case, Case)] == []
    return cases


def refused(reason, *texts):
    rejections = [parse_assert(text, INTERFACE) for text in texts]
    assert [one for one in rejections if not isinstance(one, Rejection) or one.reason.value != reason] == []


def test_s80_a_case_is_one_equality_of_a_call_and_a_literal():
    (case,) = accepted("assert f(1) == [1, {'a': (None, True)}], 'a message'")
    assert (case.call.text, case.expected) == ("f(1)", "[1, {'a': (None, True)}]")


def test_s81_forms_that_say_the_same_are_cases_and_other_conditions_are_refused():
    same = {
        "None": ["f(1) is None"],
        "True": ["f(1)", "(f(1)), 'a message'"],
        "False": ["not f(1)"],
        "0.5": ["isclose(f(1), 0.5)", "f(1) == approx(0.5)", "abs(f(1) - 0.5) < 1e-3", "abs(f(1) - 0.5) <= 1e-3"],
        "[0.5]": ["math.isclose(f(1), [0.5], rel_tol=1e-3)", "f(1) == pytest.approx([0.5], abs=1e-3)"],
        "2.5": ["self.assertAlmostEqual(f(1), 2.5)"],
    }
    for expected, conditions in same.items():
        (plain, *cases) = accepted(*(f"assert {text}" for text in (f"f(1) == {expected}", *conditions)))
        for case in cases:
            assert (case.call, case.expected, case.expected_value) == (plain.call, expected, plain.expected_value)
    refused("not_an_equality", "assert f(1) != 2", "assert f(1) > 0", "assert not f(1) == 1", "assert f(1) is not None")
    refused("not_an_equality", "assert f(1) == 1 == 1", "assert f(1) == 1 or f(2) == 2")


def test_s82_the_call_stands_on_either_side():
    (case,) = accepted("assert 1 == f(1)")
    assert (case.call.text, case.expected) == ("f(1)", "1")
    refused("no_call", "assert 1 == 1")


def test_no_builtin_takes_the_place_of_a_missing_function(outcomes):
    reference = "def sum(xs): return 0\ndef f(): return sum([])"
    asserts = ("assert sum([]) == 0", "assert f() == 0")
    assert outcomes(reference, "def f(): return sum([])", *asserts) == ["raised", "passed"]


def test_s83_only_entry_points_of_the_question_are_called():
    refused(
        "no_call", "assert g(1) == 1", "assert len([1]) == 1", "assert f(1) + 1 == 2", "assert (lambda: f(1))() == 1"
    )


def test_s84_arguments_are_literals_and_constant_arithmetic():
    accepted(
        "assert f(10 ** 5) == 1", "assert f([0] * 3 + [1], k=-1) == 1", "assert f(deque([1]), Decimal('1.5')) == 1"
    )
    refused(
        "argument_not_literal", "assert f(x) == 1", "assert f(f(1)) == 1", "assert f(*[1]) == 1", "assert f(f'') == 1"
    )
    refused("argument_not_literal", "assert f([i for i in 'ab']) == 1", "assert f(lambda: 1) == 1")
    refused("argument_not_literal", "assert f((x := 1)) == 1", "assert f(__import__('os').getpid()) == 1")


def test_s85_a_claim_is_a_literal_or_an_integer_written_with_a_power():
    accepted("assert f(1) == -(2 ** 63)", "assert f(1) == 10 ** 9 + 7", "assert f(1) == [3 * 10 ** 5, 2 ** 20000 - 1]")
    refused("expected_not_literal", "assert f(1) == 2 + 3", "assert f(1) == 1 / 3", "assert f(1) == [0] * 3")
    refused("expected_not_literal", "assert f(1) == f(1)", "assert f(1) == sum([1])", "assert f(1) == mock.ANY")


def test_s86_a_result_may_be_read_with_a_subscript_or_one_of_these_builtins():
    accepted(*(f"assert {name}(f(1)) == 1" for name in READERS))
    accepted("assert f(1)[0] == 1", "assert sorted(f(1), reverse=True) == 1", "assert round(f(1), 2) == 1")


def test_s87_a_read_that_says_little_about_the_result_is_refused():
    refused("no_call", "assert f(1)[:0] == []", "assert str(f(1)) == '1'", "assert max(f(1), 10 ** 30) == 1")
    refused("no_call", "assert f(1).imag == 0", "assert round(f(1), -30) == 0", "assert bool(f(1)) == True")


def test_s88_int_of_a_result_is_refused():
    refused("no_call", "assert int(f(2.5)) == 2", "assert int(f('0'), 16) == 0")


def test_s89_a_method_without_a_result_is_refused_where_the_object_has_more_to_show():
    refused("no_call", "assert Stack([1]).add(2) == None")
    accepted("assert Stack([1]).push(2).items == [1, 2]")
    alone = Interface.of("class Solution:\n    def rotate(self, xs):\n        xs.reverse()\n")
    assert isinstance(parse_assert("assert Solution().rotate([1]) == None", alone), Case)


def test_s90_private_names_are_refused():
    refused("no_call", "assert f(1).__class__ == 1", "assert Stack([1])._items == 1")


def test_s91_an_assert_beyond_its_length_is_refused_unread():
    refused("unparsable", "assert f('" + "a" * 70_000 + "') == 1", "f(1) == 1", "assert f(1) == 1; f(2)", "assert f(")


@pytest.mark.parametrize("spelling", ["f(+1)", "f(0x1)", "f(n=1)", "f(2 - 1)", "f( 1 )"])
def test_s92_spellings_of_one_call_have_one_canonical_text(spelling):
    (case,) = accepted(f"assert {spelling} == 1")
    assert case.call.text == "f(1)"


@pytest.mark.parametrize("spelling", ["f(1.0)", "f(True)", "f(1, 2)", "f(flag=False, n=1)", "list(f(1))", "f(1)[0]"])
def test_s93_number_type_defaults_and_the_read_stay_in_the_text_and_do_not_count(spelling):
    one, other = accepted("assert f(1) == 1", f"assert {spelling} == 1")
    assert one.call.text != other.call.text
    assert one.key == other.key


def test_s94_a_repeated_call_in_a_suite_is_a_duplicate_unless_the_reference_tells_them_apart(ask):
    texts = [
        "assert f(1) == 1",
        "assert f(n=0x1) == 2",
        "assert f(1.0) == 1",
        "assert abs(f(1)) == 1",
        "assert f(2) == 1",
    ]
    (suite,) = ask(REFERENCE, REFERENCE, *texts).suites
    assert [case.call for case in suite.cases] == ["f(1)", "abs(f(1))", "f(2)"]
    assert [one.reason.value for one in suite.rejections] == ["duplicate"] * 2
    assert [case.family == suite.cases[0].family for case in suite.cases] == [True, True, False]
    (suite,) = ask("def f(n): return type(n) is int", "def f(n): return True", *texts[:3]).suites
    assert [(case.call, case.outcome.value) for case in suite.cases] == [("f(1)", "passed"), ("f(1.0)", "wrong_value")]
    assert len({case.family for case in suite.cases}) == 2


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("reference", "wrong", "texts"),
    [
        ("[n, n + 1]", "[0, 0]", ["len(f(2)) == 2", "f(2) == [2, 3]"]),
        ("[n, n + 1]", "[n, n]", ["f(2)[0] == 2", "f(2)[1] == 3"]),
        ("[n, 1]", "[1, n]", ["sorted(f(2)) == [1, 2]", "f(2) == [2, 1]"]),
        ("type(n) is int", "True", ["f(3) == True", "f(3.0) == False"]),
        ("n", "int(n)", ["f(3) == 3", "f(True) == True", "f(2.5) == 2.5"]),
    ],
)
def test_s98_each_test_of_a_data_set_counts(ask, reference, wrong, texts, order):
    asserts = [f"assert {text}" for text in texts][::order]
    program = "def f(n): return {}"
    (suite,) = ask(program.format(reference), program.format(wrong), *asserts, *asserts, given=True).suites
    assert len(suite.cases) == len(texts)
    assert suite.num_failed == 1
    assert [one.reason.value for one in suite.rejections] == ["duplicate"] * len(texts)


def test_s95_a_incorrect_assertion_is_a_valid_case(ask):
    case = ask(REFERENCE, REFERENCE, "assert f(3) == 4").suites[0].cases[0]
    assert (case.reference_value, case.expected_correct, case.outcome.value) == ("3", False, "passed")


def test_s96_a_replay_counts_a_call_once(ask):
    verdict = ask(REFERENCE, REFERENCE, history=("f(3)", "f(n=3)", "abs(f(3))", "f(4)"))
    assert [case.call for case in verdict.history] == ["f(3)", "abs(f(3))", "f(4)"]
    assert [one.reason.value for one in verdict.dropped_history] == ["duplicate"]


def test_s97_the_mistake_book_knows_a_call_by_its_key(ask):
    wrong = "def f(n, k=2, *, flag=False):\n    return 0\n"
    book = MistakeBook()
    for text in ("f(3, 2)", "f(n=3)", "f(1 + 2)", "f(3.0)", "round(f(3))"):
        book_update = collect_book_update([ask(REFERENCE, wrong, f"assert {text} == 3")])
        book.update("q", book_update)
    assert [(entry.call, entry.frequency) for entry in book.entries("q")] == [("f(3, 2)", 5)]
    book_update = collect_book_update([ask(REFERENCE, REFERENCE, history=("f(3, 2)",))])
    book.update("q", book_update)
    assert book.entries("q")[0].frequency == 4
