"""Checks of what a program shares with others, of roles, timing, awaiting, threads, confinement and closing."""

from __future__ import annotations

import concurrent.futures
import dataclasses

from ..cases.case import Call
from ..errors import SandboxUnavailableError
from ..limits import Limits
from ..runners.base import CallStatus, ProgramResult, Role, Runner
from ..values.decoding import decode
from .harness import check, expect, expect_equal, expect_kinds, expect_values, kinds, program, run

V, RAISED, TIMED_OUT, DIED = CallStatus.VALUE, CallStatus.RAISED, CallStatus.TIMED_OUT, CallStatus.DIED
COUNTING = "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)\n"


@check()
def the_prelude_is_executed_first_in_the_same_namespace(runner: Runner) -> None:
    expect_values(run(runner, "b = a + 1", "b", prelude="a = 1"), 2)


@check()
def a_future_import_may_begin_the_source_after_a_prelude(runner: Runner) -> None:
    source = "from __future__ import annotations\ndef f(x: Nowhere): return x\n"
    expect_values(run(runner, source, "f(1)", prelude="import math"), 1)


@check()
def the_program_is_not_the_main_module(runner: Runner) -> None:
    source = "ran = False\nif __name__ == '__main__':\n    ran = True\n"
    expect_values(run(runner, source, "ran"), False)


@check()
def the_program_is_importable_by_its_own_classes(runner: Runner) -> None:
    """Pickling, dataclasses and typing look a class's module up in ``sys.modules``."""
    source = (
        "import copy, dataclasses, sys\n@dataclasses.dataclass\nclass Point:\n    x: int = 1\n"
        "def f(): return copy.deepcopy(Point(4)).x, Point.__module__ in sys.modules\n"
    )
    expect_values(run(runner, source, "f()"), (4, True))


@check()
def the_program_finds_no_module_of_the_judge(runner: Runner) -> None:
    source = "import sys\ndef f(): return sorted(name for name in sys.modules if name.split('.')[0] == 'sandbox')"
    expect_values(run(runner, source, "f()"), [])


@check()
def calls_share_the_state_of_their_program(runner: Runner) -> None:
    expect_values(run(runner, COUNTING, "f(1)", "f(2)", "f(2)"), 1, 2, 3)


@check()
def isolated_calls_do_not_see_one_another(runner: Runner) -> None:
    expect_values(run(runner, COUNTING, "f(1)", "f(2)", "f(2)", isolated=True), 1, 1, 1)


@check()
def an_early_end_of_an_isolated_call_costs_one_call(runner: Runner) -> None:
    source = (
        "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    if x == 2:\n        while True: pass\n    return x\n"
    )
    result = run(runner, source, "f(0)", "f(1)", "f(2)", "f(3)", isolated=True)
    expect_kinds(result, [V, DIED, TIMED_OUT, V])


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
def programs_find_nothing_secret_in_their_environment(runner: Runner) -> None:
    source = "import os\ndef f(): return [name for name in os.environ if 'TOKEN' in name or 'KEY' in name]"
    expect_values(run(runner, source, "f()"), [])


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
    source = (
        "import time\ndef f(seconds):\n    end = time.process_time() + seconds\n"
        "    while time.process_time() < end: pass\n    return 1\n"
    )
    result = run(runner, source, "f(0)", "f(0.15)", "f(0)", timed=True)
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
def awaited_calls_are_awaited(runner: Runner) -> None:
    source = (
        "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n"
        "    return sum(await asyncio.gather(*[g(n) for n in range(x)]))\n"
        "async def g(n): return n\ndef plain(): return 1\n"
    )
    calls = [Call(expression=text, awaited=True) for text in ("f(4)", "f(5)", "plain()")]
    result = run(runner, source, *calls, Call(expression="f(1)"))
    expect_kinds(result, [V, V, RAISED, CallStatus.UNENCODABLE])
    expect_equal([answer.value for answer in result.results[:2]], [b"i6;", b"ia;"], "awaited values")


@check()
def library_constructors_are_in_scope_only_for_calls_that_use_them(runner: Runner) -> None:
    source = "def f(x): return len(x)"
    expressions = ("f(Counter('aab'))", "f(collections.deque([1, 2, 3]))", "Fraction(1, 2)", "f([math.inf])")
    calls = [Call(expression=text, uses_library=True) for text in expressions]
    result = run(runner, source, *calls, Call(expression="f(Counter('aab'))"))
    expect_kinds(result, [V, V, V, V, RAISED])


@check()
def a_program_may_use_threads(runner: Runner) -> None:
    source = (
        "import threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "def f(n):\n    with ThreadPoolExecutor(4) as pool: return sum(pool.map(abs, range(n)))\n"
    )
    expect_values(run(runner, source, "f(10)"), 45)


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
            expect_equal(kinds(result).count("timed_out"), int(n % 3 == 0), "time-outs")


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


@check(needs="confines")
def programs_cannot_read_files_of_the_machine(runner: Runner) -> None:
    source = "def f(path): return open(path).read(1)"
    result = run(runner, source, "f('/etc/passwd')", "f('/proc/self/status')", "f('/proc/1/environ')")
    expect_kinds(result, [RAISED] * 3)


@check(needs="confines")
def programs_cannot_write_files_of_the_machine(runner: Runner) -> None:
    source = "import os\ndef f(path):\n    with open(path, 'w') as file: file.write('x')\n"
    expect_kinds(run(runner, source, "f('/etc/left')", "f('/var/tmp/left')", "f('/dev/shm/left')"), [RAISED] * 3)


@check(needs="confines")
def programs_cannot_start_processes(runner: Runner) -> None:
    source = "import os, subprocess\ndef f(): return os.fork()\ndef g(): return subprocess.run(['true']).returncode\n"
    expect_kinds(run(runner, source, "f()", "g()"), [RAISED] * 2)


@check(needs="confines")
def programs_cannot_open_sockets(runner: Runner) -> None:
    source = "import socket\ndef f(family): return socket.socket(family).fileno()"
    expect_kinds(run(runner, source, "f(socket.AF_INET)", "f(socket.AF_UNIX)"), [RAISED] * 2)


@check(needs="confines")
def programs_cannot_signal_others(runner: Runner) -> None:
    expect_kinds(run(runner, "import os", "os.kill(os.getppid(), 0)", "os.kill(1, 0)"), [RAISED] * 2)


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
