"""Rules that every runner of programs must keep, as a class of tests.

The tests of a runner inherit this class and define a fixture ``runner``, which has ``LIMITS`` and runs two programs at
once. A runner that does not confine programs itself declares ``confines = False``. A runner whose programs have no
private folder declares ``tier = 0``. Tests of a missing ability are skipped.
"""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox import Call, CallStatus, Program, Role, SandboxUnavailableError
from sandbox.checks.self_test import LIMITS
from sandbox.text import HANGS_THROUGHOUT, NOT_ASKED, decode, encode

from .programs import BUSY, HANG, NOT_LOADING, PROGRAMS, kinds, run


class RunnerContract:
    @pytest.mark.parametrize("check", [pytest.param(check, id=check.name) for check in PROGRAMS])
    def test_a_program_comes_to_what_it_must(self, runner, check):
        if reason := check.not_applicable(runner):
            pytest.skip(reason)
        assert check.failure(runner) == ""

    @pytest.mark.parametrize("name", NOT_LOADING)
    def test_a_program_does_not_load(self, runner, name):
        source, word, changes = NOT_LOADING[name]
        result = run(runner, source, "1", **changes)
        assert not result.loaded
        assert result.results == ()
        assert word in result.load_error
        assert result.load_error

    def test_an_example_that_raises_is_skipped_if_the_functions_under_test_are_named(self, runner):
        source = "def f(x): return x + n\nprint(f(1))\nn = 1\ndef g(): pass"
        assert not run(runner, source, "f(1)").loaded
        result = run(runner, source, "f(1)", entry_points=("f",))
        assert (result.loaded, decode(result.results[0].value)) == (True, 2)
        assert result.example_failure == "NameError: name 'n' is not defined"

    def test_a_program_without_calls_loads(self, runner):
        for source in ("x = 1", ""):
            result = run(runner, source)
            assert (result.loaded, result.results, result.load_error) == (True, (), "")

    def test_bytes_of_sets_and_dicts_do_not_depend_on_insertion_order(self, runner):
        result = run(runner, "", "{1: 'a', 2: 'b'}", "{2: 'b', 1: 'a'}", "{'x', 'y', 'z'}", "{'z', 'y', 'x'}")
        first, second, third, fourth = (answer.value for answer in result.results)
        assert kinds(result) == ["value"] * 4
        assert (first, third) == (second, fourth)

    def test_a_value_up_to_the_limit_comes_back_and_a_larger_one_is_output_limit(self, runner):
        room = LIMITS.value_bytes - len(b"s1000000:")
        result = run(runner, "def f(n): return 'x' * n", f"f({room - 8})", f"f({room + 8})", "f(1)")
        assert kinds(result) == ["value", "output_limit", "value"]
        assert result.results[0].value == encode("x" * (room - 8))

    def test_standard_input_is_empty(self, runner):
        result = run(runner, "import sys", "input()", "sys.stdin.read()")
        assert kinds(result)[0] == "raised"
        assert kinds(result)[1] == "raised" or decode(result.results[1].value) == ""

    def test_only_values_carry_bytes(self, runner):
        result = run(runner, "def f(): raise ValueError", "f()", "object()", "1")
        assert [answer.value for answer in result.results] == [b"", b"", encode(1)]

    def test_a_program_that_only_hangs_is_asked_a_few_calls_only_and_each_is_cheaper(self, runner):
        source = f"def f(x):\n    if x == 9: return x\n{HANG}"
        result = run(runner, source, *(f"f({x})" for x in range(10)), max_timeouts_without_result=7)
        assert kinds(result) == ["timed_out"] * 10
        assert [answer.detail == HANGS_THROUGHOUT for answer in result.results] == [False] * 7 + [True] * 3
        assert 0 < result.cpu_seconds < 7 * LIMITS.cpu_seconds_per_case
        assert result.wall_seconds > 0

    def test_a_program_may_be_asked_until_it_has_timed_out(self, runner):
        source = f"def f(x):\n    if x != 2: return x\n{HANG}"
        result = run(runner, source, *(f"f({x})" for x in range(5)), until_timeout=True)
        assert kinds(result) == ["value"] * 2 + ["timed_out"] * 3
        assert [answer.detail == NOT_ASKED for answer in result.results] == [False] * 3 + [True] * 2

    def test_the_limits_are_the_program_s_not_the_runner_s(self, runner):
        limits = dataclasses.replace(LIMITS, cpu_seconds_per_case=0.05, value_bytes=100)
        result = run(runner, f"def f(x):\n    if x: return 'x' * x\n{HANG}", "f(0)", "f(50)", "f(200)", limits=limits)
        assert kinds(result) == ["timed_out", "value", "output_limit"]
        assert result.cpu_seconds < 1.0

    def test_recursion_without_python_s_guard_costs_one_call(self, runner):
        source = (
            "import sys\nsys.setrecursionlimit(10**9)\ndef f(n):\n    if n == 0: return 0\n"
            "    return [f(n - 1) for _ in range(1)][0] + 1\n"
        )
        first, deep, last = kinds(run(runner, source, "f(5)", "f(10**8)", "f(6)"))
        assert (first, last) == ("value", "value")
        assert deep in ("died", "raised", "timed_out")

    def test_closing_every_descriptor_costs_at_most_its_own_call(self, runner):
        source = "import os\ndef f():\n    os.closerange(0, 256)\n    return 1"
        first, closing, last = kinds(run(runner, source, "1", "f()", "2"))
        assert (first, last) == ("value", "value")
        assert closing in ("died", "value", "raised")

    def test_programs_do_not_see_one_another(self, runner):
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
            assert run(runner, leave).loaded
            result = run(runner, look, "f()", "g()")
            assert [decode(answer.value) for answer in result.results] == [[False] * 4, (False, False, False)]

    def test_roles_have_hash_seeds_of_their_own_and_keep_them(self, runner):
        def hashes(role):
            return run(runner, "", "[hash('a'), hash('sandbox')]", role=role).results[0].value

        first = [hashes(role) for role in Role]
        assert [hashes(role) for role in Role] == first
        assert len(set(first)) == len(Role)

    @pytest.mark.parametrize("calls", [("random.random()",), ("list({'a', 'b', 'c'})", "{str(n) for n in range(5)}")])
    def test_a_program_can_be_run_again_with_the_same_results(self, runner, calls):
        first, second = (run(runner, "import random", *calls) for _ in range(2))
        assert first.results == second.results

    def test_timed_calls_report_their_cpu_seconds(self, runner):
        result = run(runner, BUSY, "f(0)", "f(0.15)", "f(0)", timed=True)
        assert kinds(result) == ["value"] * 3
        first, busy, last = (answer.cpu_seconds for answer in result.results)
        assert 0.14 <= busy <= 0.4
        assert max(first, last) < 0.1

    def test_a_program_cannot_claim_more_cpu_seconds_than_its_process_has_used(self, runner):
        source = (
            "import os, struct\ndef f(value):\n"
            "    os.write(3, struct.pack('<cIQ', b'V', 8 + len(value), 10**18) + value)\n    return 2\n"
        )
        result = run(runner, source, f"f({encode(1)})", "3", timed=True)
        assert [answer.value for answer in result.results] == [encode(1), encode(2)]
        assert max(answer.cpu_seconds for answer in result.results) <= result.cpu_seconds

    def test_a_call_that_a_shortened_limit_cut_off_is_asked_once_more_at_the_end(self, runner):
        source = BUSY.replace("    return 1", "    while seconds < 0: pass\n    return 1")
        calls = ["f(0)", "f(-1)", "f(-2)", "f(-3)", "f(-4)", "f(0.1)", "f(0.11)", "f(0)"]
        result = run(runner, source, *calls, suites=(0, 1, 1, 1, 1, 0, 0, 0))
        assert kinds(result) == ["value", *["timed_out"] * 4, *["value"] * 3]

    def test_timing_changes_no_result(self, runner):
        source = "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    if x == 2: raise KeyError\n    return x\n"
        calls = [f"f({x})" for x in range(5)]
        timed, untimed = (run(runner, source, *calls, timed=timed).results for timed in (True, False))
        assert [(a.status, a.value) for a in timed] == [(a.status, a.value) for a in untimed]
        assert [answer.cpu_seconds for answer in untimed] == [0.0] * 5

    def test_threads_share_a_runner_and_a_program_that_hangs_leaves_the_others_their_results(self, runner):
        def one(n):
            calls = ["g()", "f()", "g()"] if n % 3 == 0 else ["g()", "g()"]
            return run(runner, f"def f():\n{HANG}def g(): return {n}", *calls, role=list(Role)[n // 3])

        with ThreadPoolExecutor(6) as pool:
            for n, result in enumerate(pool.map(one, range(9))):
                values = [answer.value for answer in result.results if answer.status is CallStatus.VALUE]
                assert values == [encode(n)] * 2
                assert kinds(result).count("timed_out") == int(n % 3 == 0)

    def test_no_expected_value_is_part_of_a_program(self):
        sent = {field.name for kind in (Call, Program) for field in dataclasses.fields(kind)}
        assert not any("expect" in name or "claim" in name for name in sent)


def refuses_after_closing(runner):
    """Check that a runner can be closed twice, and that every later run is an outage."""
    runner.close()
    runner.close()
    for role in Role:
        with pytest.raises(SandboxUnavailableError, match="closed"):
            run(runner, "x = 1", role=role)
