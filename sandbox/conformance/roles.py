"""Checks of what a program shares with others, of roles, timing, awaiting, threads, confinement and closing."""

import concurrent.futures
import dataclasses
from fractions import Fraction

from ..cases.case import Call
from ..errors import SandboxUnavailableError
from ..limits import Limits
from ..runners.base import CallStatus, ProgramResult, Role, Runner
from ..values.decoding import decode
from .harness import BUSY, check, comes_to, expect, expect_equal, expect_values, kinds, program, run

V, RAISED, TIMED_OUT, DIED = CallStatus.VALUE, CallStatus.RAISED, CallStatus.TIMED_OUT, CallStatus.DIED
COUNTING = "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)\n"

# fmt: off
# ------------------------------ what a program finds ------------------------------

comes_to("the_prelude_is_executed_first_in_the_same_namespace", "b = a + 1", {"b": 2}, prelude="a = 1")
comes_to("a_future_import_may_begin_the_source_after_a_prelude",
    "from __future__ import annotations\ndef f(x: Nowhere): return x\n", {"f(1)": 1}, prelude="import math")
comes_to("the_program_is_not_the_main_module", "ran = False\nif __name__ == '__main__':\n    ran = True\n",
    {"ran": False})
# Pickling, dataclasses and typing look a class's module up in ``sys.modules``.
comes_to("the_program_is_importable_by_its_own_classes",
    "import copy, dataclasses, sys\n@dataclasses.dataclass\nclass Point:\n    x: int = 1\n"
    "def f(): return copy.deepcopy(Point(4)).x, Point.__module__ in sys.modules\n", {"f()": (4, True)})
comes_to("the_program_finds_no_module_of_the_judge",
    "import sys\ndef f(): return sorted(name for name in sys.modules if name.split('.')[0] == 'sandbox')", {"f()": []})
comes_to("programs_find_nothing_secret_in_their_environment",
    "import os\ndef f(): return [name for name in os.environ if 'TOKEN' in name or 'KEY' in name]", {"f()": []})
comes_to("programs_find_no_expected_value_in_their_callers",
    "import sys\ndef f():\n    frame, names = sys._getframe(1), set()\n"
    "    while frame:\n        names |= {*frame.f_locals, *frame.f_globals}\n        frame = frame.f_back\n"
    "    return sorted(names & {'expected', 'answer', 'claim', 'spec'})\n", {"f()": []}, is_quick=True)
comes_to("calls_share_the_state_of_their_program", COUNTING, {"f(1)": 1, "f(2)": 2, "f(3)": 3})
comes_to("isolated_calls_do_not_see_one_another", COUNTING, {"f(1)": 1, "f(2)": 1, "f(3)": 1}, isolated=True)
comes_to("an_early_end_of_an_isolated_call_costs_one_call",
    "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    if x == 2:\n        while True: pass\n    return x\n",
    {"f(0)": 0, "f(1)": DIED, "f(2)": TIMED_OUT, "f(3)": 3}, isolated=True)
comes_to("awaited_calls_are_awaited",
    "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n"
    "    return sum(await asyncio.gather(*[g(n) for n in range(x)]))\n"
    "async def g(n): return n\ndef plain(): return 1\n",
    {
        Call(expression="f(4)", awaited=True): 6,
        Call(expression="f(5)", awaited=True): 10,
        Call(expression="plain()", awaited=True): RAISED,
        "f(1)": CallStatus.UNENCODABLE,
    })
comes_to("library_constructors_are_in_scope_only_for_calls_that_use_them", "def f(x): return len(x)",
    {
        Call(expression="f(Counter('aab'))", uses_library=True): 2,
        Call(expression="f(collections.deque([1, 2, 3]))", uses_library=True): 3,
        Call(expression="Fraction(1, 2)", uses_library=True): Fraction(1, 2),
        Call(expression="f([math.inf])", uses_library=True): 1,
        "f(Counter('aab'))": RAISED,
    })
comes_to("a_program_may_use_threads",
    "import threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
    "def f(n):\n    with ThreadPoolExecutor(4) as pool: return sum(pool.map(abs, range(n)))\n", {"f(10)": 45},
    is_quick=True)

