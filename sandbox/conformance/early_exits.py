"""Checks of programs that end early: what does not load, hangs, exits, crashes, and what that costs."""

from dataclasses import replace

from ..runners.base import HANGS_THROUGHOUT, TOTAL_SPENT, CallStatus, Runner
from . import harness
from .harness import BUSY, LIMITS, Ends, check, comes_to, does_not_load, expect, expect_equal, expect_kinds, kinds, run

V, RAISED, TIMED_OUT, DIED = CallStatus.VALUE, CallStatus.RAISED, CallStatus.TIMED_OUT, CallStatus.DIED
HANG = "    while True: pass\n"

# fmt: off
# ------------------------------ loading ------------------------------

does_not_load("a_syntax_error_does_not_load", "def f(:", "SyntaxError")
does_not_load("an_exception_at_top_level_does_not_load", "raise ValueError('no way')", "ValueError: no way")
does_not_load("an_exit_at_top_level_does_not_load", "import sys\nsys.exit(0)", "SystemExit")
does_not_load("an_exit_without_clean_up_at_top_level_does_not_load", "import os\nos._exit(0)")
does_not_load("a_hang_at_top_level_does_not_load", "while True: pass", "timed_out")
does_not_load("a_sleep_without_end_at_top_level_does_not_load", "import time\ntime.sleep(1000)", "timed_out",
    limits=replace(LIMITS, load_idle_seconds=0.5))
# A reference's case may take as long as its load: the proportion between the two must not decide.
comes_to("a_wait_at_top_level_is_not_held_to_the_limit_of_a_case", "import time\ntime.sleep(0.8)\nx = 1", {"x": 1},
    limits=replace(LIMITS, wall_seconds_per_case=0.3).for_reference())
does_not_load("a_crash_at_top_level_does_not_load", "import ctypes\nctypes.string_at(0)")
does_not_load("running_out_of_memory_at_top_level_does_not_load", "x = bytearray(1 << 40)", "MemoryError")
does_not_load("a_nul_byte_in_the_source_does_not_load", "x = 1\0")
does_not_load("a_lone_surrogate_in_the_source_does_not_load", "x = '\ud800'")
does_not_load("a_prelude_that_fails_does_not_load", "x = 1", "no_such_module", prelude="import no_such_module")


@check()
def a_source_over_the_limit_does_not_load_and_says_both_numbers(runner: Runner) -> None:
    limits = replace(LIMITS, source_bytes=1000)
    result = run(runner, "# " + "x" * 2000, "1", limits=limits)
    harness.expect_not_loaded(result, "1000")
    expect("2002" in result.load_error, "the error must name the size", result.load_error)


@check()
def a_program_without_calls_loads(runner: Runner) -> None:
    for source in ("x = 1", ""):
        result = run(runner, source)
        expect_equal((result.loaded, result.results, result.load_error), (True, (), ""), "a program without calls")


# ------------------------------ calls that hang ------------------------------

comes_to("each_early_end_costs_one_call",
    "import os\ndef f(x):\n"
    "    if x == 1: os._exit(0)\n"
    "    if x == 3:\n        while True: pass\n"
    "    if x == 5: raise KeyError\n"
    "    if x == 6: return object()\n"
    "    if x == 7: return 'x' * 2_000_000\n"
    "    return x\n",
    {
        "f(0)": 0, "f(1)": DIED, "f(2)": 2, "f(3)": TIMED_OUT, "f(4)": 4, "f(5)": RAISED,
        "f(6)": CallStatus.UNENCODABLE, "f(7)": CallStatus.OUTPUT_LIMIT, "f(8)": 8,
    })
comes_to("a_busy_hang_is_timed_out_and_the_next_call_answered", f"def f(x):\n    if x: return x\n{HANG}",
    {"f(0)": Ends(TIMED_OUT, "CPU time"), "f(1)": 1}, is_quick=True)
comes_to("a_sleeping_hang_is_timed_out_and_the_next_call_answered", "import time\ndef f(x): time.sleep(x)",
    {"f(1000)": TIMED_OUT, "f(0)": None}, limits=replace(LIMITS, wall_seconds_per_case=0.5))
comes_to("a_hang_in_c_code_is_timed_out", "def f(n): return len(bytes(n)) and 7 ** n % 10",
    {"f(100_000_000)": TIMED_OUT, "1": 1})
comes_to("a_hang_that_catches_everything_is_timed_out",
    "import signal\nfor number in range(1, 32):\n    try: signal.signal(number, signal.SIG_IGN)\n"
    "    except (OSError, ValueError): pass\n"
    "def f():\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass\n",
    {"f()": TIMED_OUT, "1": 1})


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


comes_to("a_program_that_answered_once_is_asked_every_call", f"def f(x):\n    if x in (0, 8): return x\n{HANG}",
    {f"f({x})": x if x in (0, 8) else TIMED_OUT for x in range(9)}, limits=replace(LIMITS, cpu_seconds_per_case=0.1))
