"""Programs that take memory, descriptors, threads or disk until something breaks. One attack a test."""

import pytest

from .conftest import outcomes

WRONG = "wrong_value"


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("len([0] * 10 ** 12)", id="a list"),
        pytest.param("len('a' * 10 ** 12)", id="a text"),
        pytest.param("len(bytearray(10 ** 11))", id="a bytearray"),
        pytest.param("1 << 10 ** 12", id="an integer"),
        pytest.param("__import__('mmap').mmap(-1, 1 << 40)", id="anonymous memory"),
        pytest.param("__import__('array').array('q', [0]) * 10 ** 11", id="an array"),
        pytest.param("__import__('ctypes').create_string_buffer(1 << 40)", id="a C buffer"),
        pytest.param("'%1000000000000d' % 1", id="a format"),
    ],
)
def test_a_memory_bomb_in_one_step_is_an_exception(endings, expression):
    assert endings(f"def secret(n): return {expression}") == {"raised"}


def test_memory_shared_with_itself_counts_too(endings):
    assert endings("""
        import mmap
        def secret(n):
            hoard = []
            for _ in range(10_000):
                hoard.append(mmap.mmap(-1, 1 << 24))
                hoard[-1][0] = 1
            return len(hoard)
    """) == {"raised"}


def test_nested_containers_without_end_cost_their_own_cases(endings):
    assert endings("""
        def secret(n):
            deep = []
            for _ in range(10**5):
                deep = [deep]
            return deep
    """) == {"unencodable"}


def test_thread_stacks_of_any_size_stay_inside_the_memory_limit(comes_to):
    assert comes_to("""
        import threading
        gate = threading.Event()
        def secret(n):
            threading.stack_size(64 << 20)
            count = 0
            try:
                for _ in range(100):
                    threading.Thread(target=gate.wait, daemon=True).start()
                    count += 1
            except RuntimeError:
                pass
            return count < 10
    """) == {(WRONG, "True")}


def test_pipes_and_pairs_run_out_at_the_limit(comes_to):
    assert comes_to("""
        import os, socket
        def secret(n):
            opened = []
            try:
                while True:
                    opened.append(socket.socketpair())
            except OSError:
                count = len(opened)
                for pair in opened:
                    pair[0].close(), pair[1].close()
                return count
    """) == {(WRONG, "30")}


def test_full_pipes_hold_no_more_than_descriptors_allow(attack):
    results = attack(
        """
        import os
        def secret(n):
            total = 0
            try:
                while True:
                    reading, writing = os.pipe()
                    os.set_blocking(writing, False)
                    try:
                        while True:
                            total += os.write(writing, bytes(1 << 16))
                    except BlockingIOError:
                        pass
            except OSError:
                return total < 64 << 20
    """,
        cases=1,
    )
    assert results == [(WRONG, "True")]


def test_printing_without_end_fills_nothing(comes_to):
    assert comes_to("""
        import os, sys
        def secret(n):
            for _ in range(200):
                sys.stdout.write("x" * (1 << 18))
                os.write(2, bytes(1 << 18))
            return -1
    """) == {(WRONG, "-1")}


def test_a_disk_bomb_writes_nothing(refused, tmp_path):
    refused(
        """
        with open(f"/tmp/bomb-{n}", "wb") as handle:
            while True:
                handle.write(bytes(1 << 20))
        """
    )


def test_a_sparse_file_is_refused(refused):
    refused("os.truncate('/dev/zero', 1 << 40)")


def test_a_core_dump_is_not_to_be_had(endings):
    assert endings("import os\ndef secret(n): os.abort()") == {"died"}


def test_dying_of_every_signal_is_a_verdict_never_an_outage(endings):
    """Faults the kernel turns into signals; none of them is the SIGKILL that means somebody else did it."""
    assert endings("""
        import ctypes
        kinds = iter((lambda: ctypes.string_at(1), lambda: ctypes.memset(id(0) & ~0xFFF, 0, 1 << 30)))
        def secret(n):
            next(kinds)()
    """) == {"died"}


def test_exhausting_the_stack_of_a_thread_is_dying(attack):
    results = attack(
        """
        import sys, threading
        sys.setrecursionlimit(10**9)
        class Deep:
            def __repr__(self): return repr(self)
        def secret(n):
            threading.stack_size(1 << 16)
            thread = threading.Thread(target=lambda: repr(Deep()))
            thread.start()
            thread.join()
            return -1
    """,
        cases=2,
    )
    assert set(outcomes(results)) <= {"died", WRONG, "raised"}


def test_a_program_that_eats_all_its_memory_then_answers_gains_nothing(endings):
    assert endings("""
        hoard = []
        def secret(n):
            try:
                while True:
                    hoard.append(bytearray(1 << 20))
            except MemoryError:
                return -1
    """) <= {WRONG, "raised", "died", "timed_out"}
