"""Programs that try to take everything, or never to end. One attack a test."""

import time
from dataclasses import replace

from sandbox import Judge, JudgeRequest


def test_a_fork_bomb_forks_nothing(endings_of_one):
    assert endings_of_one("""
        import os
        def secret(n):
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
    """) == {"timed_out"}


def test_a_memory_bomb_is_an_exception(endings):
    assert endings("""
        def secret(n):
            hoard = []
            while True:
                hoard.append(bytearray(1 << 24))
    """) <= {"raised", "timed_out"}


def test_a_thread_bomb_is_bounded_by_memory(comes_to):
    assert comes_to("""
        import threading
        gate = threading.Event()
        def secret(n):
            count = 0
            try:
                while True:
                    threading.Thread(target=gate.wait, daemon=True).start()
                    count += 1
            except RuntimeError:
                return count < 1000
    """) <= {("wrong_value", "True"), ("timed_out", "more than 0.2 s of CPU time")}


def test_descriptors_run_out_at_the_limit(comes_to):
    assert comes_to("""
        import os
        def secret(n):
            opened = []
            try:
                while True:
                    opened.append(os.open("/dev/null", 0))
            except OSError:
                for fd in opened:
                    os.close(fd)
                return len(opened)
    """) == {("wrong_value", "60")}


def test_a_spin_in_another_thread_counts_as_the_programs_time(endings_of_one):
    assert endings_of_one("""
        import threading, time
        def spin():
            while True:
                pass
        def secret(n):
            threading.Thread(target=spin, daemon=True).start()
            time.sleep(1000)
    """) == {"timed_out"}


def test_an_alarm_that_interrupts_the_harness_hurts_only_the_program(endings):
    assert "passed" not in endings("""
        import signal
        def ring(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        def secret(n):
            return -1
    """)


def test_a_flood_of_frames_is_cut_off(endings_of_one):
    source = "import os\ndef secret(n):\n    while True: os.write(3, bytes(65536))\n"
    assert endings_of_one(source) <= {"died", "output_limit"}


def test_a_candidate_that_dribbles_bytes_does_not_starve_the_clock(endings_of_one):
    started = time.monotonic()
    assert endings_of_one("""
        import os, struct, time
        def secret(n):
            os.write(3, struct.pack("<cI", b"V", 1 << 20))
            while True:
                os.write(3, b"x")
                time.sleep(0.002)
    """) == {"timed_out"}
    assert time.monotonic() - started < 15


def judged_within(runner, total_seconds, candidate, *, cases=40, reference="def f(n):\n    return n\n"):
    """Outcomes and details of a candidate with so many seconds in all; the reference has plenty."""
    limits = replace(runner.limits, wall_seconds_per_case=1.0, total_seconds=total_seconds)
    suite = tuple(f"assert f({n}) == {n}" for n in range(cases))
    request = JudgeRequest(question_id="q", reference=reference, candidate=candidate, suites=(suite,))
    verdict = Judge(runner, limits=limits).judge(request)
    assert verdict.wall_seconds < 10 * total_seconds + 10
    return verdict, [(case.outcome.value, case.detail) for case in verdict.suites[0].cases]


SPENT = ("timed_out", "the program's total time is spent")


def test_a_nap_in_every_case_ends_when_the_total_time_is_spent(runner):
    _, results = judged_within(runner, 2.0, "import time\ndef f(n):\n    time.sleep(0.5)\n    return n\n")
    assert set(results) == {("passed", ""), SPENT}
    assert 2 <= results.count(("passed", "")) <= 4


def test_a_nap_at_every_reload_ends_when_the_total_time_is_spent(runner):
    candidate = "import os, time\ntime.sleep(0.5)\ndef f(n):\n    os._exit(0)\n"
    _, results = judged_within(runner, 2.0, candidate)
    assert set(results) == {("died", "exited with status 0"), SPENT}
    assert 2 <= results.count(("died", "exited with status 0")) <= 4


def test_a_nap_while_loading_that_spends_the_total_time_is_a_failed_load(runner):
    verdict, _ = judged_within(runner, 0.5, "import time\ntime.sleep(3)\n")
    assert verdict.load_error == "timed_out while loading: the program's total time is spent"


