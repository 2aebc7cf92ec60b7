"""Rows S100 to S109, S111 and S112: programs that read standard input, and calls that change an argument."""

import subprocess
import sys
from dataclasses import replace

import pytest

from sandbox import Judge, JudgeRequest

SUM = "import sys\nprint(sum(map(int, sys.stdin.read().split())))\n"
TWO = ('assert run("1 2") == "3"', 'assert run("4\\n5\\n") == "9\\n"')
ROTATE = "class S:\n    def rotate(self, a, k):\n        a[:] = a[-k:] + a[:-k]\n"


@pytest.fixture
def printed(outcomes):
    return lambda reference, candidate, *asserts, **request: outcomes(
        reference, candidate, *asserts, kind="stdin", **request
    )


@pytest.fixture
def both(printed):
    """The outcome that both cases of ``TWO`` must have in common."""

    def run(candidate, **request):
        (outcome,) = set(printed(SUM, candidate, *TWO, **request))
        return outcome

    return run


@pytest.mark.parametrize(
    "candidate",
    [
        "print(sum(map(int, open(0).read().split())))",
        "import os\nos.write(1, b'%d' % sum(map(int, os.read(0, 99).split())))",
        "if __name__ == '__main__':\n    import sys\n    print(sum(int(w) for l in sys.stdin for w in l.split()))",
        "out, rest = open(1, 'w'), open(0)\nout.write(str(sum(map(int, rest.read().split()))))\nout.flush()",
        "import sys\nsys.stdout = open(1, 'w')\nprint(sum(map(int, sys.stdin.buffer.read().split())))",
        "from threading import Thread\ndef f():\n    print(sum(map(int, open(0).read().split())))\n"
        "Thread(target=f).start()",
    ],
)
def test_programs_may_read_and_print_in_any_way_call_after_call(printed, candidate):
    asserts = [f'assert run("{n} {n}") == "{2 * n}"' for n in range(6)]
    assert printed(SUM, candidate, *asserts) == ["passed"] * 6


def test_s100_a_case_gives_a_text_and_compares_what_is_printed_each_time_from_the_start(printed, both):
    counting = "n = globals().get('n', 0) + 1\nimport sys\nprint(sum(map(int, sys.stdin.read().split())) + n - 1)\n"
    assert both(counting) == "passed"
    assert printed(SUM, "print(3)", *TWO) == ["passed", "wrong_value"]
    assert both("") == "wrong_value"
    assert both("def f(:") == "not_loaded"


def test_s101_nothing_but_run_of_a_text_is_a_call_and_nothing_but_a_text_is_expected(reasons):
    asserts = (
        'assert len(run("1")) == 1',
        'assert run("1")[0] == "1"',
        'assert run(text="1") == "1"',
        'assert run(b"1") == "1"',
        'assert run("1", "2") == "3"',
        'assert sum([1]) == "1"',
        'assert run("1") == 1',
        'assert run("1") == "%d" % 1',
    )
    assert reasons(SUM, SUM, *asserts, kind="stdin") == ["no_call"] * 6 + ["expected_not_literal"] * 2


def test_s102_an_input_is_given_as_it_stands_and_other_bytes_are_another_case(ask, printed):
    asserts = ['assert run("1 \\n 2\\n\\n") == "3"', 'assert run("1\\n2") == "3"', 'assert run("1" "\\n2") == "3"']
    suite = ask(SUM, SUM, *asserts, kind="stdin").suites[0]
    assert [case.call for case in suite.cases] == ["run('1 \\n 2\\n\\n')", "run('1\\n2')"]
    assert [one.reason.value for one in suite.rejections] == ["duplicate"]
    echo = "import sys\nprint(repr(sys.stdin.read()))"
    texts = ("", "\n", " 1 \n\n", "é\r\n")
    asserts = [f"assert run({text!r}) == {repr(text.replace(chr(13) + chr(10), chr(10)))!r}" for text in texts]
    assert printed(echo, echo + "\n", *asserts) == ["passed"] * len(texts)


def families(suite):
    """Number the families in the order of their first cases, and return each case's number."""
    numbers = {}
    return [numbers.setdefault(case.family, len(numbers)) for case in suite.cases]