# ------------------------------ what it can do to the machine ------------------------------

comes_to("programs_cannot_read_files_of_the_machine", "def f(path): return open(path).read(1)",
    {f"f({path!r})": RAISED for path in ("/etc/passwd", "/proc/self/status", "/proc/1/environ")}, needs=("confines",),
    is_quick=True)
comes_to("programs_cannot_write_files_of_the_machine",
    "import os\ndef f(path):\n    with open(path, 'w') as file: file.write('x')\n",
    {f"f({path!r})": RAISED for path in ("/etc/left", "/var/tmp/left", "/dev/shm/left")}, needs=("confines",),
    is_quick=True)
comes_to("programs_cannot_start_processes",
    "import os, subprocess\ndef f(): return os.fork()\ndef g(): return subprocess.run(['true']).returncode\n",
    {"f()": RAISED, "g()": RAISED}, needs=("confines",), is_quick=True)
comes_to("programs_cannot_open_sockets", "import socket\ndef f(family): return socket.socket(family).fileno()",
    {"f(socket.AF_INET)": RAISED, "f(socket.AF_UNIX)": RAISED}, needs=("confines",), is_quick=True)
comes_to("programs_cannot_signal_others", "import os", {"os.kill(os.getppid(), 0)": RAISED, "os.kill(1, 0)": RAISED},
    needs=("confines",), is_quick=True)
# Tier 0 refuses what the private folder of other tiers bounds: neither reaches the machine's files.
comes_to("programs_cannot_fill_the_disk_or_change_the_library",
    "import os\ndef f(): return open('big', 'wb').write(bytes(1 << 28))\n"
    "def g(): return open(os.__file__, 'r+b').name\n",
    {"f()": RAISED, "g()": RAISED}, needs=("confines",), is_quick=True)
comes_to("programs_see_no_file_outside_their_root", "import os", {"os.stat('/etc/passwd')": RAISED},
    needs=("confines", "tier"), is_quick=True)
comes_to("files_of_the_private_folder_work_and_do_not_outlive_their_process",
    "import os, tempfile\ndef f(n):\n    if os.path.exists('left'): return 'found'\n"
    "    with open('/tmp/left', 'w') as file: file.write('x' * n)\n    if n == 2: os._exit(0)\n"
    "    with tempfile.TemporaryFile() as copy:\n        copy.write(open('left', 'rb').read() * 2)\n"
    "        return copy.tell()\n", {"f(1)": 2, "f(2)": DIED, "f(3)": 6}, isolated=True, needs=("confines", "tier"),
    is_quick=True)
# fmt: on

# ------------------------------ several programs, and what is said of them ------------------------------


@check()
def programs_do_not_see_one_another(runner: Runner) -> None:
    """What one program leaves in builtins, modules, the environment and the interpreter is gone for the next."""
    leave = (
        "import builtins, json, os, sys, threading\nbuiltins.left = json.left = sys.left = threading.left = 1\n"
        "os.environ['LEFT'] = '1'\nsys.modules['left'] = sys\nsys.setrecursionlimit(5000)\n"
    )
    look = (
        "import builtins, json, os, sys, threading\n"
        "def f(): return [hasattr(m, 'left') for m in (builtins, json, sys, threading)]\n"
        "def g(): return 'LEFT' in os.environ, 'left' in sys.modules, sys.getrecursionlimit() == 5000\n"
    )
    for _ in range(2):
        expect(run(runner, leave).loaded, "the first program loads")
        expect_values(run(runner, look, "f()", "g()"), [False] * 4, (False, False, False))


@check()
def roles_have_hash_seeds_of_their_own_and_keep_them(runner: Runner) -> None:
    def hashes(role: Role) -> object:
        result = run(runner, "", "[hash('a'), hash('sandbox')]", role=role)
        expect_equal(kinds(result), ["value"], "kinds of the answers")
        return decode(result.results[0].value)

    first = {role: hashes(role) for role in Role}
    expect_equal({role: hashes(role) for role in Role}, first, "hashes in a second run")
    expect(len({str(value) for value in first.values()}) == len(Role), "each role has its own seed", first)


