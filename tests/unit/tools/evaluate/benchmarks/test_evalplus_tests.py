"""Rows of HumanEval+ and MBPP+ as problems; their references run in the sandbox."""

from collections import Counter
from dataclasses import replace

import pytest

from code_a1_recipe.errors import InputError
from code_a1_recipe.files import json_lines
from code_a1_recipe.tools.evaluate.benchmarks import evalplus
from code_a1_recipe.tools.evaluate.benchmarks.evalplus import (
    EVALPLUS_LIMITS,
    Comparison,
    EvalPlusProblem,
    prepare,
    read_problem,
    read_problems,
)
from sandbox.text import decode, encode

LISTED = """
def check({name}):
    inputs = {inputs}
    results = {results}
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion({called}(*inp), exp, {atol})
"""
COMPUTED = """
def ref_func(x):
    return x
def check(candidate):
    inputs = {inputs}
    for i, inp in enumerate(inputs):
        assertion(candidate(*inp), ref_func(*inp), 0)
"""


def row(test, *, question_id="MBPP/8", code="def f(x):\n    return x + 1\n", name="f"):
    info = {"question_id": question_id, "function_name": name, "imports": "import re"}
    return {"problem": "def f(x):\n", "GT_code": code, "test": test, "extra_info": info}


def listed(inputs, results, *, called="f", atol="0", name="f"):
    return LISTED.format(inputs=inputs, results=results, called=called, atol=atol, name=name)


def read(inputs="[[1]]", results="[2]", *, called="f", atol="0", candidate="f", **columns):
    return read_problem(row(listed(inputs, results, called=called, atol=atol, name=candidate), **columns))


def computed(inputs, returned):
    """A problem whose reference computes the results."""
    return read_problem(row(COMPUTED.format(inputs=inputs), code=f"def f(x):\n    return {returned}\n"))


GOOD = row(listed("[[1]]", "[2]"))


def test_listed_inputs_and_results_become_calls_and_encoded_answers():
    problem = read("[[1], [[2, 'a']]]", "[2, (3, None)]")
    assert problem.calls == ("f(1)", "f([2, 'a'])")
    assert problem.expected == (encode(2), encode((3, None)))
    assert (problem.id, problem.dataset, problem.entry_point) == ("MBPP/8", "mbpp", "f")
    assert (problem.comparison, problem.atol) == (Comparison.VALUE, 0.0)
    assert problem.arguments(1) == [[2, "a"]]


def test_infinity_is_read_among_inputs_and_results():
    problem = read("[[inf], [-inf]]", "[[inf], float('inf')]")
    assert [problem.arguments(index) for index in (0, 1)] == [[float("inf")], [-float("inf")]]
    assert [decode(value) for value in problem.expected] == [[float("inf")], float("inf")]


def test_a_body_continues_the_prompt_and_a_whole_program_replaces_it():
    body = read(called="candidate", candidate="candidate", code="    return x + 1\n")
    assert body.reference == "def f(x):\n    return x + 1\n"
    assert read_problem(GOOD).reference == "def f(x):\n    return x + 1\n"


def test_check_is_believed_where_it_calls_another_function_than_the_row_names():
    code = "def helper(x):\n    return x\ndef g(x):\n    return helper(x)\n"
    assert read(called="g", code=code, name="helper").calls == ("g(1)",)


def test_the_tolerance_is_what_assertion_is_given():
    assert read(results="[2.0]", atol="0.0001").atol == 1e-4
    root = """
def check(candidate):
    inputs = [[[1, 2]]]
    results = [-0.5]
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assert _poly(*candidate(*inp), inp) <= 0.0001
"""
    problem = read_problem(row(root, question_id="HumanEval/32", name="find_zero"))
    assert (problem.atol, problem.comparison, problem.calls) == (1e-4, Comparison.ROOT, ("find_zero([1, 2])",))