def test_s111_failed_inputs_that_show_one_mistake_are_one_family(ask):
    def found(reference, candidate, *texts):
        suite = ask(reference, candidate, *(f"assert run({text!r}) == ''" for text in texts), kind="stdin").suites[0]
        assert len(suite.cases) == len(texts)
        return families(suite)

    square, wrong = "n = int(input())\nprint(n * n)\n", "n = int(input())\nprint(n * n if n != 3 else 0)\n"
    assert found(square, wrong, "3\n0", "3\nx y", "03", "3\n3.0", "4", "4\n0") == [0] * 4 + [1] * 2  # 4 passes
    first_two, zero = "a, b, *_ = input().split()\nprint(int(a) + int(b))\n", "print(0)"
    assert found(first_two, zero, "3 4 y", "3 4 x", "3 4 z z", "3 5", "4 3") == [0, 0, 0, 1, 2]
    assert found("print(float(input()))", zero, "1.5", "1.50", "15e-1", "+1.5", "1_5e-1", "2.5") == [0] * 5 + [1]
    assert found("print(max(map(int, input().split())))", zero, "3 9 1", "1 9 3", "9", "9 1") == [0, 1, 2, 3]
    words = ("racecar", "noon", "abba", "x")
    palindrome = "input()\ns = input()\nprint('YES' if s == s[::-1] else 'NO')"
    assert found(palindrome, zero, *(f"1\n{word}" for word in words)) == [0, 1, 2, 3]
    lines = "n = int(input())\na = list(map(int, input().split()))\nprint({})"
    unread = ("3\n1 2 9", "3\n1 2 9\n0", "3\n1 2 9\nx y\nz", "3\n1 2 9\n#", "3\n1 2 9\n##.")
    assert found(lines.format("max(a)"), zero, *unread, "2\n1 8") == [0] * 5 + [1]
    by_words = "data = sys.stdin.read().split()\na = data[1:int(data[0]) + 1]\nprint({})"
    different = [f"3 {a} {b} {c}" for a in (1, 2) for b in (1, 2) for c in (1, 2)]
    for answer in ("'YES' if sum(map(int, a)) else 'NO'", "max(map(int, a)) > 0"):
        assert found("import sys\n" + by_words.format(answer), zero, *different) == list(range(8))
    assert found("print(len(input()))", zero, "1", "01", "001", "1e0") == [0, 1, 2, 2]
    assert found("a, unit = input().split()\nprint(a)", zero, "3 kg", "3 lb", "3 mm", "4 kg") == [0, 0, 0, 1]
    assert found("print(eval(input()))", zero, "[1, 2]", "[1,2]", "[1.0, 2]") == [0, 0, 1]


@pytest.mark.parametrize(
    ("reference", "calls", "expected"),
    [
        (
            "def f(a, b=0, *rest, **kw): return a",
            "f(1) f(1,2) f(1,3,4) f(1,k=1) f(1,z='') f(2,5) f(3)",
            [0] * 5 + [1, 2],
        ),
        ("def f(xs, n): return max(xs[:n])", "f([1,9,3],2) f([1,9,4],2) f([1,9],2) f([2,9,3],2)", [0, 0, 0, 1]),
        ("def f(xs): return sum(xs)", "f({0:1,1:0}) f([0,1]) f(range(2)) f(Counter([0,1])) f({0:'a',1:''})", [0] * 5),
        ("def f(d): return sum(d.values())", "f({1:2}) f({3:2}) f({1:3})", [0, 0, 1]),
        ("def f(xs): return all(x > 0 for x in xs)", "f([1,2]) f([1,3]) f([2,3]) f([1,-1])", [0, 1, 2, 3]),
        ("def f(xs, k): return k in xs", "f([2],1) f([3],1) f([1],1)", [0, 1, 2]),
        ("def f(n): return n % 2", "f(1) f(3) f(5) f(7)", [0, 1, 2, 3]),
        ("def f(s): return len(s)", "f('ab') f(['a','b']) f('cd') f('abc')", [0, 0, 1, 2]),
        ("def f(d): return d['a']", "f({'a':1}) f({'a':1,'b':2}) f({'a':1,'c':2,'d':3}) f({'a':2})", [0, 0, 0, 1]),
        ("def f(a, n): return sum(a[:n])", "f([1,2,3],2) f((1,2,4),2) f((1,2),2) f((1,3),2)", [0, 0, 0, 1]),
        ("def f(x): return x", "f([1]) f((1,)) f([1])[0] len(f((1,))) f([2])", [0, 0, 0, 0, 1]),
        ("def f(d): return sorted(d)", "f(Counter({1:1,2:2})) f(Counter({2:5,1:7})) f({1:3,2:4})", [0] * 3),
        ("def f(xs, n): return -1 if n == 7 else sum(xs)", "f([1,2],5) f([1,2],6) f((1,2),7)", [0, 1, 2]),
        ("def f(a, **k): return -(k['y'] == 7)", "f(1,x=1,y=5) f(1,x=1,y=6) f(1,y=7,x=1)", [0, 1, 2]),
        (
            "class f:\n  def __init__(self, a, b=1): self.a = a\n  def g(self): return self.a",
            "f(1).g() f(1,2).g()",
            [0, 0],
        ),
    ],
)
def test_calls_that_differ_in_unread_parts_are_one_family(ask, reference, calls, expected):
    asserts = [f"assert {call} == 0" for call in calls.split()]
    (suite,) = ask(reference, "def f(*a, **k): return -1", *asserts).suites
    assert families(suite) == expected


