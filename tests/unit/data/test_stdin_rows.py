"""Rows of problems whose programs read standard input: native, CodeContests and TACO."""

import json

import pytest

from code_a1_recipe.data.reader import check_row, row_reader
from code_a1_recipe.data.stdin_rows import MAX_ASSERT_CHARS, input_asserts
from code_a1_recipe.errors import RowError

SUM = "print(sum(map(int, input().split())))"
NATIVE = {"id": "sum", "prompt": "Add.", "reference": SUM, "inputs": ["1 2\n", "3"], "outputs": ["3\n", "3"]}
TESTS = ("assert run('1 2\\n') == '3\\n'", "assert run('3') == '3'")
CODE_CONTESTS = {
    "name": "1_A. Sum",
    "description": "Add the numbers.",
    "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
    "private_tests": {"input": ["3"], "output": ["3"]},
    "generated_tests": {"input": ["4 4", "9" * MAX_ASSERT_CHARS], "output": ["8", "9"]},
    "solutions": {"language": [2, 3, 3, 3], "solution": ["int main", "print 1", SUM, "print(0)"]},
    "incorrect_solutions": {"language": [3, 1, 3], "solution": ["print(1)", "print 1", "print(2)"]},
}


def question_of(row):
    return check_row(row_reader(row.keys(), where="test").native(row))


def test_native_rows_with_inputs_are_of_kind_stdin():
    question = question_of(NATIVE)
    assert (question.kind, question.checker, question.tests, question.entry_points) == ("stdin", "decimals", TESTS, ())
    assert question_of(NATIVE | {"checker": "floats:1e-3"}).checker == "floats:1e-3"
    assert question_of(NATIVE | {"tests": ["assert run('9') == '9'"]}).tests == ("assert run('9') == '9'", *TESTS)


def test_the_reference_of_such_a_row_need_not_define_anything():
    assert question_of(NATIVE | {"inputs": [], "outputs": []}).tests == ()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (NATIVE | {"outputs": ["3"]}, "'outputs': must be as many as the inputs, 2, got 1"),
        (NATIVE | {"outputs": None}, "'outputs': must be a list of strings"),
        (NATIVE | {"inputs": "1 2"}, "'inputs': must be a list of strings"),
        (NATIVE | {"inputs": [1, 2]}, "'inputs': must hold strings only"),
        (NATIVE | {"inputs": None, "outputs": None}, "'reference': must define a function"),
        (NATIVE | {"kind": "shell"}, "'kind': must be one of functions, stdin, in_place, got 'shell'"),
        (NATIVE | {"checker": "float"}, "'checker': unknown checker 'float'"),
        (NATIVE | {"checker": "floats:-1"}, "'checker': unknown checker 'floats:-1'"),
        (NATIVE | {"checker": "tokens:1"}, "'checker': unknown checker 'tokens:1'"),
        (NATIVE | {"checker": "floats", "kind": "in_place"}, "'checker': unknown checker 'floats' for kind in_place"),
        (NATIVE | {"entry_points": ["solve"]}, "'entry_points': must be names that the reference defines"),
        (CODE_CONTESTS | {"solutions": {"language": [2], "solution": ["int main"]}}, "'solutions'"),
        (CODE_CONTESTS | {"solutions": None}, "'solutions'"),
        (CODE_CONTESTS | {"public_tests": [1]}, "'public_tests'"),
        (CODE_CONTESTS | {"description": 1}, "'description'"),
    ],
)
def test_a_row_that_breaks_a_rule_names_its_column(row, message):
    with pytest.raises(RowError, match=f"column {message}"):
        question_of(row)


def test_code_contests():
    reader = row_reader(CODE_CONTESTS.keys(), where="test")
    native = reader.native(CODE_CONTESTS)
    question = check_row(native)
    assert (reader.adapter, native.num_dropped_tests, question.kind) == ("codecontests", 1, "stdin")
    assert (question.id, question.prompt, question.reference) == ("1_A. Sum", "Add the numbers.", SUM)
    assert (question.golden_tests, question.tests) == (TESTS[:1], (TESTS[1], "assert run('4 4') == '8'"))
    assert question.buggy_programs == ("print(1)", "print(2)")
    others = [f"print({number})" for number in range(6)]
    several = CODE_CONTESTS | {"solutions": {"language": [3] * 7, "solution": [SUM, *others]}}
    assert [one.reference for one in reader.native(several).alternatives] == others[:4]


def test_taco_without_a_function_reads_standard_input():
    cases = {"inputs": [["1 2"], "3", 4], "outputs": [["3"], "3", "4"]}
    row = {"question": "Add.", "solutions": json.dumps(["print 1", SUM]), "starter_code": ""}
    native = row_reader({*row, "input_output"}, where="test").native(row | {"input_output": json.dumps(cases)})
    question = check_row(native)
    assert (question.kind, question.reference, native.num_dropped_tests) == ("stdin", SUM, 1)
    assert question.tests == ("assert run('1 2') == '3'", "assert run('3') == '3'")


def test_equal_pairs_are_one_test_and_what_is_no_text_is_counted():
    assert input_asserts(["1", "1", b"2"], ["1", "1", "2"]) == (["assert run('1') == '1'"], 2)
