"""LiveCodeBench's rules: programs that print and functions, run in the sandbox and compared outside."""

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.evaluation.scoring.livecodebench_judge import PRELOAD, TestCase, judge_cases, same_output
from sandbox import LocalRunner

SUM = [TestCase(input="1 2\n", output="3\n")]


@pytest.fixture(scope="module")
def runner():
    with LocalRunner(num_workers=2, preload=PRELOAD) as made:
        yield made


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("3\n", "3", True),
        ("3", "\n\n3 \n\n", True),
        ("1 2\n3", "1 2 \n 3\n", True),
        ("1 2\n3", "1 2\n\n3", False),  # a blank line between is a line
        ("1\n2", "1 2", False),
        ("0.5", "0.50", True),
        ("1", "1.0", True),
        ("100", "1e2", True),
        ("0.1", "0.10000000000000001", False),  # exact, without a tolerance
        ("50000000000000000", "50000000000000001", False),
        ("1 2", "1  2.0", True),
        ("yes 1", "yes 1.0", False),
        ("Yes", "YES", False),
        ("a  b", "a b", False),
        ("nan", "nan", True),  # the same text
        ("nan", "NaN", False),
        ("1", "sNaN", False),
        ("1 2", "1", False),
        ("", "", True),
        ("", " \n", True),
        ("", "0", False),
        ("1", "1" + " " * (1 << 20), True),
        ("1", "1" + "0" * (1 << 21), False),
    ],
)
def test_outputs_are_compared_line_by_line_as_texts_or_as_decimal_numbers(expected, printed, same):
    assert same_output(expected, printed) is same


@given(st.lists(st.lists(st.integers() | st.decimals(allow_nan=False, allow_infinity=False), min_size=1), min_size=1))
def test_the_same_numbers_however_they_are_spaced_are_the_same_output(lines):
    expected = "\n".join(" ".join(map(str, line)) for line in lines)
    printed = "\n".join("  ".join(map(str, line)) + " " for line in lines) + "\n"
    assert same_output(expected, printed)
    assert not same_output(expected, printed + "1\n")
    assert not same_output(expected, printed.rstrip() + " 1")


READERS = {
    "input": "a, b = map(int, input().split())\nprint(a + b)",
    "read": "import sys\nprint(sum(map(int, sys.stdin.read().split())))",
    "stdin by name": "from sys import stdin\nprint(sum(map(int, stdin.readline().split())))",
    "lines": "import sys\nfor line in sys.stdin:\n    print(sum(map(int, line.split())))",
    "buffer": "import sys\nprint(sum(map(int, sys.stdin.buffer.readline().split())))",
    "descriptor": "print(sum(map(int, open(0).read().split())))",
    "bytes": "import os\nos.write(1, str(sum(map(int, os.read(0, 100).split()))).encode())",
    "main": "def main():\n    print(sum(map(int, input().split())))\nif __name__ == '__main__':\n    main()",
    "sys.exit": "import sys\nprint(3)\nsys.exit(1)",
    "exit": "print(3)\nexit()",
    "os._exit": "import os, sys\nprint(3)\nsys.stdout.flush()\nos._exit(0)",
    "without imports": "print(Counter('aab')['a'] + gcd(3, 7))",
    "thread": "import threading, time\ndef f():\n    time.sleep(0.05)\n    print(sum(map(int, input().split())))\n"
    "threading.stack_size(1 << 26)\nthreading.Thread(target=f).start()",
    "held back": "import atexit, io, sys\nsys.stdout = io.StringIO()\n"
    "atexit.register(lambda: sys.__stdout__.write(sys.stdout.getvalue()))\nprint(3)",
    "own stream": "import io, os, sys\nclass Out(io.BytesIO):\n    def write(self, text):\n"
    "        return super().write(text.encode())\n    def flush(self):\n        os.write(1, self.getvalue())\n"
    "assert sys.stdout.mode == 'w' and sys.stdin.mode == 'r'\nsys.stdout = Out()\nprint(3)",
    "closed": "import sys\nprint(3)\nsys.stdout.close()",
    "deep recursion": "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nprint(f(20000) - 19997)",
    "module of its own": "import dataclasses, pickle\n@dataclasses.dataclass\nclass A:\n    x: int\n"
    "print(pickle.loads(pickle.dumps(A(3))).x)",
}