def test_families_do_not_depend_on_other_requests(runner):
    judge = Judge(runner)
    request = JudgeRequest(
        question_id="q",
        reference="def f(s, flag=0): return -1 if flag == 7 else len(s)",
        candidate="def f(*a): return -2",
        suites=(tuple(f"assert f('{'a' * 100}', {flag}) == 0" for flag in (1, 2, 7)),),
    )
    asserts = tuple(f"assert f('{'b' * length}') == 0" for length in range(70))
    requests = [request, replace(request, suites=(asserts,)), replace(request, given=True)]
    found = judge.prepare(requests)
    assert found[2] is None
    for one, its in zip(requests, found, strict=True):
        assert judge.judge(one, its).suites == judge.judge(one).suites
    assert families(judge.judge(request, found[0]).suites[0]) == [0, 1, 2]


def test_failed_calls_with_the_same_items_in_other_containers_are_one_family(ask):
    spelled = ["[3, 1]", "(3, 1)", "{1: 2}", "deque([3, 1])", "bytes([3, 1])", "[1, 3]", "{3, 1}", "[[3], 1]"]
    asserts = [f"assert f({text}) == 0" for text in spelled]
    suite = ask("def f(x): return len(x)", "def f(x): return 0", *asserts).suites[0]
    assert families(suite) == [0, 0, 1, 0, 0, 2, 2, 3]


def test_bytes_that_are_no_text_stay_apart(printed):
    write = "import sys\nn = int(input())\nsys.stdout.buffer.write(bytes([{} + n]))\n"
    asserts = ('assert run("1") == ""', 'assert run("2") == ""')
    assert printed(write.format(200), write.format(200) + "\n", *asserts) == ["passed"] * 2
    assert printed(write.format(200), write.format(210), *asserts) == ["wrong_value"] * 2


def test_a_program_finds_what_a_script_finds(printed):
    source = "import os\npr = __builtins__.print\nopen(os.devnull, 'w').write('x')\npr(__file__[-3:])"
    assert printed("print('.py')", source, 'assert run("") == ".py"') == ["passed"]


def test_a_python_that_knows_no_file_in_memory_gives_one_without_a_name(printed, monkeypatch):
    monkeypatch.delattr("os.memfd_create")
    assert printed(SUM, SUM + "\n", 'assert run("1 2") == "3"', 'assert run("") == "0"') == ["passed"] * 2


