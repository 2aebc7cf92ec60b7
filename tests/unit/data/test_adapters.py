import ast
import json

import pytest

from code_a1_recipe.data.asserts import LOOSE, asserts_in
from code_a1_recipe.data.formats import NODES
from code_a1_recipe.data.reader import read_questions
from code_a1_recipe.errors import InputError


@pytest.fixture
def load_row(tmp_path):
    """Load one row with the detected adapter; returns the file and its only question."""

    def load(row):
        path = tmp_path / "data.jsonl"
        path.write_text(json.dumps(row))
        loaded = read_questions(path)
        return loaded, loaded.questions[0]

    return load


def mbpp_row(**changes):
    fields = {
        "task_id": 3,
        "text": "Write a function to add.",
        "code": "def help(): pass\r\ndef add(a, b=2):\r\n    return a + b",
        "test_list": ["assert add(1) == 3", "assert set(add(1, 2)) == {3}", "assert add(1, b=1) == 2"],
    }
    return fields | changes


def humaneval_row(test):
    return {
        "task_id": "HumanEval/0",
        "prompt": "def add(a):\n    '''Add one.'''\n",
        "entry_point": "add",
        "canonical_solution": "    return a + 1\n",
        "test": f"def check(candidate):\n{test}",
    }


def leetcode_row(test):
    return {
        "task_id": "two-sum",
        "query": "Add two.",
        "prompt": "from typing import *\n",
        "completion": "class Solution:\n    def add(self, a: List[int]) -> int:\n        return sum(a)\n",
        "entry_point": "Solution().add",
        "test": f"def check(candidate):\n{test}",
    }


def evalplus_row(assertion="    assert out == exp", code="def f(a, b):\n    return a", **changes):
    fields = {
        "problem": 'def f(a, b):\n    """First."""\n',
        "GT_code": code,
        "test": f"import numpy as np\ndef assertion(out, exp, atol):\n{assertion}\n"
        "def check(candidate):\n    inputs = [[1, 'x'], [inf, -2], [nan, 1]]\n    results = [1, inf, 3]\n"
        "    for i, (inp, exp) in enumerate(zip(inputs, results)):\n"
        "        assertion(candidate(*inp), exp, 0)\n",
        "extra_info": {"function_name": "f", "imports": "import math", "question_id": "MBPP/9"},
        "data_source": "mbppplus",
    }
    return fields | changes


