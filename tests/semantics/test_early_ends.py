"""Rows S40 to S59: how an early end affects its case and the following cases."""

from dataclasses import replace

import pytest

from sandbox import CaseOutcome
from sandbox.text import HANGS_THROUGHOUT, TOTAL_SPENT

DOUBLE = "def f(n):\n    return 2 * n\n"
FIVE = tuple(f"assert f({n}) == {2 * n}" for n in range(5))


def but_for_two(statement, prelude=""):
    """Return a program that is correct except for f(2)."""
    return f"{prelude}\ndef f(n):\n    if n == 2:\n        {statement}\n    return 2 * n\n"


def one_of_five(outcome):
    return ["passed", "passed", outcome, "passed", "passed"]


def spin(seconds):
    wait = f"    end = time.process_time() + {seconds}\n    while time.process_time() < end:\n        pass\n"
    return f"import time\ndef f(n):\n{wait}    return 2 * n\n"


@pytest.fixture
def failed_detail(ask):
    """Check that f(2) alone fails, with the given outcome, and return the detail of its case."""

    def run(outcome, candidate):
        cases = ask(DOUBLE, candidate, *FIVE).suites[0].cases
        assert [case.outcome.value for case in cases] == one_of_five(outcome), [case.detail for case in cases]
        return cases[2].detail

    return run


def test_s40_a_hang_is_one_failed_case(outcomes):
    assert outcomes(DOUBLE, but_for_two("while True: pass"), *FIVE) == one_of_five("timed_out")


def test_s41_idling_is_a_time_out_by_the_clock_on_the_wall(outcomes):
    assert outcomes(DOUBLE, but_for_two("time.sleep(10 ** 6)", "import time"), *FIVE) == one_of_five("timed_out")


def test_s42_the_limit_of_a_case_is_ten_times_the_references_own_cpu_time(runner, outcomes):
    limits = replace(runner.limits, cpu_seconds_per_case=0.2)
    assert outcomes(spin(0.06), spin(0.4), "assert f(1) == 2", limits=limits) == ["passed"]
    assert outcomes(spin(0.0), spin(0.4), "assert f(1) == 2", limits=limits) == ["timed_out"]


def test_s43_each_time_out_quarters_the_patience_with_a_program(runner, ask):
    limits = replace(runner.limits, min_cpu_seconds_per_case=0.03)
    asserts = tuple(f"assert f({n}) == {2 * n}" for n in range(8))
    cases = ask(DOUBLE, "def f(n):\n    while True: pass\n", *asserts, limits=limits).suites[0].cases
    assert {case.outcome for case in cases} == {CaseOutcome.TIMED_OUT}
    details = [f"more than {seconds} s of CPU time" for seconds in (0.03, 0.03, 0.03, 0.4, 0.4, 0.4)]
    assert sorted(case.detail for case in cases) == [*details, *[HANGS_THROUGHOUT] * 2]


SLOW = {
    "every call": "spend(0.25)",
    "the first call": "spend(0.25 if not seen else 0)",
    "one call": "spend(0.25 if n == 3 else 0)",
    "one call, and another hangs": "spend(0.25 if n == 3 else 9 if n == 1 else 0)",
    "a table that some calls need": "spend(0.25 if n > 1 and 2 not in seen and 3 not in seen and 4 not in seen else 0)",
    "threads": "join(spend, 0.06)",
    "sleep in every call": "time.sleep(0.5)",
    "sleep in one call": "time.sleep(0.7 * (n == 3))",
}


@pytest.mark.parametrize("work", SLOW.values(), ids=SLOW)
@pytest.mark.parametrize("reference_seconds", [0.0, 0.003])
def test_a_slow_program_keeps_each_case_that_its_full_limit_allows(outcomes, work, reference_seconds):
    """Whether a short limit is 0.1 or 0.2 s must not matter."""
    spend = spin(0).replace("def f(n)", "def spend(seconds)").replace("process_time() + 0", "process_time() + seconds")
    join = "def join(target, seconds):\n    threads = [Thread(target=target, args=(seconds,)) for _ in range(4)]\n"
    join += "    for thread in threads: thread.start()\n    for thread in threads: thread.join()\n"
    source = f"from threading import Thread\nn = 0\nseen = []\n{spend}{join}"
    source += f"def f(n):\n    {work}\n    seen.append(n)\n    return 2 * n\n"
    right = ["passed", "timed_out" if "9" in work else "passed", *["passed"] * 3]
    assert outcomes(spin(reference_seconds), source, *FIVE) == right


def test_what_a_shortened_limit_cut_off_is_asked_once_more(runner, ask):
    limits = replace(runner.limits, cpu_seconds_per_case=0.4)
    slow = "import time\ndef f(n):\n    while n % 2: pass\n    end = time.process_time() + 0.2 * (n > 6)\n"
    slow += "    while time.process_time() < end: pass\n    return 2 * n\n"
    asserts = [f"assert f({n}) == {2 * n}" for n in (2, 4, 8, 10, 1, 3, 5, 7)]
    cases = ask(DOUBLE, slow, *asserts, limits=limits).suites[0].cases
    assert [case.outcome.value for case in cases] == ["passed"] * 4 + ["timed_out"] * 4


def test_an_import_in_a_function_is_paid_for_by_each_process_that_follows_a_time_out(failed_detail):
    assert failed_detail("timed_out", "def f(n):\n    import sympy\n    while n == 2: pass\n    return 2 * n\n")


