"""Rows of TACO and APPS."""

import json

import pytest

from code_a1_recipe.data.asserts import asserts_of_pairs, readings
from code_a1_recipe.data.formats import from_taco
from code_a1_recipe.data.reader import check_row
from code_a1_recipe.errors import RowError

DOUBLE = "def double(x):\n    return 2 * x"


CASES = {"fn_name": "double", "inputs": [[1], [2]], "outputs": [2, 4]}


def taco_row(*solutions, **changes):
    fields = {
        "question": "Double a number.",
        "solutions": json.dumps(solutions or [DOUBLE]),
        "starter_code": "def double(x):\n\t",
        "input_output": json.dumps(CASES),
    }
    return fields | changes


def test_calls_become_asserts_and_the_starter_code_is_shown():
    question = check_row(from_taco(taco_row()))
    assert question.tests == ("assert double(1) == 2", "assert double(2) == 4")
    assert question.prompt == "Double a number.\n\nComplete this code:\n```python\ndef double(x):\n```"
    assert (question.reference, question.entry_points, question.data_source) == (DOUBLE, ("double",), "taco")
    assert question.id.startswith("TACO/")
    assert question.id != from_taco(taco_row(question="Double it.")).id


def test_apps_rows_have_an_id_and_may_lack_starter_code():
    native = from_taco(taco_row(problem_id=17, starter_code=""))
    assert (native.id, native.data_source) == ("APPS/17", "apps")
    assert native.prompt == "Double a number.\n\nName the function `double`."


def test_the_first_solution_that_is_python_3_and_defines_the_function_is_the_reference():
    solutions = ["def double(x):\n    print x", "def other(x): return x", DOUBLE.replace("\n", "\r\n"), "double = 3"]
    assert from_taco(taco_row(*solutions)).reference == DOUBLE


def test_a_method_of_solution_is_called_on_a_new_one():
    method = "class Solution:\n    def double(self, x: List[int]) -> int:\n        return 2 * x"
    question = check_row(from_taco(taco_row(method)))
    assert question.entry_points == ("Solution",)
    assert question.tests[0] == "assert Solution().double(1) == 2"
    assert "from typing import *" in question.prelude


def test_lists_that_were_read_already_are_taken_as_they_are():
    assert len(from_taco(taco_row(solutions=[DOUBLE], input_output=CASES)).tests) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"input_output": "{}", "solutions": '["print x"]'},
            "'solutions': none of 1 is Python 3 and fits fn_name=None",
        ),
        ({"input_output": "{"}, "'input_output': must be JSON"),
        ({"input_output": None}, "'input_output': must be JSON, got NoneType"),
        ({"input_output": "[]"}, "'input_output': must be a mapping"),
        ({"solutions": "[]"}, "'solutions': none of 0 is Python 3 and fits fn_name='double'"),
        ({"solutions": json.dumps(["class Solution:\n    pass", "print 1"])}, "'solutions': none of 2"),
        ({"question": None}, "'question': must be a string"),
    ],
)
def test_a_row_that_cannot_be_judged_names_the_column(changes, message):
    with pytest.raises(RowError, match=f"column {message}"):
        from_taco(taco_row(**changes))


@pytest.mark.parametrize(
    ("answers", "read"),
    [
        ([1, "a"], [[1, "a"]]),
        ([[3], [[4]]], [[3, [4]], [[3], [[4]]], [(3,), ([4],)], [[3], [(4,)]]]),
        ([[3], []], [[[3], []], [(3,), ()], [[3], []]]),
        ([{"1": 2}, {}], [[{"1": 2}, {}], [{1: 2}, {}]]),
        ([{"1": 2}, {"a": 2}], [[{"1": 2}, {"a": 2}]]),
    ],
)
def test_answers_are_unwrapped_where_each_is_a_list_of_one_then_as_they_stand_then_as_json_lost_them(answers, read):
    assert list(readings(answers)) == read


def test_other_solutions_and_readings_are_alternatives_and_few():
    cases = {"fn_name": "double", "inputs": [[1]], "outputs": [[2]]}
    method = "class Solution:\n    def double(self, x): return 0"
    native = from_taco(taco_row(DOUBLE, "print x", method, input_output=cases))
    assert [test for one in [native, *native.alternatives] for test in one.tests] == [
        f"assert {call}(1) == {answer}"
        for call in ("double", "Solution().double")
        for answer in ("2", "[2]", "(2,)", "[2]")
    ]
    assert len(from_taco(taco_row(*[DOUBLE] * 500, input_output=cases)).alternatives) == 11


def test_calls_that_cannot_be_written_are_counted():
    nan, inf = float("nan"), float("inf")
    assert asserts_of_pairs("f", [[nan], "ab", [inf], [1]], [1, 2, 3]) == (["assert f(float('inf')) == 3"], 3)