def test_a_hang_beside_a_slow_reference_costs_less_each_time(runner):
    reference = (
        "import time\ndef f(n):\n    end = time.process_time() + 0.1\n"
        "    while time.process_time() < end: pass\n    return n\n"
    )
    verdict, results = judged_within(runner, 30.0, "def f(n):\n    while True: pass\n", cases=6, reference=reference)
    assert [outcome for outcome, _ in results] == ["timed_out"] * 6
    assert verdict.cpu_seconds < 5.5  # 3 * 1 + 3 * 0.5, not 6 * 1


def test_a_reference_without_time_left_refuses_the_rest_but_does_not_remember_it(runner):
    slow = "import time\ndef f(n):\n    time.sleep(0.3)\n    return n\n"
    judge = Judge(runner, limits=replace(runner.limits, total_seconds=0.4))
    suite = tuple(f"assert f({n}) == {n}" for n in range(8))
    request = JudgeRequest(question_id="slow", reference=slow, candidate="def f(n): return n", suites=(suite,))
    first = judge.judge(request).suites[0]
    assert 1 <= first.num_valid <= 4
    assert {one.reason.value for one in first.rejections} == {"reference_timed_out"}
    last = JudgeRequest(question_id="slow", reference=slow, candidate="def f(n): return n", suites=(suite[-1:],))
    assert judge.judge(last).suites[0].num_valid == 1


def passed(runner, reference, candidate, *suites, question_id="q", **changes):
    """Passed cases of each suite."""
    judge = Judge(runner, limits=replace(runner.limits, **changes))
    request = JudgeRequest(question_id=question_id, reference=reference, candidate=candidate, suites=suites)
    return [suite.num_valid - suite.num_failed for suite in judge.judge(request).suites]


BUSY = (
    "import time\ndef f(n):\n    end = time.process_time() + n / 1000\n"
    "    while time.process_time() < end: pass\n    return n\n"
)


def test_a_suite_of_costly_calls_costs_another_suite_no_case(runner):
    costly = tuple(f"assert f({300 + n}) == {300 + n}" for n in range(6))
    light = tuple(f"assert f({n}) == {n}" for n in range(5))
    assert passed(runner, BUSY, BUSY, costly, light, total_seconds=0.8)[1] == 5
    assert passed(runner, BUSY, BUSY, light, costly, total_seconds=0.8)[0] == 5


def test_suites_that_make_an_honest_program_hang_cost_another_suite_no_case(runner):
    reference = "def f(n): return n * (n + 1) // 2\n"
    candidate = "def f(n):\n    total = 0\n    for i in range(n + 1): total += i\n    return total\n"
    light = tuple(f"assert f({n}) == {n * (n + 1) // 2}" for n in range(5))
    for question in range(2):
        hanging = tuple(f"assert f({10**9 + n}) == 0" for n in range(20))
        assert passed(runner, reference, candidate, light, hanging, question_id=str(question))[0] == 5


def test_hanging_calls_leave_an_async_program_its_start(runner):
    program = "async def f(n):\n    while n < 0: pass\n    return 2 * n\n"
    reference = "async def f(n): return 2 * n\n"
    light = tuple(f"assert await f({n}) == {2 * n}" for n in range(6))
    hanging = tuple(f"assert await f(-{n}) == -{2 * n}" for n in (1, 2, 3))
    assert passed(runner, reference, program, light, hanging) == [6, 0]


def test_whoever_is_asked_first_may_fill_the_table_of_all(runner):
    program = (
        "table = []\ndef f(n):\n    if not table:\n        for i in range(3_000_000): table.append(i % 7)\n"
        "    return table[n]\n"
    )
    suite = tuple(f"assert f({n}) == {n % 7}" for n in range(8))
    for question in range(2):
        assert passed(runner, program, program, suite, question_id=str(question)) == [8]


def test_a_private_helper_of_the_reference_is_no_entry_point(runner):
    reference = "def _h(n): return n\ndef f(n): return _h(n) + 1\n"
    assert passed(runner, reference, "def f(n): return n + 1", ("assert _h(1) == 1", "assert f(1) == 2")) == [1]