def test_an_import_in_a_function_may_wait_for_the_disk(outcomes):
    source = "def f(n):\n    import time, sympy\n    time.sleep(1.5)\n    return 2 * n\n"  # the limit is 1.0 s idle
    assert outcomes(DOUBLE, source, "assert f(1) == 2") == ["passed"]


def test_s44_calls_left_after_the_total_time_are_timed_out_unasked_and_say_so(runner, ask):
    limits = replace(runner.limits, cpu_seconds_per_case=0.4, min_cpu_seconds_per_case=0.4, total_seconds=1.0)
    cases = ask(DOUBLE, "def f(n):\n    while True: pass\n", *FIVE, limits=limits).suites[0].cases
    assert {case.outcome for case in cases} == {CaseOutcome.TIMED_OUT}
    assert sum(case.detail == TOTAL_SPENT for case in cases) in (
        3,
        4,
    )  # the start of the process is slow on a busy machine


@pytest.mark.parametrize("statement", ["sys.exit(0)", "raise SystemExit", "raise KeyboardInterrupt", "exit()"])
def test_s45_a_raised_exit_is_an_exception_of_its_case(outcomes, statement):
    assert outcomes(DOUBLE, but_for_two(statement, "import sys"), *FIVE) == one_of_five("raised")


def test_s46_an_exit_of_the_process_is_one_failed_case(failed_detail):
    assert failed_detail("died", but_for_two("os._exit(0)", "import os")) == "exited with status 0"


def test_s47_a_crash_is_one_failed_case(failed_detail):
    assert failed_detail("died", but_for_two("ctypes.string_at(0)", "import ctypes")) == "ended by SIGSEGV"


def test_s48_a_memory_error_is_an_exception_of_its_case(failed_detail):
    assert failed_detail("raised", but_for_two("[0] * 10 ** 10")).startswith("MemoryError")


def test_s49_a_recursion_error_is_an_exception_of_its_case(failed_detail):
    deep = but_for_two("g(n)", "def g(n):\n    return g(n)")
    assert failed_detail("raised", deep).startswith("RecursionError")


def test_s50_an_overflow_of_the_stack_is_one_failed_case(runner, outcomes):
    deep = "import sys\nsys.setrecursionlimit(10 ** 9)\ndef g(n):\n    return list(map(g, [n]))\n" + but_for_two("g(n)")
    # Writing to new pages of a stack takes CPU time, and several times as much on a busy machine.
    limits = replace(runner.limits, cpu_seconds_per_case=10.0)
    assert outcomes(DOUBLE, deep, *FIVE, limits=limits) in (one_of_five("died"), one_of_five("raised"))


def test_s51_a_value_beyond_its_limit_is_one_failed_case(outcomes):
    assert outcomes(DOUBLE, but_for_two("return 'x' * 10 ** 7"), *FIVE) == one_of_five("output_limit")


def test_s52_values_beyond_the_total_of_one_process_cost_no_case(runner, outcomes):
    limits = replace(runner.limits, value_bytes=300_000, total_output_bytes=700_000)
    text = "def f(n):\n    return 'x' * 250_000\n"
    assert outcomes(text, text, *FIVE, limits=limits) == ["passed"] * 5


def test_s53_an_unencodable_value_is_one_failed_case(failed_detail):
    detail = failed_detail("unencodable", but_for_two("return object()"))
    assert detail == "builtins.object is not a builtin value"


def test_s54_an_exception_is_one_failed_case_whatever_the_reference_does(failed_detail, reasons):
    assert failed_detail("raised", but_for_two("raise ValueError('no')")) == "ValueError: no"
    assert reasons(but_for_two("raise ValueError"), DOUBLE, *FIVE) == ["reference_raised"]


@pytest.mark.parametrize(
    ("candidate", "error"),
    [
        ("def f(:", "SyntaxError"),
        ("import no_such_package", "ModuleNotFoundError"),
        ("while True: pass", "timed_out while loading"),
        ("import os\nos._exit(3)", "died while loading: exited with status 3"),
        ("#" + "x" * 2_000_000, "limits.source_bytes"),
        (None, "no program in the response"),
    ],
)
def test_s55_a_program_that_does_not_load_fails_every_case(runner, ask, candidate, error):
    verdict = ask(DOUBLE, candidate, *FIVE, limits=replace(runner.limits, load_cpu_seconds=0.3))
    assert not verdict.loaded
    assert error in verdict.load_error
    assert {case.outcome for case in verdict.suites[0].cases} == {CaseOutcome.NOT_LOADED}


def test_s56_what_a_reference_cannot_answer_is_no_case(runner, reasons):
    limits = replace(runner.limits, reference_cpu_seconds_per_case=0.2)
    assert reasons(but_for_two("while True: pass"), DOUBLE, *FIVE, limits=limits) == ["reference_timed_out"]
    assert reasons(but_for_two("return object()"), DOUBLE, *FIVE) == ["unencodable"]
    assert reasons("import no_such_package\n", DOUBLE, *FIVE, entry_points=("f",)) == ["reference_raised"] * 5
    limits = replace(runner.limits, load_cpu_seconds=0.3)
    assert reasons(DOUBLE + "\nwhile True: pass\n", DOUBLE, *FIVE, limits=limits) == []