EVALPLUS_TEST = evalplus_row()["test"]
COMPUTED = EVALPLUS_TEST.replace("results = [1, inf, 3]", "pass").replace(", results", ", inputs")
ROWS = {
    "the prompt of MBPP names the function, and literal asserts are kept": (
        mbpp_row(),
        ("mbpp", 0),
        {
            "id": "MBPP/3",
            "prompt": "Write a function to add.\n\nName the function `add(a, b=2)`.",
            "reference": "def help(): pass\ndef add(a, b=2):\n    return a + b",
            "entry_points": ("add",),
            "tests": ("assert add(1) == 3", "assert set(add(1, 2)) == {3}", "assert add(1, b=1) == 2"),
        },
    ),
    "the sanitized MBPP calls its statement prompt": (
        {"task_id": 2, "prompt": "Add one.", "code": "def f(x): return x", "test_list": ["assert f(1) == 1"]},
        ("mbpp_sanitized", 0),
        {"id": "MBPP/2", "prompt": "Add one.\n\nName the function `f(x)`."},
    ),
    "HumanEval joins prompt and body, and the candidate gets its name": (
        humaneval_row(
            "    assert candidate(1) == 2\n    assert True\n    assert abs(candidate(1) - 2) < 1e-6\n"
            "    assert candidate(2)\n"
        ),
        ("humaneval", 0),
        {
            "reference": "def add(a):\n    '''Add one.'''\n    return a + 1\n",
            "tests": ("assert add(1) == 2", f"assert add(1) == 2{LOOSE}", f"assert add(2) == True{LOOSE}"),
        },
    ),
    "LeetCode calls the method of a solution, and its imports stay apart": (
        leetcode_row(
            "    assert candidate(a = [1,2]) == 3\n    assert is_same(candidate(a = [1]), 1)\n"
            "    assert candidate(a = [b]) == 1\n"
        ),
        ("leetcode", 2),
        {
            "prompt": "Add two.",
            "prelude": "from typing import *\n",
            "entry_points": ("Solution",),
            "tests": ("assert Solution().add(a=[1, 2]) == 3",),
        },
    ),
    "lists and trees of nodes stay, and the prompt says how they are written": (
        leetcode_row(
            "    assert is_same_list(candidate(a = list_node([2,4])), list_node([7]))\n"
            "    assert is_same_tree(candidate(a = tree_node([1,None,2])), tree_node([]))\n"
            "    assert is_same_list(candidate(a = list_node(x)), list_node([7]))\n"
        ),
        ("leetcode", 1),
        {
            "prompt": f"Add two.\n\n{NODES}",
            "tests": (
                "assert Solution().add(a=list_node([2, 4])) == list_node([7])",
                "assert Solution().add(a=tree_node([1, None, 2])) == None",
            ),
        },
    ),
    "EvalPlus pairs inputs and results, and infinity is a literal": (
        evalplus_row(),
        ("evalplus", 1),
        {
            "id": "MBPP/9",
            "prelude": "import math",
            "data_source": "mbppplus",
            "reference": "def f(a, b):\n    return a",
            "tests": ("assert f(1, 'x') == 1", "assert f(float('inf'), -2) == float('inf')"),
        },
    ),
    "an EvalPlus body continues the problem": (
        evalplus_row(code="    return a\n"),
        ("evalplus", 1),
        {"reference": 'def f(a, b):\n    """First."""\n    return a\n'},
    ),
    "an EvalPlus row that compares sets keeps no tests": (
        evalplus_row("    assert set(out) == set(exp)"),
        ("evalplus", 3),
        {"tests": ()},
    ),
    "an EvalPlus row that computes results keeps no tests": (
        evalplus_row(test=COMPUTED),
        ("evalplus", 3),
        {"tests": ()},
    ),
    "an EvalPlus test knows the name of the function": (
        evalplus_row(code="def helper(): pass\ndef g(a, b): return a", test=EVALPLUS_TEST.replace("candidate", "g")),
        ("evalplus", 1),
        {"entry_points": ("g",)},
    ),
    "KodCode has literal asserts in pytest functions": (
        {
            "question_id": "Prefill_1",
            "question": "Add one.",
            "solution": "def add(a): return a + 1",
            "test": "from solution import add\n\ndef test_one():\n    assert add(1) == 2\n"
            "def test_two():\n    x = 3\n    assert add(x) == 4\n",
        },
        ("kodcode", 0),
        {
            "prompt": "Add one.\n\nDeclare `def add(a):`.",
            "tests": ("assert add(1) == 2", f"assert add(3) == 4{LOOSE}"),
        },
    ),
    "UnLeakedTestBench may have its list as a text": (
        {
            "task_id": "10",
            "func_name": "add",
            "prompt": "Adds.",
            "code": "def add(a): return a + 1",
            "test_list": "['assert add(1) == 3', 'assert add(x) == 1']",
        },
        ("unleaked", 1),
        {"tests": ("assert add(1) == 3",)},
    ),
}


@pytest.mark.parametrize("rule", ROWS)
def test_a_row_of_each_format_becomes_a_question(load_row, rule):
    row, counts, columns = ROWS[rule]
    loaded, question = load_row(row)
    assert (loaded.adapter, loaded.num_dropped_tests) == counts
    assert {name: getattr(question, name) for name in columns} == columns


@pytest.mark.parametrize("line", ["inputs = [1, 2]", "results = 'inputs = [1]'", "if True: inputs = [1]"])
def test_a_list_of_inputs_alone_makes_no_evalplus_row(load_row, line):
    _, question = load_row(humaneval_row(f"    {line}\n    assert candidate(1) == 2\n"))
    assert question.tests == ("assert add(1) == 2",)