@pytest.mark.parametrize("program", READERS.values(), ids=READERS)
def test_a_program_may_read_and_print_in_any_way(runner, program):
    verdict = judge_cases(program, SUM, function="", runner=runner)
    assert (verdict.passed, verdict.reason) == (True, "")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("print(4)", "wrong_value in test 1 of 1"),
        ("print(3)\nraise ValueError('late')", "raised in test 1 of 1 ValueError: late"),
        ("input()\ninput()\nprint(3)", "raised in test 1 of 1 EOFError"),
        ("print(3", "not loaded: SyntaxError"),
        ("import os\nwhile True:\n    os.write(1, b'3' * 60000)", "output_limit in test 1 of 1"),
        ("import os\nos.write(1, b'\\xff')", "wrong_value in test 1 of 1"),
        ("print(open('/etc/passwd').read())", "raised in test 1 of 1 PermissionError"),
    ],
)
def test_a_program_that_fails_says_where_and_how(runner, program, reason):
    verdict = judge_cases(program, SUM, function="", runner=runner)
    assert not verdict.passed
    assert verdict.reason.startswith(reason)


def test_more_than_a_pipe_holds_goes_in_and_comes_out(runner):
    text = "\n".join(map(str, range(100_000)))
    program = "import sys\nfor line in sys.stdin:\n    print(int(line))"
    assert judge_cases(program, [TestCase(input=text, output=text)], function="", runner=runner).passed
    assert judge_cases("print(1)", [TestCase(input=text, output="1")], function="", runner=runner).passed


def test_every_input_meets_a_fresh_process_and_the_first_failure_decides(runner):
    program = "import sys\nsys.seen = getattr(sys, 'seen', 0) + 1\nprint(sys.seen + int(input()))"
    cases = [TestCase(input="0", output="1"), TestCase(input="1", output="2"), TestCase(input="2", output="9")]
    assert judge_cases(program, cases[:2], function="", runner=runner).passed
    assert judge_cases(program, cases, function="", runner=runner).reason == "wrong_value in test 3 of 3"


class Recorder:
    """Passes everything on, and keeps what was to be run."""

    def __init__(self, runner):
        self.runner = runner
        self.limits = runner.limits
        self.programs = []

    def run(self, program, *, role):
        self.programs.append(program)
        return self.runner.run(program, role=role)

    def close(self):
        pass


def test_no_expected_output_is_sent_to_a_process(runner):
    secret = "7919"
    recorder = Recorder(runner)
    assert judge_cases("print(7918 + 1)", [TestCase(input="x", output=secret)], function="", runner=recorder).passed
    cases = [TestCase(input="7918", output=secret)]
    assert judge_cases("def f(x):\n    return x + 1", cases, function="f", runner=recorder).passed
    assert len(recorder.programs) == 2
    assert all(secret not in repr(program) for program in recorder.programs)


@pytest.mark.parametrize(
    ("result", "expected", "passed"),
    [
        ("[1, 2]", "[1, 2]", True),
        ("(1, 2)", "[1, 2]", True),  # the outermost tuple counts as a list
        ("[(1, 2)]", "[[1, 2]]", False),
        ("1.0", "1", True),
        ("True", "true", True),
        ("1", "true", True),
        ("None", "null", True),
        ("0.1 + 0.2", "0.3", False),
        ("0.30000000000000004", "0.30000000000000004", True),
        ("{'a': [1]}", '{"a": [1.0]}', True),
        ("{'a': 1}", '{"a": 2}', False),
        ("{'a': 1, 'b': 2}", '{"a": 1}', False),
        ("{1: 1}", '{"1": 1}', False),
        ("{}", "[]", False),
        ("[[], {}]", "[[], {}]", True),
        ("{}", "null", False),
        ("{1, 2}", "[1, 2]", False),
        ("'1'", "1", False),
        ("deque([1])", "[1]", False),
        ("type('E', (), {'__eq__': lambda self, other: True})()", "1", False),
        ("[0] * 100000", "[0]", False),
    ],
)
def test_results_of_functions_are_compared_as_json_values(runner, result, expected, passed):
    program = f"class Solution:\n    def f(self, x):\n        return {result}\n"
    verdict = judge_cases(program, [TestCase(input="0", output=expected)], function="f", runner=runner)
    assert verdict.passed is passed


def test_a_function_is_found_at_top_level_and_called_with_one_value_a_line(runner):
    cases = [TestCase(input=f'{n}\n["a", null]\n{{"k": 2.5}}', output=f'["a", {n}, 2.5]') for n in range(130)]
    program = "def f(n, names, table):\n    return [names[0], n, table['k']]\n"
    assert judge_cases(program, cases, function="f", runner=runner).passed
    assert judge_cases(program, cases, function="g", runner=runner).reason.startswith("raised in test 1 of 130 Name")
    program = program.replace("n, table", "min(n, 128), table")
    assert judge_cases(program, cases, function="f", runner=runner).reason == "wrong_value in test 130 of 130"


def test_common_names_are_in_scope_of_functions(runner):
    program = "class Solution:\n    def f(self, x: List[int]) -> int:\n        return gcd(*x) + bisect_left(x, 4)\n"
    assert judge_cases(program, [TestCase(input="[4, 6]", output="2")], function="f", runner=runner).passed
