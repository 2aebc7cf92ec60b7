"""Checks of programs that end early: what does not load, hangs, exits, crashes, and what that costs."""

from __future__ import annotations

from dataclasses import replace

from ..runners.base import HANGS_THROUGHOUT, TOTAL_SPENT, CallStatus, Runner
from .harness import LIMITS, check, expect, expect_equal, expect_kinds, expect_not_loaded, expect_values, kinds, run

V, RAISED, TIMED_OUT, DIED = CallStatus.VALUE, CallStatus.RAISED, CallStatus.TIMED_OUT, CallStatus.DIED
HANG = "    while True: pass\n"


@check()
def a_syntax_error_does_not_load(runner: Runner) -> None:
    expect_not_loaded(run(runner, "def f(:", "f()"), "SyntaxError")


@check()
def an_exception_at_top_level_does_not_load(runner: Runner) -> None:
    expect_not_loaded(run(runner, "raise ValueError('no way')", "f()"), "ValueError: no way")


@check()
def an_exit_at_top_level_does_not_load(runner: Runner) -> None:
    expect_not_loaded(run(runner, "import sys\nsys.exit(0)", "1"), "SystemExit")
    expect_not_loaded(run(runner, "import os\nos._exit(0)", "1"))


@check()
def a_hang_at_top_level_does_not_load(runner: Runner) -> None:
    expect_not_loaded(run(runner, "while True: pass", "1"), "timed_out")


@check()
def a_sleep_without_end_at_top_level_does_not_load(runner: Runner) -> None:
    limits = replace(LIMITS, load_idle_seconds=0.5)
    expect_not_loaded(run(runner, "import time\ntime.sleep(1000)", "1", limits=limits), "timed_out")


@check()
def a_wait_at_top_level_is_not_held_to_the_limit_of_a_case(runner: Runner) -> None:
    """A reference's case may take as long as its load: the proportion between the two must not decide."""
    limits = replace(LIMITS, wall_seconds_per_case=0.3).for_reference()
    expect_kinds(run(runner, "import time\ntime.sleep(0.8)\nx = 1", "x", limits=limits), [CallStatus.VALUE])


@check()
def a_crash_at_top_level_does_not_load(runner: Runner) -> None:
    expect_not_loaded(run(runner, "import ctypes\nctypes.string_at(0)", "1"))


@check()
def running_out_of_memory_at_top_level_does_not_load(runner: Runner) -> None:
    expect_not_loaded(run(runner, "x = bytearray(1 << 40)", "1"), "MemoryError")


@check()
def a_nul_byte_or_a_lone_surrogate_in_the_source_does_not_load(runner: Runner) -> None:
    expect_not_loaded(run(runner, "x = 1\0", "x"))
    expect_not_loaded(run(runner, "x = '\ud800'", "x"))


@check()
def a_source_over_the_limit_does_not_load_and_says_both_numbers(runner: Runner) -> None:
    limits = replace(LIMITS, source_bytes=1000)
    result = run(runner, "# " + "x" * 2000, "1", limits=limits)
    expect_not_loaded(result, "1000")
    expect("2002" in result.load_error, "the error must name the size", result.load_error)


@check()
def a_prelude_that_fails_does_not_load(runner: Runner) -> None:
    expect_not_loaded(run(runner, "x = 1", "x", prelude="import no_such_module"), "no_such_module")


@check()
def a_program_without_calls_loads(runner: Runner) -> None:
    for source in ("x = 1", ""):
        result = run(runner, source)
        expect_equal((result.loaded, result.results, result.load_error), (True, (), ""), "a program without calls")


@check()
def each_early_end_costs_one_call(runner: Runner) -> None:
    source = (
        "import os\ndef f(x):\n"
        "    if x == 1: os._exit(0)\n"
        "    if x == 3:\n        while True: pass\n"
        "    if x == 5: raise KeyError\n"
        "    if x == 6: return object()\n"
        "    if x == 7: return 'x' * 2_000_000\n"
        "    return x\n"
    )
    result = run(runner, source, *(f"f({x})" for x in range(9)))
    expect_kinds(
        result, [V, DIED, V, TIMED_OUT, V, RAISED, CallStatus.UNENCODABLE, CallStatus.OUTPUT_LIMIT, V]
    )  # fmt: skip


@check()
def a_busy_hang_is_timed_out_and_the_next_call_answered(runner: Runner) -> None:
    result = run(runner, f"def f(x):\n    if x: return x\n{HANG}", "f(0)", "f(1)")
    expect_kinds(result, [TIMED_OUT, V])
    expect(result.results[0].detail != "", "a time-out must say of what", result.results[0])


