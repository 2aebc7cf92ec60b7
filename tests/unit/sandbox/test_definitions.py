"""A program whose examples fail is judged on its definitions. Other programs that do not load fail every case."""

import ast

import pytest

from reward_fns import extract_candidate, extract_suite
from sandbox import Judge, JudgeRequest, Limits, LocalRunner
from sandbox.cases import needs
from sandbox.cases.definitions import with_solution, without_examples
from sandbox.text import MAX_PARSED_CHARS, parse_program, parse_untrusted, syntax_key

ADD = "def add(a, b):\n    return a + b\n"
MODULE = "def add(a, b):\n    return a + b + 0 * len({}.__name__)\n"
NEEDS = (
    "import math\nLIMIT = 3\ntable = [0] * LIMIT\nfor i in range(LIMIT):\n    table[i] = i\nmemo = {}\nmemo['x'] = 0\n"
    "def add(a, b):\n    result = table[a] + table[b] + memo['x']\n    return math.floor(result)\nresult = add('x', 1)"
)

FILLED = (
    "table = [0] * 9\nmemo = {}\ndef fill():\n    for i in range(9):\n        table[i] = i\n"
    "def add(a, b):\n    memo[a] = b\n    return table[a] + table[b]\n"
)


@pytest.fixture(scope="module")
def judge():
    with LocalRunner() as runner:
        yield Judge(runner)


def judged(judge, candidate, **changes):
    request = {"question_id": "q", "reference": ADD, "suites": (("assert add(1, 2) == 3",),), "entry_points": ("add",)}
    return judge.judge(JudgeRequest(candidate=candidate, **request | changes))


@pytest.mark.parametrize(
    ("candidate", "failure"),
    [
        (f"{ADD}print(add(a, 1))", "NameError"),
        (f"{ADD}assert add(1, 2) == 4", "AssertionError"),
        (f"{ADD}n = int(input())", "EOFError"),
        (f"{ADD}while True: pass", "timed_out while loading"),
        (f"{ADD}import sys\nsys.exit(0)", "SystemExit"),
        (f"from solution import sub\n{ADD}", "ImportError"),
        ("def add(a, b):\n    return plus(a, b)\nprint(add(1, 2))\ndef plus(a, b):\n    return a + b", "NameError"),
        ("def add(a, b):\n    return 0\nassert add(1, 2) == 3\ndef add(a, b):\n    return a + b", "AssertionError"),
        (NEEDS, "TypeError"),
        (f"import sys\n{MODULE.format('sys')}sys.stdout.write(str(add(int(input()), 2)))", "EOFError"),
        (f"import unittest\n{MODULE.format('unittest')}unittest.main()", "SystemExit"),
        ("from operator import add\n1 / 0", "ZeroDivisionError"),
        (f"{ADD}eval('1 +')", "SyntaxError"),
        (f"{ADD}import nowhere\nnowhere.show(add)", "ModuleNotFoundError"),
        (f"{ADD}class TestAdd(unittest.TestCase): pass", "NameError"),
        (f"{ADD}x = 1; print(add(int(input()), x))", "EOFError"),
        (f"n = int(input())\n{FILLED}fill()\nprint(add(n, 1))", "EOFError"),
        (f"{FILLED}fill()\nprint(add(1, '2'))\nmemo.clear(n)", "TypeError"),
        (f"{ADD}memo = {{}}\ndef main():\n    while True:\n        n = memo[input()]\nmain()", "EOFError"),
        (f"class Node: pass\nsetattr(Node, 'one', 1)\n{ADD[:-1]} * Node.one\ninput()", "EOFError"),
        ("from __future__ import annotations\n1 / 0\ndef add(a: x, b: y):\n    return a + b", "ZeroDivisionError"),
        (f"'doc'\n1 / 0\n'text'\n{ADD[:-1]} if __doc__ == 'doc' else 0", "ZeroDivisionError"),
        ("1 / 0\n\ndef add(a, b):\n    return add.__code__.co_firstlineno", "ZeroDivisionError"),
        (
            f"import heapq\nheap = [3, 0]\nheapq.heapify(heap)\n{ADD[:-1]} + heap[0]\nprint(add(int(input()), 2))",
            "EOFError",
        ),
    ],
)
def test_a_program_whose_example_fails_is_judged_on_its_definitions(judge, candidate, failure):
    verdict = judged(judge, candidate)
    assert (verdict.loaded, verdict.load_error) == (True, "")
    assert verdict.example_failure.startswith(failure)
    assert [case.outcome for case in verdict.suites[0].cases] == ["passed"]


def test_a_reference_may_have_examples_that_fail(ask):
    verdict = ask(f"{ADD}assert add(1, 2) == 4", ADD, "assert add(1, 2) == 3")
    assert [case.outcome for case in verdict.suites[0].cases] == ["passed"]