def test_mbpp_without_a_test_that_calls_the_reference_is_refused(load_row):
    with pytest.raises(InputError, match=r"row 0, column 'test_list': no test calls .*\['sub'\]"):
        load_row(mbpp_row(test_list=["assert sub(1) == 3"]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"extra_info": {}}, "column 'extra_info': must be a mapping with 'function_name'"),
        ({"test": "def check(:"}, "column 'test': must be Python 3"),
        ({"test": "x = 1"}, r"column 'test': must define check\(\)"),
        ({"GT_code": None}, "column 'GT_code': must be a string, got nothing"),
    ],
)
def test_a_bad_evalplus_row_is_named(load_row, changes, words):
    with pytest.raises(InputError, match=words):
        load_row(evalplus_row(**changes))


WRITTEN = """
import pytest, math
xs = [3, 1]
result = add(xs)
print(result)
assert result == [1, 3]
change(xs)
assert xs == [1, 3]
assert 5 == add(2)
assert add(1) is True
assert not add(2)
assert add(3, 4)
assert math.isclose(add(1), 0.5, rel_tol=1e-3)
assert add(1) == pytest.approx(0.5)
assert abs(add(1) - inf) < 1e-6
assert set(add(1)) == set((1, 2))
assert add([0] * 3) == 10 ** 2
assert add(1) > 3
assert add(unknown) == 3
assert other(1) == 1
class TestAdd(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2), 3)
        self.assertTrue(add(2) == 5)
        self.assertFalse(add(2))
        for x in (1, 2):
            self.assertEqual(add(x), 3)
"""


WANTED = """\
assert add([3, 1]) == [1, 3] ~
assert add(2) == 5
assert add(1) == True ~
assert add(2) == False ~
assert add(3, 4) == True ~
assert add(1) == 0.5 ~
assert add(1) == 0.5 ~
assert add(1) == float('inf') ~
assert set(add(1)) == {1, 2}
assert add([0, 0, 0]) == 100
assert add(2) == 3
assert add(2) == 5
assert add(2) == False ~
assert add(1) == 3 ~
assert add(2) == 3 ~"""


def test_tests_of_every_form_are_calls_and_values_and_the_reading_is_marked_where_it_is_one():
    found = asserts_in(ast.parse(WRITTEN), {"add", "change"})
    assert found["num_dropped_tests"] == 4
    assert "\n".join(found["tests"]).replace(LOOSE, " ~") == WANTED


def test_tests_below_any_statement_count_and_what_grows_or_cannot_be_written_does_not():
    source = "try:\n    pass\nexcept E:\n    assert f(1) == 1\nelse:\n    assert f(2) == 2\n"
    assert asserts_in(ast.parse(source), {"f"})["tests"] == ["assert f(1) == 1", "assert f(2) == 2"]
    doubling = (
        "s = [1]\n" + "s = [s, s]\n" * 40 + "assert f(s) == 1\nassert f(**{'x': 1}) == 2\nx = " + "+".join("1" * 900)
    )
    assert asserts_in(ast.parse(doubling), {"f"}) == {"tests": [], "num_dropped_tests": 2}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"reference": None}, "column 'reference': must be a string, got nothing"),
        ({"reference": 3}, "column 'reference': must be a string, got int"),
        ({"reference": "```text\nhello\n```"}, "column 'reference': must be Python 3"),
    ],
)
def test_asserts_in_one_text_beside_a_bad_reference_are_refused_in_a_line(load_row, changes, rule):
    row = {"id": "a", "prompt": "Add.", "reference": "def f(x): return x", "tests": "assert f(1) == 1\nassert f(2) > 1"}
    with pytest.raises(InputError, match=rule):
        load_row(row | changes)
    loaded, question = load_row(row)
    assert (question.tests, loaded.num_dropped_tests) == (("assert f(1) == 1",), 1)
    stdin = {"kind": "stdin", "reference": "print(input())", "tests": "assert run('3\\n') == '3\\n'"}
    assert len(load_row(row | stdin)[1].tests) == 1