@check()
def random_numbers_are_the_same_in_every_run_of_a_role(runner: Runner) -> None:
    first, second = (run(runner, "import random", "random.random()", "random.randrange(10**9)") for _ in range(2))
    expect_equal(first.results, second.results, "random numbers of a second run")


@check()
def timed_calls_report_their_cpu_seconds(runner: Runner) -> None:
    result = run(runner, BUSY, "f(0)", "f(0.15)", "f(0)", timed=True)
    expect_values(result, 1, 1, 1)
    seconds = [answer.cpu_seconds for answer in result.results]
    expect(0.14 <= seconds[1] <= 0.4, "CPU seconds of the busy call", seconds)
    expect(max(seconds[0], seconds[2]) < 0.1, "CPU seconds of the idle calls", seconds)


@check()
def timing_changes_no_answer(runner: Runner) -> None:
    source = "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    if x == 2: raise KeyError\n    return x\n"
    calls = [f"f({x})" for x in range(5)]
    timed, untimed = (run(runner, source, *calls, timed=timed) for timed in (True, False))
    expect_equal(
        [(a.status, a.value) for a in timed.results], [(a.status, a.value) for a in untimed.results], "answers"
    )


@check()
def calls_that_are_not_timed_report_no_cpu_seconds(runner: Runner) -> None:
    result = run(runner, "", "sum(range(10**5))")
    expect_equal([answer.cpu_seconds for answer in result.results], [0.0], "CPU seconds of an untimed call")


@check()
def the_result_states_what_was_used(runner: Runner) -> None:
    result = run(runner, "def f(): return sum(range(10**6))", "f()")
    expect_equal((result.loaded, result.load_error, len(result.results)), (True, "", 1), "fields of the result")
    expect(0.0 < result.cpu_seconds < 30.0, "CPU seconds", result.cpu_seconds)
    expect(result.wall_seconds > 0.0, "wall seconds", result.wall_seconds)


@check()
def threads_of_the_caller_share_a_runner(runner: Runner) -> None:
    def one(n: int) -> ProgramResult:
        return run(runner, f"def f(): return {n}", "f()", role=list(Role)[n % 3])

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        results = list(pool.map(one, range(9)))
    for n, result in enumerate(results):
        expect_values(result, n)


@check()
def a_program_that_hangs_leaves_the_others_their_answers(runner: Runner) -> None:
    def one(n: int) -> ProgramResult:
        source = f"def f():\n    while True: pass\ndef g(): return {n}"
        return run(runner, source, "g()", *(["f()"] if n % 3 == 0 else []), "g()")

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for n, result in enumerate(pool.map(one, range(6))):
            expect_equal({answer.value for answer in result.results if answer.status is V}, {b"i%d;" % n}, "values")
            expect_equal(kinds(result).count("timed_out"), int(n % 3 == 0), f"time-outs among {kinds(result)}")


@check()
def a_program_can_be_run_again_with_the_same_answers(runner: Runner) -> None:
    source = "def f(x): return {str(n): n for n in range(x)}"
    first, second = (run(runner, source, "f(5)", "list({'a', 'b', 'c'})") for _ in range(2))
    expect_equal(first.results, second.results, "answers of the second run")


@check()
def no_expected_value_is_part_of_a_program(runner: Runner) -> None:
    """All that is sent names the call; answering needs no more."""
    sent = {field.name for field in dataclasses.fields(Call)} | {
        field.name for field in dataclasses.fields(program(""))
    }
    expect(not any("expect" in name or "claim" in name for name in sent), "fields of a program", sent)
    expect_values(run(runner, "def f(x): return x + 1", "f(1)"), 2)


@check()
def the_runner_names_its_default_limits(runner: Runner) -> None:
    expect(isinstance(runner.limits, Limits), "runner.limits must be Limits", runner.limits)


@check(closes=True)
def a_closed_runner_is_an_outage_and_closing_is_idempotent(runner: Runner) -> None:
    runner.close()
    runner.close()
    for role in Role:
        try:
            result = run(runner, "x = 1", role=role)
        except SandboxUnavailableError:
            continue
        raise AssertionError(f"a closed runner must raise SandboxUnavailableError, got {result!r}")
