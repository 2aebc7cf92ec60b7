"""Programs, and the results of their calls with every runner: rows of ``runner_contract`` beside ``SELF_TEST``."""

import math
from dataclasses import replace
from fractions import Fraction

from sandbox import Call, CallStatus, Program, ProgramResult, Role, Runner
from sandbox.checks.self_test import LIMITS, SELF_TEST, Check, Ends
from sandbox.text import TOTAL_SPENT

VALUE, RAISED, TIMED_OUT, DIED = CallStatus.VALUE, CallStatus.RAISED, CallStatus.TIMED_OUT, CallStatus.DIED
UNENCODABLE, OUTPUT_LIMIT = CallStatus.UNENCODABLE, CallStatus.OUTPUT_LIMIT
HANG = "    while True: pass\n"
BUSY = (
    "import time\ndef f(seconds):\n    end = time.process_time() + seconds\n"
    "    while time.process_time() < end: pass\n    return 1\n"
)
"""A program whose calls take as many CPU seconds as they say."""
COUNTING = "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)\n"
TEXT = "\ud800\0é\n\r\t\u2028😀\\\"'"


def run(runner: Runner, source: str, *calls: str | Call, role: Role = Role.CANDIDATE, **changes) -> ProgramResult:
    """Run one program with short limits. ``calls`` are expressions or objects of ``Call``."""
    made = tuple(call if isinstance(call, Call) else Call(expression=call) for call in calls)
    return runner.run(Program(**({"source": source, "calls": made, "limits": LIMITS} | changes)), role=role)


def kinds(result: ProgramResult) -> list[str]:
    """Return the status of each call as plain text, or the reason why the program did not load."""
    if not result.loaded:
        return [f"did not load: {result.load_error}"]
    return [answer.status.value for answer in result.results]


def row(name: str, source: str, expected: dict, **changes) -> Check:
    return Check(name=name, source=source, expected=expected, changes=changes)


