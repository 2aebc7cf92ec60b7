"""Programs that solve nothing: which of them pass the tests of a question."""

from dataclasses import replace

import pytest

from sandbox import Judge, JudgeRequest
from sandbox.text import control_programs, passes_all

ADD_ONE = "def f(x):\n    return x + 1\n"
BOTH = ("assert f(1) == 2", "assert f(2) == 3")
STRIP = ("assert f('a') == 'a'", "assert f('b') == 'b'")
STATEFUL = """
class S:
    def __init__(self, n):
        self.n = n
    def get(self):
        return self.n
    def same(self, value):
        return value
"""


@pytest.mark.parametrize(
    ("reference", "tests", "prompt", "passed_by"),
    [
        (ADD_ONE, BOTH, "", []),
        (ADD_ONE, BOTH[:1], "", ["constant"]),
        (ADD_ONE, ["assert f(x) == 1"], "", []),  # no valid test: nothing is passed
        ("def f(x) return x", ["assert f(1) == 1"], "", []),
        (ADD_ONE, BOTH, ">>> f(1)\n2\n\nf(2) -> 3.", ["examples"]),
        (ADD_ONE, BOTH, "f(x) -> int\nf(*x) -> 1\nf(1) -> 2\nf(2) -> 3", ["examples"]),
        (ADD_ONE, [*BOTH[:1], f"assert f(2) == {'-' * 900}1"], "", ["constant"]),
        ("def f(s, /): return s.strip()", STRIP, "", ["echo"]),
        ("def f(s): return s.strip()", STRIP, "", ["echo"]),
        ("N = 1\nf = lambda x: x\ndef g(x, n=N): return x + n", ["assert g(1) == 2"], "", ["constant"]),
        ("def f(x): x.sort()", ["assert f([1]) is None"], "", ["stub", "constant"]),
        (STATEFUL, ["assert S(3).get() == 3", "assert S(n=4).get() == 4"], "", []),
        (STATEFUL, ["assert S(3).same({'a': 1}) == {'a': 1}"], "", ["echo", "constant"]),
        ("print(input())", ["assert run('1\\n') == '1\\n'", "assert run('2') == '2'"], "", ["echo"]),
    ],
)
def test_control_programs_pass_only_tests_that_prove_nothing(runner, reference, tests, prompt, passed_by):
    request = JudgeRequest(
        question_id="q",
        reference=reference,
        candidate=None,
        suites=(tuple(tests),),
        kind="stdin" if "input()" in reference else "functions",
    )
    found = [
        name
        for name, source in control_programs(request, prompt).items()
        if passes_all(Judge(runner).judge(replace(request, candidate=source)))
    ]
    assert found == passed_by