@check()
def a_sleeping_hang_is_timed_out_and_the_next_call_answered(runner: Runner) -> None:
    limits = replace(LIMITS, wall_seconds_per_case=0.5)
    result = run(runner, "import time\ndef f(x): time.sleep(x)", "f(1000)", "f(0)", limits=limits)
    expect_kinds(result, [TIMED_OUT, V])


@check()
def a_hang_in_c_code_is_timed_out(runner: Runner) -> None:
    result = run(runner, "def f(n): return len(bytes(n)) and 7 ** n % 10", "f(100_000_000)", "1")
    expect_kinds(result, [TIMED_OUT, V])


@check()
def a_hang_that_catches_everything_is_timed_out(runner: Runner) -> None:
    source = (
        "import signal\nfor number in range(1, 32):\n    try: signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "def f():\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass\n"
    )
    expect_kinds(run(runner, source, "f()", "1"), [TIMED_OUT, V])


@check()
def hanging_in_every_call_gets_cheaper_each_time(runner: Runner) -> None:
    result = run(runner, f"def f(x):\n{HANG}", *(f"f({x})" for x in range(6)))
    expect_kinds(result, [TIMED_OUT] * 6)
    most = 6 * LIMITS.cpu_seconds_per_case
    expect(result.cpu_seconds < most, f"six hangs must cost less than {most} CPU seconds", result.cpu_seconds)


@check()
def a_program_that_only_hangs_is_asked_a_few_calls_only(runner: Runner) -> None:
    source = f"def f(x):\n    if x == 9: return x\n{HANG}"
    result = run(runner, source, *(f"f({x})" for x in range(10)), max_timeouts_without_result=7)
    expect_kinds(result, [TIMED_OUT] * 10)
    unasked = [answer.detail == HANGS_THROUGHOUT for answer in result.results]
    expect_equal(unasked, [False] * 7 + [True] * 3, "calls not made")


@check()
def a_program_that_answered_once_is_asked_every_call(runner: Runner) -> None:
    limits = replace(LIMITS, cpu_seconds_per_case=0.1)
    source = f"def f(x):\n    if x in (0, 8): return x\n{HANG}"
    result = run(runner, source, *(f"f({x})" for x in range(9)), limits=limits)
    expect_kinds(result, [V, *[TIMED_OUT] * 7, V])


@check()
def an_import_inside_a_function_is_no_time_out(runner: Runner) -> None:
    source = (
        "import time\ndef f(x):\n    import {}\n    end = time.process_time() + x\n"
        "    while time.process_time() < end: pass\n    return 1\n"
    )
    expect_kinds(run(runner, source.format("wave"), "f(0.7)", "f(0.7)"), [V, TIMED_OUT])
    expect_kinds(run(runner, source.format("math"), "f(0.7)", "f(0)"), [TIMED_OUT, V])


@check()
def the_first_call_of_a_process_may_fill_what_the_dearest_call_needed(runner: Runner) -> None:
    source = (
        "import time\ntable = []\ndef f(x):\n    end = time.process_time() + 0.5\n"
        "    while not table and time.process_time() < end: pass\n    table.append(1)\n    return x\n"
    )
    result = run(runner, source, "f(0)", "f(1)", reference_cpu_seconds=(0.0, 0.1))
    expect_values(result, 0, 1)


@check()
def the_total_time_is_never_below_twice_the_reference_s(runner: Runner) -> None:
    source = (
        "import time\ndef f(seconds):\n    end = time.process_time() + seconds\n"
        "    while time.process_time() < end: pass\n    return 1\n"
    )
    limits = replace(LIMITS, total_seconds=0.3)
    result = run(runner, source, "f(0.25)", "f(0.25)", limits=limits, reference_cpu_seconds=(0.3, 0.3))
    expect_kinds(result, [V, V])


@check()
def values_beyond_what_one_process_may_answer_cost_no_call(runner: Runner) -> None:
    limits = replace(LIMITS, value_bytes=1 << 12, total_output_bytes=1 << 14)
    result = run(runner, "def f(x): return 'x' * x", *(f"f({3000 + x})" for x in range(20)), limits=limits)
    expect_kinds(result, [V] * 20)


@check()
def the_reference_s_own_time_extends_the_limit(runner: Runner) -> None:
    source = (
        "import time\ndef f(seconds):\n    end = time.process_time() + seconds\n"
        "    while time.process_time() < end: pass\n    return 1\n"
    )
    result = run(runner, source, "f(0.4)", "f(0.4)", reference_cpu_seconds=(0.1, 0.0))
    expect_kinds(result, [V, TIMED_OUT])


@check()
def a_wait_below_the_limit_is_no_time_out(runner: Runner) -> None:
    expect_values(run(runner, "import time\ndef f(): return time.sleep(0.4)", "f()"), None)