VALUES = (
    row("bool_int_and_float_stay_apart", "", {"True": True, "1": 1, "1.0": 1.0}),
    row("nan_and_minus_zero_keep_their_form", "", {"float('nan')": math.nan, "-0.0": -0.0}),
    row("large_integers_get_through", "", {"7 ** 20_000": 7**20_000, "-(2 ** 40_000)": -(2**40_000)}),
    row(
        "subclasses_of_builtins_count_as_their_base",
        "from collections import Counter, namedtuple\nPoint = namedtuple('Point', 'x y')\n"
        "class Liar(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\n",
        {"Point(1, 2)": (1, 2), "Liar(3)": 3, "Counter('aab')": {"a": 2, "b": 1}},
    ),
    row(
        "cyclic_and_very_deep_values_are_unencodable",
        "def nest(n):\n    x = []\n    for _ in range(n): x = [x]\n    return x\n"
        "def cycle():\n    x = []\n    x.append(x)\n    return x\n",
        {"nest(100)": VALUE, "nest(300)": UNENCODABLE, "cycle()": UNENCODABLE},
    ),
    # What a later call does to a returned object does not change the earlier result.
    row(
        "a_result_is_a_snapshot",
        "seen = []\ndef f(x):\n    seen.append(x)\n    return seen",
        {"f(1)": [1], "f(2)": [1, 2]},
    ),
    row("text_of_every_kind_gets_through", "def f(x): return x", {f"f({TEXT!r})": TEXT, f"f({TEXT!a})": TEXT}),
    row("source_may_hold_any_character", "# ü 漢 😀\nnaïve = 'ß\u2029😀'\r\n", {"naïve": "ß\u2029😀"}),
    row(
        "large_calls_and_results_get_through",
        "def f(x): return x + x",
        {f"f({text!r})": text * 2 for text in ("a" * (9_000 + n) for n in range(60))},
    ),
    row("hundreds_of_calls_keep_their_order", "def f(x): return x * x", {f"f({n})": n * n for n in range(600)}),
    row(
        "printed_output_is_no_part_of_the_result",
        "import os, sys\nprint('loading')\n"
        "def f(n):\n    print('x' * n)\n    print('y' * n, file=sys.stderr, flush=True)\n"
        "    os.write(1, b'V\\x02\\x00\\x00\\x00i9;')\n    return n\n",
        {"f(1)": 1, "f(2_000_000)": 2_000_000, "f(3)": 3},
    ),
    row(
        "an_exception_is_raised_with_its_type_in_the_detail",
        "class Rude(BaseException):\n    def __str__(self): raise ValueError\n"
        "def f(): raise KeyError('place')\ndef g(): raise Rude\n",
        {
            "f()": Ends(RAISED, "KeyError"),
            "g()": Ends(RAISED, "Rude"),
            "nowhere()": Ends(RAISED, "NameError"),
            "1 +": Ends(RAISED, "SyntaxError"),
            "2": 2,
        },
    ),
    row(
        "a_program_that_reads_standard_input_is_a_function_of_it",
        "import sys\nn = int(input())\nif n == 3:\n    1 / 0\nprint(n + extra, sys.stdin.read())\nsys.exit(1)\n",
        {"run('1\\nrest')": "11 rest\n", "run('3')": RAISED, f"run('2\\n{'x' * 9999}')": f"12 {'x' * 9999}\n"},
        prelude="extra = 10",
        reads_input=True,
    ),
    row(
        "standard_input_is_a_file_that_only_gives",
        "import mmap, os, sys\nsize = os.fstat(0).st_size\nfirst = os.read(0, size)\nsys.stdin.seek(0)\n"
        "again = sys.stdin.read().encode()\nmapped = mmap.mmap(0, 0, access=mmap.ACCESS_READ)[:]\n"
        "def fails(call, *arguments):\n    try: call(*arguments)\n    except OSError: return True\n"
        "print(first == again == mapped, size, fails(os.write, 0, b'x'), fails(os.ftruncate, 4, 1 << 20))\n",
        {"run('a b  \\n\\n')": "True 7 True True\n", "run('\u00e9')": "True 2 True True\n"},
        reads_input=True,
    ),
    row(
        "printed_output_beyond_the_limit_is_output_limit",
        "print('x' * int(input()))",
        {"run('9')": "xxxxxxxxx\n", "run('2000000')": OUTPUT_LIMIT, "run('1')": "x\n"},
        reads_input=True,
    ),
)

SURROUNDINGS = (
    row("the_prelude_is_executed_first_in_the_same_namespace", "b = a + 1", {"b": 2}, prelude="a = 1"),
    row(
        "a_future_import_may_begin_the_source_after_a_prelude",
        "from __future__ import annotations\ndef f(x: Nowhere): return x\n",
        {"f(1)": 1},
        prelude="import math",
    ),
    row("the_program_is_not_the_main_module", "ran = False\nif __name__ == '__main__': ran = True\n", {"ran": False}),
    # Pickling, dataclasses and typing look a class's module up in ``sys.modules``.
    row(
        "the_program_is_importable_by_its_own_classes",
        "import copy, dataclasses, sys\n@dataclasses.dataclass\nclass Point:\n    x: int = 1\n"
        "def f(): return copy.deepcopy(Point(4)).x, Point.__module__ in sys.modules\n",
        {"f()": (4, True)},
    ),
    row(
        "the_program_finds_no_module_of_the_judge",
        "import sys\ndef f(): return [name for name in sys.modules if name.split('.')[0] == 'sandbox']",
        {"f()": []},
    ),
    row(
        "programs_find_nothing_secret_in_their_environment",
        "import os\ndef f(): return [name for name in os.environ if 'TOKEN' in name or 'KEY' in name]",
        {"f()": []},
    ),
    row("isolated_calls_do_not_see_one_another", COUNTING, {"f(1)": 1, "f(2)": 1, "f(3)": 1}, isolated=True),
    row(
        "an_early_end_of_an_isolated_call_costs_one_call",
        f"import os\ndef f(x):\n    if x == 1: os._exit(0)\n    if x != 2: return x\n{HANG}",
        {"f(0)": 0, "f(1)": DIED, "f(2)": TIMED_OUT, "f(3)": 3},
        isolated=True,
    ),
    row(
        "awaited_calls_are_awaited",
        "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n"
        "    return sum(await asyncio.gather(*[g(n) for n in range(x)]))\n"
        "async def g(n): return n\ndef plain(): return 1\n",
        {
            Call(expression="f(4)", awaited=True): 6,
            Call(expression="f(5)", awaited=True): 10,
            Call(expression="plain()", awaited=True): RAISED,
            "f(1)": UNENCODABLE,
        },
    ),
    row(
        "library_constructors_are_in_scope_only_for_calls_that_use_them",
        "def f(x): return len(x)",
        {
            Call(expression="f(Counter('aab'))", uses_library=True): 2,
            Call(expression="f(collections.deque([1, 2, 3]))", uses_library=True): 3,
            Call(expression="Fraction(1, 2)", uses_library=True): Fraction(1, 2),
            Call(expression="f([math.inf])", uses_library=True): 1,
            "f(Counter('aab'))": RAISED,
        },
    ),
)