@pytest.mark.parametrize(
    ("checker", "right", "printed_text", "outcome"),
    [
        ("exact", "1 2\n3\n", "1 2  \n3\n\n", "passed"),
        ("exact", "1 2\n3\n", "1  2\n3\n", "wrong_value"),
        ("exact", " 1\n", "1\n", "wrong_value"),
        ("tokens", "1 2\n3\n", "1\n2   3", "passed"),
        ("tokens", "1.0", "1", "wrong_value"),
        ("decimals", "0.3333333333333333", "0.333333333", "passed"),
        ("decimals", "1.0 yes", "1\nyes", "passed"),
        ("decimals", "0.5", "0.50001", "wrong_value"),
        ("decimals", "1", "1.0", "wrong_value"),
        ("decimals", "1000000000", "1000000001", "wrong_value"),
        ("decimals", "4501500.0", "4501501.0", "wrong_value"),
        ("decimals", "1234567.8912345", "1234567.891234", "passed"),
        ("decimals", "1.5e-7", "0.00000015", "passed"),
        ("decimals", f"1.{'4' * 60}", "1.4444444444444444", "wrong_value"),
        ("decimals", "It is 5.", "It is 5", "wrong_value"),
        ("decimals", "a.b", "a.c", "wrong_value"),
        ("floats", "0.5 yes", "0.5000004\nyes", "passed"),
        ("floats", "0.5", "0.50001", "wrong_value"),
        ("floats", "1000000000", "1000000100", "passed"),
        ("floats", "inf", "nan", "wrong_value"),
        ("floats:0.1", "10", "10.9", "passed"),
        ("floats:0.1", "10", "11.1", "wrong_value"),
        ("floats:0", "9007199254740993", "9007199254740992", "wrong_value"),
        ("floats:0", "123456789012345678901234567890.10", "+123456789012345678901234567890.1", "passed"),
        ("floats:1e-20", "9" * 400, "9" * 399 + "8", "passed"),
        ("floats:1e-20", "1" + "0" * 20, "9" * 20, "passed"),
        ("floats:1e-21", "1" + "0" * 20, "9" * 20, "wrong_value"),
        ("floats", "1e400", "inf", "wrong_value"),
        ("floats", "1", "1e" + "9" * 30, "wrong_value"),
        ("accepted", "1 2\n---\n2 1\n", "2  1", "passed"),
        ("accepted", "1 2\n---\n2 1\n", "1 2 --- 2 1", "wrong_value"),
        ("accepted", "1 2\n---\n2 1\n", "1 1", "wrong_value"),
    ],
)
def test_checkers(printed, checker, right, printed_text, outcome):
    programs = (f"print({text!r}, end='')" for text in (right, printed_text))
    assert printed(*programs, 'assert run("") == ""', checker=checker) == [outcome]


def test_by_default_printed_decimals_have_a_tolerance(printed):
    assert printed("print(1 / 3)", "print('%.9f' % (1 / 3))", 'assert run("") == "0.3333333"') == ["passed"]


def test_s103_an_expected_output_is_right_by_the_checker_too(ask):
    reference = "print('0 1')\nprint('---')\nprint('1 0')"
    asserts = ('assert run("1") == "1 0"', 'assert run("2") == "1 1"')
    cases = ask(reference, reference, *asserts, kind="stdin", checker="accepted").suites[0].cases
    found = [(case.expected_correct, case.outcome.value) for case in cases]
    assert found == [(True, "passed"), (False, "passed")]  # both programs print all accepted outputs
    yes = ("print('YES')", "print('yes')", 'assert run("") == "Yes"')
    (case,) = ask(*yes, kind="stdin", checker="caseless").suites[0].cases
    assert (case.expected_correct, case.outcome.value) == (True, "passed")


def test_s112_the_items_of_a_list_may_be_right_in_any_order(ask, outcomes):
    reference = "def f(n): return [[1, 2], [3], [3]][:n]"
    asserts = ("assert f(3) == [[3], [1, 2], [3]]", "assert f(2) == [[3], [2, 1]]")
    candidate = "def f(n): return [[3], [3], [1, 2]] if n == 3 else ([3], [1, 2])"
    cases = ask(reference, candidate, *asserts, checker="any_order").suites[0].cases
    found = [(case.expected_correct, case.outcome.value) for case in cases]
    assert found == [(True, "passed"), (False, "wrong_value")]  # a tuple does not equal a list
    other = "def f(n): return [[3], [1, 2], [1, 2]]"
    assert outcomes(reference, other, asserts[0], checker="any_order") == ["wrong_value"]
    for reference, value, outcome in (
        ("[[1.0, 1], [0.3, 2], 1, 1.0]", "[1, [0.1 + 0.2, 2], [1.0, 1], 1.0000001]", "passed"),
        ("[{'a': 0.3}, {'b': 2}, {1.5}]", "[{1.5000001}, {'b': 2}, {'a': 0.1 + 0.2}]", "passed"),
        ("[[0.3, 1], [0.1 + 0.2, 0]] + [[None]] * 9", "[[None]] * 9 + [[0.3, 0], [0.1 + 0.2, 1]]", "passed"),
        ("[nan, 10 ** 400, 0.3, 1 + 2j]", "[1 + 2.0000001j, 0.1 + 0.2, nan, 10 ** 400]", "passed"),
        ("[[0.3, 1], [0.3, 2]]", "[[0.3, 1], [0.3, 1]]", "wrong_value"),
        ("[10 ** 9, 0.3]", "[0.3, 10 ** 9 + 1]", "wrong_value"),
    ):
        programs = [f"from math import nan\ndef f(): return {text}" for text in (reference, value)]
        assert outcomes(*programs, "assert f() == []", checker="any_order") == [outcome]
    with pytest.raises(ValueError, match="unknown checker 'floats' for kind functions"):
        ask(reference, candidate, *asserts, checker="floats")


