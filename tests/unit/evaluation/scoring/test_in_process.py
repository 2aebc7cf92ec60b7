"""HumanEval, LeetCodeDataset and MBPP with all of their tests, in the program's own process."""

import gzip
import json

import pytest

from code_a1_recipe.cli.app import main
from code_a1_recipe.errors import InputError
from code_a1_recipe.evaluation.results import Results
from code_a1_recipe.evaluation.scoring.in_process import check_tasks
from sandbox import LocalRunner, SandboxUnavailableError

from ..stand_in_endpoint import StandInEndpoint

HUMANEVAL = {
    "task_id": "HumanEval/900",
    "prompt": "import math\nfrom typing import List\n\n\ndef value(xs: List[float], x: float) -> float:\n"
    "    return sum(c * x**i for i, c in enumerate(xs))\n\n\n"
    'def root(xs: List[float]) -> float:\n    """A root of the line xs[0] + xs[1] * x."""\n',
    "entry_point": "root",
    "canonical_solution": "    return -xs[0] / xs[1]\n",
    "test": "def check(candidate):\n    for xs in ([1, 2], [3, 7], [-5, 3]):\n"
    "        assert math.fabs(value(xs, candidate(xs))) < 1e-9, xs\n",
}
NODES = """from typing import *

class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next

def list_node(values):
    head = None
    for value in reversed(values):
        head = ListNode(value, head)
    return head

def is_same_list(p, q):
    while p and q and p.val == q.val:
        p, q = p.next, q.next
    return p is None and q is None
"""
LEETCODE = {
    "task_id": "drop-first",
    "query": "Drop the first node of a list.",
    "prompt": NODES,
    "completion": "class Solution:\n    def drop(self, head: Optional[ListNode]) -> Optional[ListNode]:\n"
    "        return head.next\n",
    "entry_point": "Solution().drop",
    "test": "def check(candidate):\n    assert is_same_list(candidate(head = list_node([1,2,3])), list_node([2,3]))\n"
    "    assert is_same_list(candidate(head = list_node([1])), list_node([]))\n",
}
MBPP = {
    "text": "Write a function to add up the values of a pair.",
    "code": "class Pair:\r\n\tdef __init__(self, a, b):\r\n\t\tself.a, self.b = a, b\r\n"
    "def total(pair):\r\n\treturn pair.a + pair.b",
    "task_id": 4000,
    "test_setup_code": "pair = Pair(1, 2)\r\npair2 = Pair(3, 4)",
    "test_list": ["assert total(pair) == 3", "assert total(pair2) == 7 "],
    "challenge_test_list": [],
}
WRONG = {
    "HumanEval/900": "def root(xs):\n    return xs[0] / xs[1]\n",
    "drop-first": "class Solution:\n    def drop(self, head):\n        return head\n",
    "MBPP/4000": MBPP["code"].replace("+", "*"),
}
REASONS = {
    "HumanEval/900": "raised: check(root) AssertionError: [1, 2]",
    "drop-first": "raised: check(Solution().drop) AssertionError:",
    "MBPP/4000": "raised: exec('assert total(pair) == 3') AssertionError:",
}
ROWS = {"humaneval": HUMANEVAL, "leetcode": LEETCODE, "mbpp": MBPP}


def written(folder, *rows):
    path = folder / "problems.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


@pytest.fixture(scope="module")
def runner():
    with LocalRunner(num_workers=2) as made:
        yield made


@pytest.mark.parametrize("name", ROWS)
def test_asserts_of_every_form_decide(tmp_path, runner, name):
    [task] = check_tasks(written(tmp_path, ROWS[name]), runner)
    assert task.grading.check_reference().passed
    verdicts = task.grading.grade([task.grading.reference, WRONG[task.id], "def nothing(): pass", "1 +"])
    assert [one.passed for one in verdicts] == [True, False, False, False]
    assert verdicts[1].reason == REASONS[task.id]
    assert verdicts[3].reason.startswith("not loaded: SyntaxError")


def test_a_program_need_not_repeat_what_the_prompt_imports(tmp_path, runner):
    [task] = check_tasks(written(tmp_path, HUMANEVAL), runner)
    program = "def root(xs: List[float]) -> float:\n    return -xs[0] / xs[1]\n"
    assert task.grading.grade([program])[0].passed
    assert not task.grading.grade(["x = 1"])[0].passed  # the prompt's own function returns nothing


def test_the_last_assert_counts_as_much_as_the_first(tmp_path, runner):
    [task] = check_tasks(written(tmp_path, MBPP), runner)
    program = MBPP["code"].replace("return", "return pair.a == 1 and")
    assert task.grading.grade([program])[0].reason == "raised: exec('assert total(pair2) == 7') AssertionError:"