def test_names_of_a_statement_are_read_once_however_long_a_chain_of_assignments_is(monkeypatch):
    read, seen = needs.read_names, []
    monkeypatch.setattr(needs, "read_names", lambda node: seen.append(node) or read(node))
    chain = "".join(f"v{number} = v{number - 1}\n" for number in range(1, 400))
    definitions = without_examples(f"def f():\n    return v399\nv0 = 1\n{chain}while f(): pass", ["f"])
    assert definitions.source.count("\n") == 401
    assert len(seen) == 401


@pytest.mark.parametrize(
    "source",
    [
        "count = 0\ndef f():\n    global count\n    count += 1",
        "match 3:\n    case count:\n        pass\ndef f():\n    return count",
        "rows = [count := n for n in range(3)]\ndef f():\n    return count",
    ],
)
def test_every_way_to_bind_or_read_a_name_is_seen(source):
    kept = without_examples(f"{source}\nwhile True: pass", ["f"]).source
    assert kept == ast.unparse(ast.parse(source))


@pytest.mark.parametrize("example", ["1 / 0", "while True: pass"])
def test_a_large_program_runs_as_a_whole_unread(example):
    large = f"{ADD}{example}\n# {'a' * MAX_PARSED_CHARS}"
    with pytest.raises(ValueError, match="too large"):
        parse_program(large)
    assert without_examples(large, ["add"]) is None
    assert with_solution(large, ["add"]) == large
    assert syntax_key(large) != syntax_key(f"{large} ")
    with LocalRunner(limits=Limits(load_cpu_seconds=0.4)) as runner:
        assert judged(Judge(runner), large).loaded is (example == "1 / 0")


@pytest.mark.parametrize(
    ("candidate", "seconds"),
    [
        (f"import math\n{ADD}print(add(2, 1))\nwhile True: pass", "0.025"),
        (f"memo = {{}}\n{ADD.replace('return', 'memo[a] = b; return')}add(1, 2)\nwhile True: pass", "0.025"),
        (f"class T: seen = {{}}\n{ADD}while True: T()", "0.025"),
        (f"def memo(f): return f\n@memo\n{ADD}while True: add(1, 2)", "0.025"),
        (f"{ADD.replace('b)', 'b, seen=[])', 1)}def main():\n    while True: print(add(1, 2))\nmain()", "0.025"),
        (f"import attr\n{ADD}while True: pass", "0.4"),
        (f"{ADD}def fill():\n    global x\n    x = 1\nwhile True: fill()", "0.4"),
        (f"{ADD}def fill():\n    add.seen = [1]\nwhile True: fill()", "0.4"),
        (f"import math\n{ADD}def fill():\n    math.t = [1]\nwhile True: fill()", "0.4"),
        (f"{ADD}def fill(): globals()['x'] = 1\nwhile True: fill()", "0.4"),
        (
            f"t = []\n{ADD[:-1]} + 0 * len(t)\ndef fill(): t.append(1)\ndef main(): fill()\nwhile True: main()",
            "0.4",
        ),
        (f"t = []\n{ADD[:-1]} + 0 * len(t)\ndef fill(items): pass\nwhile True: fill(t)", "0.4"),
        (
            f"class T:\n    def fill(): T.t = 1\n{ADD[:-1]} + 0 * len([T])\ndef main(): T.fill()\nwhile True: main()",
            "0.4",
        ),
    ],
)
def test_an_example_may_compute_for_long_only_where_a_definition_may_need_it_or_imports_are_slow(candidate, seconds):
    with LocalRunner(limits=Limits(load_cpu_seconds=0.4)) as runner:
        verdict = judged(Judge(runner), candidate)
    assert verdict.example_failure == f"timed_out while loading: more than {seconds} s of CPU time"
    assert [case.outcome for case in verdict.suites[0].cases] == ["passed"]


