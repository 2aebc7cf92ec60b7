"""Programs that leave something behind for the next one, or behave differently the second time. One attack a test."""

WRONG = "wrong_value"


def test_status_flags_of_the_standard_descriptors_do_not_reach_the_next_program(attack):
    """An open file that all programs inherited would carry O_APPEND and O_NONBLOCK from one to the next."""
    look = "import fcntl\ndef secret(n): return [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in (0, 1, 2, 3)]"
    before = attack(look)
    attack("""
        import fcntl, os
        for fd in (0, 1, 2, 3):
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND)
        def secret(n): return -1
    """)
    assert attack(look) == before


def test_the_interned_small_integers_stay_what_they_are(attack):
    attack("""
        import ctypes
        ctypes.memmove(id(7) + 24, (8).to_bytes(4, "little"), 4)
        def secret(n): return -1
    """)
    assert attack("def secret(n): return [3 + 4, 7]") == [(WRONG, "[7, 7]")] * 4


def test_interned_texts_stay_what_they_are(attack):
    attack("""
        import ctypes, sys
        text = sys.intern("sandboxed")
        ctypes.memset(id(text) + sys.getsizeof("") - 1, ord("X"), 3)
        def secret(n): return -1
    """)
    assert attack("import sys\ndef secret(n): return sys.intern('sand' + 'boxed')") == [(WRONG, "'sandboxed'")] * 4


def test_modules_of_the_standard_library_are_fresh_for_everyone(comes_to, attack):
    attack("""
        import functools, json, random, re
        re.match = json.loads = functools.reduce = random.random = lambda *a: "mine"
        def secret(n): return -1
    """)
    assert comes_to("""
        import functools, json, random, re
        def secret(n):
            return [json.loads("[1]"), functools.reduce(max, [1, 2]), random.random() == "mine", re.match("a", "b")]
    """) == {(WRONG, "[[1], 2, False, None]")}


def test_the_state_of_randomness_is_the_same_for_everyone(attack):
    draws = "import random\nfirst = random.random()\ndef secret(n): return first"
    before = attack(draws)
    attack("import random\nrandom.seed(1)\ndef secret(n): return -1")
    assert attack(draws) == before


def test_decimal_contexts_and_recursion_limits_are_fresh_for_everyone(attack):
    look = """
        import decimal, sys
        def secret(n): return [decimal.getcontext().prec, sys.getrecursionlimit()]
    """
    before = attack(look)
    attack("import decimal, sys\ndecimal.getcontext().prec = 2\nsys.setrecursionlimit(5000)\ndef secret(n): return -1")
    assert attack(look) == before


def test_signal_handlers_and_timers_are_fresh_for_everyone(comes_to, attack):
    attack("""
        import signal
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
        def secret(n): return -1
    """)
    assert comes_to("""
        import signal
        def secret(n):
            return [signal.getsignal(signal.SIGALRM) == signal.SIG_DFL, signal.getitimer(signal.ITIMER_REAL)[0]]
    """) == {(WRONG, "[True, 0.0]")}


def test_the_mask_of_new_files_is_fresh_for_everyone(attack):
    look = "import os\ndef secret(n): return os.umask(0o22)"
    before = attack(look)
    attack("import os\nos.umask(0)\ndef secret(n): return -1")
    assert attack(look) == before


def test_a_thread_does_not_outlive_its_program(attack):
    attack("""
        import threading
        def spin():
            while True: pass
        threading.Thread(target=spin, daemon=True).start()
        def secret(n): return -1
    """)
    assert attack("import threading\ndef secret(n): return threading.active_count()") == [(WRONG, "1")] * 4


def test_byte_code_cannot_be_planted_beside_the_standard_library(refused):
    refused(
        "py_compile.compile(os.__file__, cfile=os.path.dirname(os.__file__) + '/planted.pyc')",
        setup="import py_compile",
    )


def test_being_judged_twice_gives_the_same_verdict(attack):
    source = "import random\nbit = random.random()\ndef secret(n): return [n, bit, hash('x')]"
    assert attack(source) == attack(source)


def test_right_only_while_nobody_has_asked_before_is_asked_once_each(judged):
    """A cache of first answers is honest; counting the calls to detect the second phase finds no second phase."""
    suite = judged(
        "def f(n): return n * 31337 % 1009",
        *(f"assert f({n}) == 0" for n in range(1, 6)),
        candidate="""
        calls = 0
        def f(n):
            global calls
            calls += 1
            return n * 31337 % 1009 if calls <= 5 else -1
        """,
    )
    assert [case.outcome.value for case in suite.cases] == ["passed"] * 5


def test_the_order_of_the_calls_is_not_the_order_of_the_suite(judged):
    suite = judged(
        "def f(n): return n",
        *(f"assert f({n}) == {n}" for n in range(12)),
        candidate="numbers = iter(range(12))\ndef f(n): return next(numbers)",
    )
    assert sum(case.outcome.value == "passed" for case in suite.cases) < 6


def test_a_marker_in_a_module_tells_candidates_nothing_about_references(judged):
    suite = judged(
        "import builtins\nbuiltins.phase = 'reference'\ndef f(n): return n * 7 + 1",
        "assert f(1) == 8",
        candidate="import builtins\ndef f(n): return getattr(builtins, 'phase', 'none')",
    )
    assert suite.cases[0].detail == "'none'"


def test_the_size_of_the_pool_and_its_fork_servers_stay_the_same(attack, runner):
    before = runner.fork_server_pids()
    attack("""
        import os
        def secret(n):
            try:
                os.kill(os.getppid(), 9)
            except OSError:
                return -1
    """)
    assert runner.fork_server_pids() == before


def test_what_a_program_inherits_holds_no_other_program(attack):
    attack("MARK = 'left-by-' + 'another'\ndef secret(n): return MARK")
    results = attack("""
        import gc
        def secret(n):
            wanted = "left-by-" + "another"
            return [type(item).__name__ for item in gc.get_objects() if type(item) is dict and wanted in item.values()]
    """)
    assert ("passed", "") not in results
    assert {detail for _, detail in results} <= {"[]"}