@pytest.mark.parametrize("ending", ["import os\n    os._exit(0)", "raise SystemExit"])
def test_an_early_end_is_no_pass(tmp_path, runner, ending):
    [task] = check_tasks(written(tmp_path, HUMANEVAL), runner)
    assert not task.grading.grade([f"def root(xs):\n    {ending}\n"])[0].passed


def test_an_outage_takes_the_place_of_a_verdict(tmp_path):
    with LocalRunner() as closed:
        [task] = check_tasks(written(tmp_path, MBPP), closed)
    assert [type(one) for one in task.grading.grade(["1", "2"])] == [SandboxUnavailableError] * 2


def test_a_setup_that_is_no_text_is_refused(tmp_path, runner):
    path = written(tmp_path, MBPP, {**MBPP, "task_id": 1, "test_setup_code": ["x = 1"]})
    with pytest.raises(InputError, match=r"row 1, column 'test_setup_code': must be a text, got list; correct"):
        check_tasks(path, runner)


def test_imports_of_the_sanitized_set_are_part_of_its_tests(tmp_path, runner):
    row = {
        "prompt": "Write a function to halve a number.",
        "code": "def half(x):\n    return x / 2",
        "task_id": 4001,
        "test_imports": ["import math"],
        "test_list": ["assert math.isclose(half(3), 1.5)"],
    }
    [task] = check_tasks(written(tmp_path, row), runner)
    assert task.grading.check_reference().passed
    assert not task.grading.grade(["def half(x):\n    return x // 2"])[0].passed


def evaluate(path, output, server, *more):
    words = [str(path), "--output", str(output), "--endpoint", server.url, "--endpoint-model", "stand-in"]
    return main(["eval", "code", *words, "--workers", "1", *more])


def answer(messages, seed):
    return f"```python\n{LEETCODE['completion']}```"


def test_the_option_brings_in_what_asserts_on_literals_leave_out(tmp_path, capsys):
    literal = {
        **LEETCODE,
        "task_id": "length",
        "completion": "class Solution:\n    def drop(self, n):\n        return n\n",
        "test": "def check(candidate):\n    assert candidate(3) == 3\n    assert candidate(4) in (4, 5)\n",
    }
    computed = {**LEETCODE, "test": LEETCODE["test"].replace("[1,2,3]", "[*range(1, 4)]").replace("[1]", "[*range(1)]")}
    wrong = {**computed, "task_id": "wrong", "completion": LEETCODE["completion"].replace("head.next", "head")}
    path = written(tmp_path, computed, literal, wrong)
    with StandInEndpoint(answer) as server:
        assert evaluate(path, tmp_path / "usual", server) == 0
        assert evaluate(path, tmp_path / "whole", server, "--in-process-tests") == 0
        assert evaluate(path, tmp_path / "usual", server, "--in-process-tests") == 2
    usual, whole = Results.load(tmp_path / "usual"), Results.load(tmp_path / "whole")
    assert usual.parts["pass@1"] == {"length": [0.0, 1.0]}
    assert usual.counts == {"questions without a usable test": 2, "tests left out": 5}
    assert whole.parts["pass@1"] == {"drop-first": [1.0, 1.0], "length": [0.0, 1.0]}
    assert whole.counts == {
        "problems left out because their own reference fails here": "1 (wrong; reasons in references.jsonl)",
        "problems graded in the program's own process, which could forge the outcome": 2,
    }
    assert "in_process_tests was null, now is true" in capsys.readouterr().err


def test_sampling_alone_runs_no_reference(tmp_path):
    with StandInEndpoint(answer) as server:
        assert (
            evaluate(written(tmp_path, LEETCODE), tmp_path / "out", server, "--in-process-tests", "--sample-only") == 0
        )
    assert not (tmp_path / "out" / "references.jsonl").exists()


@pytest.mark.shared
@pytest.mark.filterwarnings("ignore:invalid escape sequence")  # in the sets' own programs
@pytest.mark.parametrize(
    ("name", "number"),
    [("HumanEval.jsonl.gz", 164), ("LeetCodeDataset-v0.2.0-train.jsonl.gz", 300), ("mbpp.jsonl", 974)],
)
def test_references_pass_their_own_tests(shared_dir, tmp_path, runner, name, number):
    path = shared_dir / "data" / name
    with gzip.open(path, "rt") if name.endswith(".gz") else path.open() as handle:
        lines = [line for line, _ in zip(handle, range(number), strict=False)]
    first = tmp_path / "first.jsonl"
    first.write_text("".join(lines))
    tasks = check_tasks(first, runner)
    assert len(tasks) == number
    assert [task.id for task in tasks if not task.grading.check_reference().passed] == []
