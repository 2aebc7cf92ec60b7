"""Programs that never come back, most of them inside C code that no signal interrupts."""

import pytest

TIMED_OUT, RAISED, DIED = "timed_out", "raised", "died"


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("10 ** 10 ** 8", id="a power"),
        pytest.param("__import__('re').match('(a+)+$', 'a' * 40 + 'b')", id="a regular expression"),
        pytest.param("sum(range(10 ** 12))", id="a sum"),
        pytest.param("sum(__import__('itertools').count())", id="an iterator without end"),
        pytest.param("-1 in __import__('itertools').repeat(0)", id="a search in an endless iterator"),
        pytest.param("__import__('math').factorial(10 ** 7)", id="a factorial"),
        pytest.param("__import__('math').comb(10 ** 7, 5 * 10 ** 6)", id="a binomial"),
        pytest.param("__import__('hashlib').pbkdf2_hmac('sha512', b'', b'', 10 ** 8)", id="a key derivation"),
        pytest.param("__import__('collections').deque(iter(int, 1), maxlen=0)", id="a deque that drinks for ever"),
        pytest.param("{i * (2 ** 61 - 1) for i in range(10 ** 6)}", id="colliding hashes"),
    ],
)
def test_a_hang_in_c_code_is_timed_out(endings_of_one, expression):
    assert endings_of_one(f"def secret(n): return {expression}") == {TIMED_OUT}


def test_printing_a_giant_integer_is_timed_out(endings_of_one):
    source = "import sys\nsys.set_int_max_str_digits(0)\ndef secret(n): return str(1 << 10 ** 8)"
    assert endings_of_one(source) == {TIMED_OUT}


HANGS = {
    "a comparison that sorts for ever is timed out": """
        class Slow:
            def __lt__(self, other):
                while True:
                    pass
        def secret(n):
            return sorted([Slow(), Slow()])
    """,
    "a hang while its value is encoded is timed out": """
        class generic:
            def item(self):
                while True:
                    pass
        generic.__module__, generic.__qualname__ = "numpy", "generic"
        def secret(n):
            return generic()
    """,
    "a hang in the text of an exception is timed out": """
        class Slow(Exception):
            def __str__(self):
                while True:
                    pass
        def secret(n):
            raise Slow
    """,
    "a hang in a destructor of the value is timed out at most": """
        class Slow:
            def __del__(self):
                while True:
                    pass
        def secret(n):
            Slow()
            return -1
    """,
    "waiting for orders instead of answering": "import os\ndef secret(n):\n    while True: os.read(3, 1)",
    "short naps between bursts of work do not escape the clock": """
        import time
        def secret(n):
            while True:
                time.sleep(0.001)
                sum(range(20_000))
    """,
    "work spread over many threads counts in full": """
        import hashlib, threading
        def work():
            hashlib.pbkdf2_hmac("sha512", b"", b"", 10**8)
        def secret(n):
            threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
    """,
    "the main thread that ends while another spins is timed out": """
        import ctypes, os, threading
        def spin():
            while True:
                pass
        def secret(n):
            threading.Thread(target=spin).start()
            ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
    """,
}


@pytest.mark.parametrize("source", HANGS.values(), ids=HANGS)
def test_this_hang_is_timed_out(endings_of_one, source):
    assert endings_of_one(source) == {TIMED_OUT}


def test_a_lock_taken_twice_is_timed_out(attack):
    source = "import threading\nlock = threading.Lock()\nlock.acquire()\ndef secret(n): lock.acquire()"
    assert attack(source, cases=1) == [(TIMED_OUT, "idle for more than 1 s")]


def test_a_read_from_its_own_empty_pipe_is_timed_out(attack):
    source = "import os\npipe = os.pipe()\ndef secret(n): os.read(pipe[0], 1)"
    assert attack(source, cases=1) == [(TIMED_OUT, "idle for more than 1 s")]


def test_a_wait_for_a_signal_is_timed_out(attack):
    assert attack("import signal\ndef secret(n): signal.pause()", cases=1) == [(TIMED_OUT, "idle for more than 1 s")]


def test_a_coroutine_that_awaits_for_ever_is_timed_out(judged):
    suite = judged(
        "async def f(n): return n",
        "assert await f(1) == 1",
        candidate="import asyncio\nasync def f(n): await asyncio.Event().wait()",
    )
    assert suite.cases[0].outcome.value == TIMED_OUT


@pytest.mark.parametrize(
    ("statement", "outcome"),
    [
        pytest.param("raise GeneratorExit", RAISED, id="GeneratorExit"),
        pytest.param("import ctypes; ctypes.CDLL(None).exit(0)", DIED, id="exit of the C library"),
        pytest.param("import ctypes; ctypes.pythonapi.Py_FatalError(b'bye')", DIED, id="fatal error"),
        pytest.param("import ctypes; ctypes.pythonapi.Py_FinalizeEx(); return 1", DIED, id="finalized interpreter"),
        pytest.param("import signal; signal.alarm(1); signal.pause()", DIED, id="its own alarm"),
    ],
)
def test_a_rare_kind_of_exit_costs_the_case_it_happens_in(judged, statement, outcome):
    suite = judged(
        "def f(n): return n + 1",
        "assert f(1) == 2",
        "assert f(2) == 3",
        "assert f(3) == 4",
        candidate=f"def f(n):\n    if n != 2: return n + 1\n    {statement}\n",
    )
    assert [case.outcome.value for case in suite.cases] == ["passed", outcome, "passed"]