def test_s104_any_exit_is_an_end_and_an_exception_fails_whatever_was_printed(both):
    for end in ("import sys\nsys.exit(1)", "raise SystemExit('bad')", "exit()", "import os\nos._exit(3)", "quit(2)"):
        flushed = "import sys\nprint(sum(map(int, sys.stdin.read().split())), flush=True)\n" + end
        assert both(flushed) == "passed"
    assert both(SUM + "raise ValueError") == "raised"


@pytest.mark.parametrize(
    "candidate",
    [
        "import fileinput\nfor line in fileinput.input():\n    print(line.strip())\n    break",
        "import sys, threading\ndef f():\n    print(input())\nthreading.stack_size(1 << 29)\n"
        "one = threading.Thread(target=f)\none.start()\none.join()",
    ],
)
def test_what_one_run_leaves_in_a_module_costs_the_next_one_nothing(printed, candidate):
    asserts = [f'assert run("{n}") == "{n}"' for n in range(5)]
    assert printed("print(input())", candidate, *asserts) == ["passed"] * 5


def test_s105_output_beyond_the_limit_of_one_value_is_its_end(both):
    assert both("print('3' * 3000000)") == "output_limit"
    assert both("while True:\n    print('3' * 60000)") == "output_limit"


def test_s106_reading_beyond_the_input_raises(reasons, both):
    assert both("input()\ninput()\ninput()\nprint(3)") == "raised"
    assert reasons("input()\nprint(int(input()))", SUM, *TWO, kind="stdin") == ["reference_raised"]


def test_s107_imports_of_the_program_are_loading_and_a_prelude_gives_names(both):
    numeric = "import decimal, statistics, sqlite3, unittest, asyncio, email.mime.text\n"
    assert both(numeric + SUM) == "passed"
    prelude = "def add(text):\n    return sum(map(int, text.split()))\n"
    assert both("print(add(open(0).read()))", prelude=prelude) == "passed"


def test_s108_in_place_the_first_argument_is_compared_after_the_call(ask, outcomes):
    asserts = ("assert S().rotate([1, 2, 3], 1) == [3, 1, 2]", "assert S().rotate([1, 2, 3], 2) == [1]")
    pop = "class S:\n    def rotate(self, a, k):\n        a.insert(0, a.pop())\n"
    cases = ask(ROTATE, pop, *asserts, kind="in_place").suites[0].cases
    assert [(case.call, case.outcome.value, case.expected_correct) for case in cases] == [
        ("S().rotate([1, 2, 3], 1)", "passed", True),
        ("S().rotate([1, 2, 3], 2)", "wrong_value", False),
    ]
    renamed = "class S:\n    def rotate(self, a, k):\n        a = a[-k:] + a[:-k]\n        return a\n"
    assert outcomes(ROTATE, renamed, *asserts, kind="in_place") == ["wrong_value"] * 2
    plain = "def f(xs, *, by=1):\n    for i in range(len(xs)):\n        xs[i] += by\n"
    assert outcomes(plain, plain, "assert f(['é', 'b'], by='x') == ['éx', 'bx']", kind="in_place") == ["passed"]


def test_s109_in_place_nothing_is_read_of_the_result(reasons):
    asserts = ("assert sorted(S().rotate([1], 1)) == [1]", "assert S().rotate(a=[1], k=1) == [1]", "assert S() == 1")
    assert reasons(ROTATE, ROTATE, *asserts, kind="in_place") == ["no_call"] * 3