@pytest.mark.parametrize(
    ("question_id", "name", "comparison"),
    [
        ("MBPP/2", "similar_elements", Comparison.SET),
        ("HumanEval/2", "similar_elements", Comparison.VALUE),
        ("MBPP/737", "check_str", Comparison.NOT_NONE),
        ("MBPP/164", "are_equivalent", Comparison.ANYTHING),
        ("MBPP/295", "sum_div", Comparison.VALUE_OR_ZERO),
        ("MBPP/558", "digit_distance_nums", Comparison.VALUE_OR_PADDED_DIGITS),
        ("MBPP/581", "surface_Area", Comparison.VALUE_OR_PYRAMID),
    ],
)
def test_some_functions_are_compared_by_an_oracle_of_their_own(question_id, name, comparison):
    assert read(called=name, question_id=question_id, name=name).comparison is comparison


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (row("x = 1"), "column 'test': must define check() with a list called 'inputs'"),
        (row("def ("), "column 'test': must be Python 3"),
        (row(listed("[[1], [2]]", "[2]")), "has 2 inputs but 1 results"),
        (row(listed("[[g(1)]]", "[2]")), "holds 'g(1)': a call of g is not a literal"),
        (row(listed("[1]", "[2]")), "every input must be a list of arguments, got '1'"),
        (row(listed("[[1]]", "[2]"), question_id="Other/1"), "must begin with HumanEval/ or MBPP/, got 'Other/1'"),
        (GOOD | {"extra_info": None}, "must be a mapping with 'function_name'"),
        (GOOD | {"GT_code": 3}, "column 'GT_code': must be a string, got int"),
    ],
)
def test_a_row_that_is_no_problem_is_refused_with_its_place_rule_and_cure(broken, words, tmp_path):
    path = tmp_path / "file.jsonl"
    path.write_text(json_lines([GOOD, broken]))
    with pytest.raises(InputError) as caught:
        read_problems(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{path}: row 1, column")
    assert str(caught.value).endswith("correct the row or remove it")


def test_a_file_without_the_columns_is_refused(tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text('{"problem": "p"}\n')
    with pytest.raises(InputError, match=r"needs the columns \['GT_code', 'extra_info', 'test'\]"):
        read_problems(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_problems(tmp_path / "none.parquet")


def test_the_reference_answers_where_no_results_are_listed(runner):
    problem = computed("[[1], [[1.5]]]", "[x]")
    assert (problem.expected, problem.is_prepared) == ((), False)
    prepared = prepare(problem, runner)
    assert [decode(value) for value in prepared.expected] == [[1], [[1.5]]]
    assert prepared.is_prepared
    assert len(prepared.reference_cpu_seconds) == 2


def test_listed_results_stay_whatever_the_reference_says(runner):
    prepared = prepare(read(results="[5]"), runner)
    assert [decode(value) for value in prepared.expected] == [5]
    assert prepared.is_prepared


def test_an_input_with_a_longer_answer_than_is_read_is_left_out(runner, monkeypatch):
    monkeypatch.setattr(evalplus, "EVALPLUS_LIMITS", replace(EVALPLUS_LIMITS, value_bytes=1000))
    problem = computed("[[1], [5000], [2]]", "'a' * x")
    prepared = prepare(problem, runner)
    assert prepared.calls == ("f(1)", "f(2)")


def test_a_reference_that_does_not_load_or_answer_is_refused(runner):
    with pytest.raises(InputError, match="MBPP/8: the reference does not load: NameError"):
        prepare(read(code="boom\ndef f(x):\n    return x\n"), runner)
    with pytest.raises(InputError, match="answers no call"):
        prepare(computed("[[1]]", "1 / 0"), runner)


@pytest.mark.nightly
@pytest.mark.shared
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_all_problems_of_both_sets_are_read(shared_dir):
    problems = read_problems(shared_dir / "data" / "evalplus_humaneval_mbpp.parquet")
    assert Counter(problem.dataset for problem in problems) == {"humaneval": 164, "mbpp": 378}
    assert sum(len(problem.calls) for problem in problems) == 164_615
    assert Counter(problem.atol for problem in problems) == {0.0: 526, 1e-4: 14, 1e-6: 2}
    assert Counter(problem.comparison for problem in problems) == {
        Comparison.VALUE: 529,
        Comparison.SET: 7,
        Comparison.NOT_NONE: 3,
        Comparison.ROOT: 1,
        Comparison.VALUE_OR_PADDED_DIGITS: 1,
        Comparison.VALUE_OR_PYRAMID: 1,
    }
    without_results = [problem.id for problem in problems if not problem.expected]
    assert without_results == [
        *(f"HumanEval/{number}" for number in (14, 15, 83, 100, 130, 139)),
        *(f"MBPP/{number}" for number in (88, 255, 630)),
    ]
    assert all(isinstance(problem, EvalPlusProblem) and problem.prompt for problem in problems)