comes_to("an_import_inside_a_function_is_no_time_out", BUSY.replace("):\n", "):\n    import wave\n", 1),
    {"f(0.7)": 1, "f(0.70)": TIMED_OUT}, is_quick=True)
comes_to("an_import_of_what_is_there_inside_a_function_buys_no_time", BUSY.replace("):\n", "):\n    import math\n", 1),
    {"f(0.7)": TIMED_OUT, "f(0)": 1})
comes_to("the_first_call_of_a_process_may_fill_what_the_dearest_call_needed",
    "import time\ntable = []\ndef f(x):\n    end = time.process_time() + 0.5\n"
    "    while not table and time.process_time() < end: pass\n    table.append(1)\n    return x\n",
    {"f(0)": 0, "f(1)": 1}, reference_cpu_seconds=(0.0, 0.1))
comes_to("the_total_time_is_never_below_twice_the_reference_s", BUSY, {"f(0.25)": 1, "f(0.250)": 1},
    limits=replace(LIMITS, total_seconds=0.3), reference_cpu_seconds=(0.3, 0.3))
comes_to("the_reference_s_own_time_extends_the_limit", BUSY, {"f(0.4)": 1, "f(0.40)": TIMED_OUT},
    reference_cpu_seconds=(0.1, 0.0))
comes_to("values_beyond_what_one_process_may_answer_cost_no_call", "def f(x): return 'x' * x",
    {f"f({3000 + x})": V for x in range(20)}, limits=replace(LIMITS, value_bytes=1 << 12, total_output_bytes=1 << 14))
comes_to("a_wait_below_the_limit_is_no_time_out", "import time\ndef f(): return time.sleep(0.4)", {"f()": None})
comes_to("calls_left_after_the_total_time_are_timed_out_unasked", f"def f(x):\n    if x > 5: return x\n{HANG}",
    {f"f({x})": TIMED_OUT for x in range(9)} | {"f(9)": Ends(TIMED_OUT, TOTAL_SPENT)},
    limits=replace(LIMITS, min_cpu_seconds_per_case=0.2, total_seconds=0.5))


@check()
def the_limits_are_the_program_s_not_the_runner_s(runner: Runner) -> None:
    limits = replace(LIMITS, cpu_seconds_per_case=0.05, value_bytes=100)
    result = run(runner, f"def f(x):\n    if x: return 'x' * x\n{HANG}", "f(0)", "f(50)", "f(200)", limits=limits)
    expect_kinds(result, [TIMED_OUT, V, CallStatus.OUTPUT_LIMIT])
    expect(result.cpu_seconds < 1.0, "a shorter limit must cost less", result.cpu_seconds)


# ------------------------------ calls that end their process, or what it has ------------------------------

comes_to("leaving_by_exit_is_raised_or_died_and_costs_one_call",
    "import os, sys\ndef f(x):\n    if x == 1: sys.exit(3)\n    if x == 2: os._exit(3)\n    return x\n",
    {"f(0)": 0, "f(1)": Ends(RAISED, "SystemExit"), "f(2)": Ends(DIED, "3"), "f(4)": 4}, is_quick=True)
comes_to("a_crash_by_a_signal_has_died_and_costs_one_call",
    "import ctypes, os\ndef f(x):\n    if x == 1: ctypes.string_at(0)\n    if x == 2: os.abort()\n    return x\n",
    {"f(0)": 0, "f(1)": Ends(DIED, "SIGSEGV"), "f(2)": DIED, "f(3)": 3})
comes_to("running_out_of_memory_is_raised_and_costs_one_call", "def f(n):\n    x = bytearray(n)\n    return len(x)\n",
    {"f(1000)": 1000, "f(1 << 29)": Ends(RAISED, "MemoryError"), "f(1 << 40)": RAISED, "f(2000)": 2000},
    limits=replace(LIMITS, memory_bytes=256 << 20), is_quick=True)
comes_to("endless_recursion_is_raised_and_costs_one_call", "def f(n): return n and 1 + f(n - 1)",
    {"f(900)": 900, "f(10**9)": Ends(RAISED, "RecursionError"), "f(3)": 3})
comes_to("a_program_that_dies_is_loaded_afresh_for_the_next_call",
    "import os\nseen = []\ndef f(x):\n    seen.append(x)\n    if x == 2: os._exit(1)\n    return len(seen)\n",
    {"f(0)": 1, "f(1)": 2, "f(2)": DIED, "f(3)": 1})
comes_to("more_open_files_than_the_limit_are_refused",
    "import os\ndef f(n): return len([os.dup(0) for _ in range(n)])\n",
    {"f(5)": 5, f"f({LIMITS.open_files + 10})": RAISED, "1": 1})
# fmt: on


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
def closing_every_descriptor_costs_at_most_its_own_call(runner: Runner) -> None:
    result = run(runner, "import os\ndef f():\n    os.closerange(0, 256)\n    return 1", "1", "f()", "2")
    expect_equal(kinds(result)[::2], ["value", "value"], "kinds around the call")
    expect(kinds(result)[1] in ("died", "value", "raised"), "the call that closed everything", result.results[1])