def test_separators_around_accepted_outputs_add_none(printed):
    reference = "for x in (1, 2):\n    print('---')\n    print(x)\n    print('---')\n"
    suite = ('assert run("") == ""',)
    assert printed(reference, "pass", *suite, checker="accepted") == ["wrong_value"]
    assert printed(reference, "print(2)", *suite, checker="accepted") == ["passed"]
    assert printed(reference, reference + "# by another\n", *suite, checker="accepted") == ["wrong_value"]
    assert printed("print()", "pass", *suite, checker="accepted") == ["passed"]


def test_an_input_that_grows_beyond_the_limit_of_a_test_when_it_is_spelled_is_refused(reasons):
    assert reasons(SUM, SUM, f'assert run("{chr(0x10FFFE)}" * 9000) == ""', kind="stdin") == ["argument_not_literal"]


HELD_BACK = {
    "class attribute": "class Out:\n    f = open(1, 'w')\nOut.f.write(str(sum(map(int, open(0).read().split()))))",
    "cycle": "import os\nclass IO:\n    def __init__(s):\n        s.out = os.fdopen(1, 'w')\n        s.w = s.put\n"
    "    def put(s, x):\n        s.out.write(x)\nIO().w(str(sum(map(int, open(0).read().split()))))",
    "at the end of an object": "class A:\n    def __del__(s, p=print, o=open):\n"
    "        p(sum(map(int, o(0).read().split())))\na = A()",
    "pool": "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
    "print(pool.submit(lambda: sum(map(int, open(0).read().split()))).result())",
    "copy of the output": "import os\nos.dup2(1, 2)\nkept = os.dup(1)\nprint(sum(map(int, open(0).read().split())))",
    "closed errors": "import os\nprint(sum(map(int, open(0).read().split())), flush=True)\nos.close(2)",
}


@pytest.mark.parametrize("candidate", HELD_BACK.values(), ids=HELD_BACK)
def test_right_programs_that_end_in_unusual_ways_pass_every_time(ask, candidate):
    verdict = ask(SUM, candidate, *(f'assert run("{n} {n}") == "{2 * n}"' for n in range(12)), kind="stdin")
    assert [case.outcome.value for case in verdict.suites[0].cases] == ["passed"] * 12
    assert verdict.cpu_seconds < 3


def test_what_is_held_back_at_os_exit_is_lost_and_does_not_come_out_later(printed):
    asserts = [f'assert run("{n}") == "{n}"' for n in range(6)]
    assert printed(SUM, SUM + "import os\nos._exit(0)\n", *asserts) == ["wrong_value"] * 6
    raising = "n = int(input())\nprint(n)\nif n % 2:\n    raise ValueError\n"
    assert printed(SUM, raising, *asserts) == ["passed", "raised"] * 3


def test_a_program_that_prints_for_ever_is_asked_no_more(ask):
    asserts = (f'assert run("{n}") == "{n}"' for n in range(40))
    verdict = ask(SUM, "while True:\n    print('1' * 1000)", *asserts, kind="stdin")
    assert {case.outcome.value for case in verdict.suites[0].cases} == {"output_limit", "timed_out"}
    assert verdict.cpu_seconds < 6


def test_what_cannot_change_is_no_case_in_place(reasons):
    reference = "def f(n, a):\n    a.sort()\n"
    firsts = ("5", "'x'", "-1", "()", "5--2", "'x' * 2", "range(2)", "frozenset([1])")
    asserts = [f"assert f({first}, [2, 1]) == {first}" for first in firsts]
    assert reasons(reference, "def f(n, a): pass", *asserts, kind="in_place") == ["no_call"] * len(firsts)


def test_the_last_output_is_waited_for_however_late_its_reader_gets_a_processor():
    """One second was too short on a machine with seven busy processes for each core."""
    source = "\n".join(
        (
            "import os, sys",
            "from sandbox.runners import stdin_program",
            "stdin_program._LAST_OUTPUT_SECONDS = 0",
            "os.dup2(os.open('/dev/null', os.O_RDONLY), stdin_program.INPUT_FD)",
            "program = stdin_program.InputProgram('print(7)', {}, most_bytes=100)",
            "found = {program('') for _ in range(50)}",
            "os.write(2, repr(found).encode())",
        )
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == "{'7\\n'}"