TIMES = (
    row(
        "a_wait_at_top_level_is_not_held_to_the_limit_of_a_case",
        "import time\ntime.sleep(0.8)\nx = 1",
        {"x": 1},
        # A reference's case may take as long as its load: the proportion between the two must not decide.
        limits=replace(LIMITS, wall_seconds_per_case=0.3).for_reference(),
    ),
    row(
        "each_early_end_costs_one_call",
        "import os\ndef f(x):\n"
        "    if x == 1: os._exit(0)\n"
        "    if x == 3:\n        while True: pass\n"
        "    if x == 5: raise KeyError\n"
        "    if x == 6: return object()\n"
        "    if x == 7: return 'x' * 2_000_000\n"
        "    return x\n",
        {
            "f(0)": 0,
            "f(1)": DIED,
            "f(2)": 2,
            "f(3)": TIMED_OUT,
            "f(4)": 4,
            "f(5)": RAISED,
            "f(6)": UNENCODABLE,
            "f(7)": OUTPUT_LIMIT,
            "f(8)": 8,
        },
    ),
    row(
        "a_sleeping_hang_is_timed_out_and_the_next_call_answered",
        "import time\ndef f(x): time.sleep(x)",
        {"f(1000)": TIMED_OUT, "f(0)": None},
        limits=replace(LIMITS, wall_seconds_per_case=0.5),
    ),
    row("a_hang_in_c_code_is_timed_out", "", {"len(bytes(10**8)) and 7 ** 10**8 % 10": TIMED_OUT, "1": 1}),
    row(
        "a_hang_that_catches_everything_is_timed_out",
        "import signal\nfor number in range(1, 32):\n    try: signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "def f():\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass\n",
        {"f()": TIMED_OUT, "1": 1},
    ),
    row(
        "a_program_that_answered_once_is_asked_every_call",
        f"def f(x):\n    if x in (0, 8): return x\n{HANG}",
        {f"f({x})": x if x in (0, 8) else TIMED_OUT for x in range(9)},
        limits=replace(LIMITS, cpu_seconds_per_case=0.1),
    ),
    row(
        "an_import_of_what_is_there_inside_a_function_buys_no_time",
        BUSY.replace("):\n", "):\n    import math\n", 1),
        {"f(0.7)": TIMED_OUT, "f(0)": 1},
    ),
    row(
        "the_first_call_of_a_process_may_fill_what_the_dearest_call_needed",
        "import time\ntable = []\ndef f(x):\n    end = time.process_time() + 0.5\n"
        "    while not table and time.process_time() < end: pass\n    table.append(1)\n    return x\n",
        {"f(0)": 0, "f(1)": 1},
        reference_cpu_seconds=(0.0, 0.1),
    ),
    row(
        "the_total_time_is_never_below_twice_the_reference_s",
        BUSY,
        {"f(0.25)": 1, "f(0.250)": 1},
        limits=replace(LIMITS, total_seconds=0.3),
        reference_cpu_seconds=(0.3, 0.3),
    ),
    row(
        "the_reference_s_own_time_extends_the_limit",
        BUSY,
        {"f(0.4)": 1, "f(0.40)": TIMED_OUT},
        reference_cpu_seconds=(0.1, 0.0),
    ),
    row(
        "values_beyond_what_one_process_may_answer_cost_no_call",
        "def f(x): return 'x' * x",
        {f"f({3000 + x})": VALUE for x in range(200)},  # more than one read of the channel can hold
        limits=replace(LIMITS, value_bytes=1 << 12, total_output_bytes=1 << 14),
    ),
    row("a_wait_below_the_limit_is_no_time_out", "import time\ndef f(): return time.sleep(0.4)", {"f()": None}),
    row(
        "calls_left_after_the_total_time_are_timed_out_unasked",
        f"def f(x):\n    if x > 5: return x\n{HANG}",
        {f"f({x})": TIMED_OUT for x in range(9)} | {"f(9)": Ends(TIMED_OUT, TOTAL_SPENT)},
        limits=replace(LIMITS, min_cpu_seconds_per_case=0.2, total_seconds=0.5),
    ),
)

