"""Recorded in the sandbox, call by call, and compared with coverage.py measuring a module in a plain process."""

import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.tools.test_quality import coverage as coverage_module
from code_a1_recipe.tools.test_quality.coverage import CallCoverage, _read_arcs, calls_in, measure_coverage
from sandbox import Call, CallResult, CallStatus, Limits, LocalRunner
from sandbox.text import encode

from .plain_coverage import plain_coverage

BENIGN = {
    "loops": (
        '''"""A module."""
LIMIT = 3


def f(n):
    """Sum some numbers."""
    total = 0
    for i in range(n):
        if i % 2:
            continue
        total += i
    else:
        total += LIMIT
    while True:
        total -= 1
        if total < 0: break
    return total if n else -1
''',
        ["f(0)", "f(1)", "f(6)", "f(-1)"],
    ),
    "handlers": (
        """def f(x, y=None):
    try:
        value = 10 / x
    except ZeroDivisionError:
        return None
    except TypeError as error:
        raise ValueError("no number") from error
    else:
        if y: value += y
    finally:
        done = True
    return value
""",
        ["f('a')", "f(0)", "f(2)", "f(2, y=3)"],
    ),
    "lines": (
        """import contextlib


@contextlib.contextmanager
def around(flag):
    if flag:
        yield 1
    else:
        yield 2


def f(
    a,
    b=(
        1
    ),
):
    with around(a) as one, \\
         around(not a) as two:
        values = [
            one
            + two
            for _ in range(
                b
            )
            if a
        ]
        if (a and
                b):
            return values
    return {
        "a": a,
        "b": [v for v in values],
    }


def g(a):
    for i in range(2):
        with (
            around(a) as one,
            around(i) as two,
        ):
            if a:
                break
            with around(
                one
            ): pass
        if two:
            return 1
""",
        ["f(0)", "f(1, 2)", "f(1, 0)", "g(0)", "g(1)"],
    ),
    "kinds": (
        """from collections import namedtuple

Pair = namedtuple("Pair", "x y")


class Walker:
    size = 0

    def steps(self, n):
        while n:
            yield n
            n -= 1
        return

    def unused(self):
        return self.size


def f(value):
    match value:
        case int() if value > 9:
            return sum(Walker().steps(value))
        case [first, *_]:
            return (lambda x: x + 1)(first)
        case {"k": k}:
            assert k, "empty"
            return k
        case _:
            pass
    if value is None and not value: pass
    if TYPE_CHECKING():  # pragma: no cover
        return 0
    return Pair(1, 2).x


def TYPE_CHECKING(): return False
""",
        ["f(10)", "f([1, 2])", "f({'k': 0})", "f({'k': 1})", "f(None)", "f(2)"],
    ),
    "recursion": (
        """def f(n, memo={}):
    if n in memo: return memo[n]
    if n < 2:
        return n
    def both():
        return f(n - 1) + f(n - 2)
    memo[n] = both()
    return memo[n]
""",
        ["f(0)", "f(5)", "f(5)", "f('x')"],
    ),
}


@pytest.fixture(scope="module")
def runner():
    limits = Limits(reference_cpu_seconds_per_case=1.0, cpu_seconds_per_case=0.2)
    with LocalRunner(limits=limits) as shared:
        yield shared


def measured(runner, source, *calls, prelude="") -> CallCoverage:
    asked = [None if call is None else Call(expression=call) for call in calls]
    return measure_coverage(runner, source, asked, prelude=prelude)


@pytest.mark.parametrize("name", BENIGN)
def test_lines_and_branches_are_those_of_coverage_py_for_every_number_of_calls(runner, tmp_path, name):
    source, calls = BENIGN[name]
    found = measured(runner, source, *calls)
    assert all(found.lines_of_call)
    for k in range(1, len(calls) + 1):
        statements, missing, num_branches, num_taken = plain_coverage(source, calls[:k], tmp_path)
        assert sorted(found.lines) == statements
        assert sorted(found.lines - frozenset().union(*found.lines_of_call[:k])) == missing
        taken = frozenset().union(*found.branches_of_call[:k])
        assert (len(taken), len(found.branches)) == (num_taken, num_branches)