@check()
def calls_left_after_the_total_time_are_timed_out_unasked(runner: Runner) -> None:
    limits = replace(LIMITS, min_cpu_seconds_per_case=0.2, total_seconds=0.5)
    source = f"def f(x):\n    if x > 5: return x\n{HANG}"
    result = run(runner, source, *(f"f({x})" for x in range(10)), limits=limits)
    expect_kinds(result, [TIMED_OUT] * 10)
    expect_equal(result.results[-1].detail, TOTAL_SPENT, "detail of a call that was not made")


@check()
def the_limits_are_the_program_s_not_the_runner_s(runner: Runner) -> None:
    limits = replace(LIMITS, cpu_seconds_per_case=0.05, value_bytes=100)
    result = run(runner, f"def f(x):\n    if x: return 'x' * x\n{HANG}", "f(0)", "f(50)", "f(200)", limits=limits)
    expect_kinds(result, [TIMED_OUT, V, CallStatus.OUTPUT_LIMIT])
    expect(result.cpu_seconds < 1.0, "a shorter limit must cost less", result.cpu_seconds)


@check()
def leaving_by_exit_is_raised_or_died_and_costs_one_call(runner: Runner) -> None:
    source = "import os, sys\ndef f(x):\n    if x == 1: sys.exit(3)\n    if x == 2: os._exit(3)\n    return x\n"
    result = run(runner, source, "f(0)", "f(1)", "f(2)", "f(4)")
    expect_kinds(result, [V, RAISED, DIED, V])
    expect("SystemExit" in result.results[1].detail, "the detail must name SystemExit", result.results[1])
    expect("3" in result.results[2].detail, "the detail must name the status", result.results[2])


@check()
def a_crash_by_a_signal_has_died_and_costs_one_call(runner: Runner) -> None:
    source = (
        "import ctypes, os\ndef f(x):\n    if x == 1: ctypes.string_at(0)\n    if x == 2: os.abort()\n    return x\n"
    )
    result = run(runner, source, "f(0)", "f(1)", "f(2)", "f(3)")
    expect_kinds(result, [V, DIED, DIED, V])
    expect("SIGSEGV" in result.results[1].detail, "the detail must name the signal", result.results[1])


@check()
def running_out_of_memory_is_raised_and_costs_one_call(runner: Runner) -> None:
    limits = replace(LIMITS, memory_bytes=256 << 20)
    source = "def f(n):\n    x = bytearray(n)\n    return len(x)\n"
    result = run(runner, source, "f(1000)", "f(1 << 29)", "f(1 << 40)", "f(2000)", limits=limits)
    expect_kinds(result, [V, RAISED, RAISED, V])
    expect("MemoryError" in result.results[1].detail, "the detail must name MemoryError", result.results[1])


@check()
def endless_recursion_is_raised_and_costs_one_call(runner: Runner) -> None:
    result = run(runner, "def f(n): return n and 1 + f(n - 1)", "f(900)", "f(10**9)", "f(3)")
    expect_equal([kinds(result)[0], kinds(result)[1], kinds(result)[2]], ["value", "raised", "value"], "kinds")
    expect("RecursionError" in result.results[1].detail, "the detail must name RecursionError", result.results[1])


@check()
def recursion_without_python_s_guard_costs_one_call(runner: Runner) -> None:
    source = (
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(n):\n    if n == 0: return 0\n"
        "    return [f(n - 1) for _ in range(1)][0] + 1\n"
    )
    result = run(runner, source, "f(5)", "f(10**8)", "f(6)")
    expect_equal(kinds(result)[::2], ["value", "value"], "kinds around the deep call")
    expect(kinds(result)[1] in ("died", "raised", "timed_out"), "the deep call must end", result.results[1])


@check()
def a_program_that_dies_is_loaded_afresh_for_the_next_call(runner: Runner) -> None:
    source = "import os\nseen = []\ndef f(x):\n    seen.append(x)\n    if x == 2: os._exit(1)\n    return len(seen)\n"
    result = run(runner, source, "f(0)", "f(1)", "f(2)", "f(3)")
    expect_kinds(result, [V, V, DIED, V])
    expect_equal(result.results[3].value, b"i1;", "the first call after the death")


@check()
def closing_every_descriptor_costs_at_most_its_own_call(runner: Runner) -> None:
    result = run(runner, "import os\ndef f():\n    os.closerange(0, 256)\n    return 1", "1", "f()", "2")
    expect_equal(kinds(result)[::2], ["value", "value"], "kinds around the call")
    expect(kinds(result)[1] in ("died", "value", "raised"), "the call that closed everything", result.results[1])


@check()
def more_open_files_than_the_limit_are_refused(runner: Runner) -> None:
    source = "import os\ndef f(n):\n    return len([os.dup(0) for _ in range(n)])\n"
    result = run(runner, source, "f(5)", f"f({LIMITS.open_files + 10})", "1")
    expect_kinds(result, [V, RAISED, V])