@pytest.mark.parametrize(
    "candidate",
    [
        f"class T:\n    seen = None\n    def fill(self): SLOW; T.seen = 1\n{ADD[:-1]} + 0 * T.seen\nT().fill()",
        "def add(a, b):\n    return a + b + 0 * add.seen\ndef fill(of): SLOW; of.seen = 1\nfill(add)",
        f"def fill(): SLOW; fill.seen = 1\n{ADD[:-1]} + 0 * fill.seen\nfill()",
        "table = []\ndef add(a, b=0):\n    if b: return a + b + 0 * table[0]\n    SLOW; table.append(1)\nadd(1)",
        "table = []\ndef add(a, b=0): {}; table.append(0); return a + b + LAST\nadd(1)\nLAST = table[-1]",
        f"import sys\n{ADD[:-1]} + 0 * zero\nthis = sys.modules[__name__]\nSLOW\nthis.zero = 1",
        f"import sys\ndef main(): sys.setrecursionlimit(9999); SLOW\ndef deep(n): return n and deep(n - 1)\n"
        f"{ADD[:-1]} + deep(2000)\nmain()",
        "from decimal import *\ngetcontext().prec = 50\ndef add(a, b):\n    third = Decimal(1) / 3\n"
        "    return a + b + (third < Decimal('0.3' + 40 * '3'))\nSLOW",
        f"{ADD[:-1]} + zero\nif __name__ == '__main__': pass\nelse: SLOW; zero = 0",
    ],
)
def test_what_the_definitions_miss_without_long_examples_makes_the_whole_program_run(candidate):
    source = candidate.replace("SLOW", "sum(range(6_000_000))").replace("{}", "sum(range(6_000_000))")
    with LocalRunner(limits=Limits(load_cpu_seconds=1.5)) as runner:
        verdict = judged(Judge(runner), source)
    assert [case.outcome for case in verdict.suites[0].cases] == ["passed"], verdict.example_failure


@pytest.mark.parametrize(
    "candidate",
    [
        "def sub(a, b):\n    return a - b\nsub(1)",  # defines no entry point
        "1 / 0",
        f"{ADD}def broken(:",
        f"{ADD}return add(1, 2)",
        f"{ADD}break",
        f"{ADD}nonlocal x",
        f"{ADD}import os\nos._exit(0)",
        "add = 1 / 0\ndef f(): return add",
        f"{ADD}@missing\n{ADD}",  # the second definition is the program's answer
        f"import missing\n{ADD[:-1]} + missing.zero",
        f"def plus(a, b=missing):\n    return a + b\n{ADD.replace('a + b', 'plus(a, b)')}",
        f"table = {{}}\nfor i in range(9):\n    table[i] = 1 / (5 - i)\n{ADD[:-1]} + 0 * table[1]",
        f"{ADD}1 / 0\nimport os\nos._exit(0)",
    ],
)
def test_what_else_does_not_load_is_not(judge, candidate):
    verdict = judged(judge, candidate)
    assert (verdict.loaded, verdict.example_failure) == (False, "")


def test_a_wrong_program_stays_wrong_and_one_without_examples_says_nothing(judge):
    assert judged(judge, "def add(a, b):\n    return a\nadd()").suites[0].cases[0].outcome == "wrong_value"
    assert judged(judge, ADD).example_failure == ""


def test_a_text_is_parsed_again_where_python_mistakes_another_threads_depth(monkeypatch):
    parse, errors = ast.parse, [SystemError("AST constructor recursion depth mismatch")] * 2

    def mistaken(text, **options):
        if errors:
            raise errors.pop()
        return parse(text, **options)

    monkeypatch.setattr(ast, "parse", mistaken)
    assert len(parse_untrusted("x = 1").body) == 1


SOLUTION = "class Solution:\n    def add(self, a, b):\n        return a + b\n"


@pytest.mark.parametrize(
    ("candidate", "outcome"),
    [
        ("def add(a, b): return a + b", "passed"),
        ("def add(self, a, b): return a + b", "passed"),
        ("class Solution:\n    def add(self, a, b): return a - b\ndef add(a, b): return a + b", "wrong_value"),
        ("def sum(a, b): return a + b", "raised"),
        ("def add(a, b) return", "not_loaded"),
    ],
)
def test_functions_may_stand_for_the_methods_of_a_solution_that_is_asked_for(ask, candidate, outcome):
    verdict = ask(SOLUTION, candidate, "assert Solution().add(1, 2) == 3")
    assert [case.outcome.value for case in verdict.suites[0].cases] == [outcome]


REFUSED = (
    f"{ADD}def other(a, a):\n    return a",
    f"{ADD}nonlocal x",
    f"{ADD}return 5",
    f"{ADD}x = 1\ndef g():\n    y = 1\n    global y",
    f"{ADD}x = {'+'.join(['1'] * 2500)}",
    f"{ADD}x = a{'.b' * 2500}",
    f"{ADD}def g():\n    from os import *",
    f"{ADD}y = [(x := 1) for x in [1]]",
    f"{ADD}await x",
)
"""Programs that the parser accepts and Python's compiler refuses."""


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_the_parser_takes_and_python_does_not_is_no_error_of_ours(judge, text):
    assert parse_untrusted(text).body
    for candidate in (text, f"{text}\n1 / 0"):
        verdict = judged(judge, candidate)
        assert verdict.loaded or verdict.load_error
    draft, example = f"```python\nx = 1\n```\n```python\n{text}\n```", f"```python\n{text}\n```\n```\nadd(1)\n```"
    for response in (draft, example, text):
        assert {type(extract_candidate(response, names=names)) for names in (("add",), ())} == {str}
        assert extract_suite(response).reason == "no_asserts"