BRANCHY = "def f(x):\n    if x > 0:\n        return g(x)\n    return 0\n"


@pytest.mark.parametrize("at_once", [2, 512])
def test_calls_are_told_apart_however_many_are_made_at_once(runner, monkeypatch, at_once):
    monkeypatch.setattr(coverage_module, "_CALLS_AT_ONCE", at_once)
    covered = {"f(0)": ({1, 2, 4}, {(2, 4)}), "f(1)": ({1, 2, 3}, {(2, 3)}), None: (set(), set())}
    calls = ["f(1)", "f(0)", None, "f(0)", "f(1)", "f(0)"]
    found = measured(runner, BRANCHY, *calls)
    assert list(zip(found.lines_of_call, found.branches_of_call, strict=True)) == [covered[call] for call in calls]


def test_a_call_that_hangs_or_dies_loses_its_own_lines_only(runner):
    source = (
        "import os\ndef f(x):\n    while x == 1:\n        pass\n    if x == 2:\n        os._exit(1)\n    return x\n"
    )
    found = measured(runner, source, "f(0)", "f(1)", "f(0)", "f(2)", "f(0)")
    assert [len(lines) for lines in found.lines_of_call] == [5, 0, 5, 0, 5]


def test_what_a_call_ran_before_it_raised_or_left_is_covered(runner):
    found = measured(runner, "import sys\ndef f(x):\n    sys.exit(x)\n    return x\n", "f(1)", "f(", "f(1, 2)")
    assert found.lines_of_call == ({1, 2, 3}, {1, 2}, {1, 2})


def test_a_prelude_runs_and_does_not_count(runner):
    found = measured(runner, BRANCHY, "f(1)", prelude="import math\ndef g(x):\n    return math.floor(x)\n")
    assert found.lines_of_call == ({1, 2, 3},)
    assert max(found.lines) == 4


def test_calls_may_be_awaited_or_name_the_library(runner):
    source = "async def f(x):\n    if x:\n        return len(x)\n    return 0\n"
    counter = Call(expression="f(Counter([1]))", awaited=True, uses_library=True)
    found = measure_coverage(runner, source, [counter, Call(expression="f(0)", awaited=True)])
    assert found.lines_of_call == ({1, 2, 3}, {1, 2, 4})


def test_a_program_that_does_not_load_or_parse_is_refused(runner):
    with pytest.raises(ValueError, match="does not load: ZeroDivisionError"):
        measured(runner, "1 / 0\n", "f()")
    with pytest.raises(ValueError, match="only Python programs can be covered"):
        measured(runner, "def f(:\n", "f()")


def test_calls_are_found_in_asserts_of_any_form():
    question = Question(id="q", prompt="p", reference="def f(x=0, y=0): return x\ndef g(): return 1\n")
    texts = [
        "assert f(y=2, x=1) == 1",
        "assert f(3) > 2",
        "assert not f(0)",
        "assert round(f(1) - g(), 3) == 0",
        "assert f(x) == 1",
        "assert h(1) == 1",
        "assert f(",
    ]
    found = calls_in(question, texts)
    assert [call and call.text for call in found] == ["f(1, 2)", "f(3)", "f(0)", "f(1)", None, None, None]


FORGED = [1, "x", [1], [(1,)], [(1, 2), (1, "2")], [(1, True)], [(1, 2, 3)], {1: 2}]


@pytest.mark.parametrize("value", [*map(encode, FORGED), b"junk"])
def test_forged_answers_are_no_jumps(value):
    assert _read_arcs(CallResult(status=CallStatus.VALUE, value=value)) is None
