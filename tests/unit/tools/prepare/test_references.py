"""References through the real judge: every fault by its name."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.tools.prepare.options import PrepareOptions
from code_a1_recipe.tools.prepare.references import BATCH_TESTS, UNREADABLE, JudgedReference, content_key, judged_row
from code_a1_recipe.tools.prepare.rows import Reason
from sandbox import Judge, Limits, SandboxConfigError, SandboxUnavailableError


def question(reference="def f(x): return x + 1", *tests, **changes):
    return Question(**({"id": "q", "prompt": "p", "reference": reference, "tests": tests} | changes))


@pytest.fixture(scope="module")
def facts(runner):
    """Facts of one question, with 0.3 CPU seconds for a call."""
    judge = Judge(runner, limits=Limits(reference_cpu_seconds_per_case=0.3))

    def check(*arguments, **changes):
        def judge_all(requests):
            return map(judge.judge, requests)

        return msgspec.convert(judged_row(question(*arguments, **changes), judge_all), JudgedReference)

    return check


CLOCK = "import time\ndef f(x): return time.perf_counter_ns()"
SPIN = (
    "import time\ndef f(x):\n    end = time.process_time() + x\n    while time.process_time() < end: pass\n    return 1"
)
ODD = "def f(x):\n    if x == 0: raise ValueError\n    return object() if x == 1 else x"


@pytest.mark.parametrize(
    ("reference", "test", "fault", "detail"),
    [
        ("def f(x): return x + 1", "assert f(1) == 3", Reason.REFERENCE_FAILS, "f(1) is 2, expected 3"),
        ("def f(x): return x + 1", "assert f(1) != 3", UNREADABLE, "not_an_equality"),
        ("def f(x): return x + 1", "assert g(1) == 3", UNREADABLE, "no_call"),
        (ODD, "assert f(0) == 1", Reason.REFERENCE_FAILS, "ValueError"),
        (ODD, "assert f(1) == 1", Reason.UNENCODABLE, "unencodable"),
        (SPIN, "assert f(2) == 1", Reason.REFERENCE_SLOW, "reference_timed_out"),
        (CLOCK, "assert f(1) == 1", Reason.REFERENCE_NONDETERMINISTIC, "differ"),
        (
            "def f(x): return str({'a', 'b', 'c', 'd'})",
            "assert f(1) == ''",
            Reason.REFERENCE_NONDETERMINISTIC,
            "hash seeds",
        ),
    ],
)
def test_each_fault_is_told_from_the_others(facts, reference, test, fault, detail):
    found = facts(reference, "assert f(0.1) == 1" if reference is SPIN else test, test)
    assert found.load_error == ""
    (told,) = [one for one in found.faults if one.reason == fault][-1:]
    assert detail in told.detail
    if reference is SPIN:
        assert [one.place for one in found.faults] == [1]


def test_faults_name_the_place_of_their_test(facts):
    tests = [f"assert f({number}) == {number + 1 + (number % 50 == 49)}" for number in range(BATCH_TESTS + 40)]
    found = facts("def f(x): return x + 1", *tests)
    assert [(one.place, one.reason) for one in found.faults] == [
        (49, Reason.REFERENCE_FAILS),
        (99, Reason.REFERENCE_FAILS),
    ]


def test_a_key_is_of_what_is_judged_alone():
    base = question("def f(x): return x", "assert f(1) == 1")
    same = question(base.reference, *base.tests * 2, id="r", prompt="else", data_source="d")
    assert content_key(base) == content_key(same)
    changes = [
        {"reference": "def f(x): return +x"},
        {"tests": ("assert f(2) == 2",)},
        {"prelude": "import os"},
        {"entry_points": ("f",)},
    ]
    assert len({content_key(replace(base, **changed)) for changed in [{}, *changes]}) == 5


def test_the_slow_limit_is_checked():
    options = PrepareOptions(inputs=("a.jsonl",), output=Path("a.parquet"), slow_seconds=0.5)
    assert options.confinement.limits.reference_cpu_seconds_per_case == 0.5
    with pytest.raises(SandboxConfigError, match="must be a positive"):
        _ = replace(options, slow_seconds=0.0).confinement


def test_programs_that_solve_nothing_and_pass_all_tests_are_named(runner):
    def passed_by(*tests):
        asked = question("def f(x): return x * x", *tests)
        return judged_row(asked, lambda requests: map(Judge(runner).judge, requests), with_controls=True)["passed_by"]

    assert passed_by("assert f(2) == 4", "assert f(-2) == 4") == ["constant"]
    assert passed_by("assert f(0) == 0", "assert f(1) == 1") == ["echo"]
    assert passed_by("assert f(2) == 4", "assert f(3) == 9") == []
    assert passed_by() == []


def test_an_outage_is_no_fact():
    row = judged_row(question(), lambda requests: [SandboxUnavailableError("down")])
    assert row == {"key": content_key(question()), "outage": "down"}