ENDS = (
    row(
        "a_crash_by_a_signal_has_died_and_costs_one_call",
        "import ctypes, os\ndef f(x):\n    if x == 1: ctypes.string_at(0)\n    if x == 2: os.abort()\n    return x\n",
        {"f(0)": 0, "f(1)": Ends(DIED, "SIGSEGV"), "f(2)": DIED, "f(3)": 3},
    ),
    row(
        "endless_recursion_is_raised_and_costs_one_call",
        "def f(n): return n and 1 + f(n - 1)",
        {"f(900)": 900, "f(10**9)": Ends(RAISED, "RecursionError"), "f(3)": 3},
    ),
    row(
        "calls_share_the_state_of_their_program_and_one_that_dies_is_loaded_afresh",
        "import os\nseen = []\ndef f(x):\n    seen.append(x)\n    if x == 2: os._exit(1)\n    return len(seen)\n",
        {"f(0)": 1, "f(1)": 2, "f(2)": DIED, "f(3)": 1},
    ),
    row(
        "more_open_files_than_the_limit_are_refused",
        "import os\ndef f(n): return len([os.dup(0) for _ in range(n)])\n",
        {"f(5)": 5, f"f({LIMITS.open_files + 10})": RAISED, "1": 1},
    ),
)

PROGRAMS = (*SELF_TEST, *VALUES, *SURROUNDINGS, *TIMES, *ENDS)

NOT_LOADING: dict[str, tuple[str, str, dict]] = {
    "a_syntax_error": ("def f(:", "SyntaxError", {}),
    "an_exception": ("raise ValueError('no way')", "ValueError: no way", {}),
    "an_exit": ("import sys\nsys.exit(0)", "SystemExit", {}),
    "an_exit_without_clean_up": ("import os\nos._exit(0)", "", {}),
    "a_hang": ("while True: pass", "timed_out", {}),
    "a_sleep": ("import time\ntime.sleep(1000)", "timed_out", {"limits": replace(LIMITS, load_idle_seconds=0.5)}),
    "a_crash": ("import ctypes\nctypes.string_at(0)", "", {}),
    "too_much_memory": ("x = bytearray(1 << 40)", "MemoryError", {}),
    "a_nul_byte": ("x = 1\0", "", {}),
    "a_lone_surrogate": ("x = '\ud800'", "", {}),
    "a_prelude_that_fails": ("x = 1", "no_such_module", {"prelude": "import no_such_module"}),
    "a_long_source": ("# " + "x" * 2000, "2002", {"limits": replace(LIMITS, source_bytes=1000)}),
}
"""Maps a name to a source, a word of its load error, and further fields of the program."""
