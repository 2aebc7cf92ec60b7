"""Programs that speak the channel's protocol themselves. One attack a test or entry."""

import textwrap

import pytest

WRONG = "wrong_value"
HEAD = """
import os, struct
def frame(kind, payload=b""):
    os.write(3, struct.pack("<cI", kind, len(payload)) + payload)
"""


@pytest.fixture
def attack(attack):
    """An attack after ``HEAD``."""
    return lambda source: attack(HEAD + textwrap.dedent(source))


LOAD_NOT = {
    "answers while loading break the protocol": "for _ in range(4): frame(b'V', b'i1;')\ndef secret(n): return -1",
    "a second greeting breaks the protocol": "frame(b'R')\ndef secret(n): return -1",
    "a flood before the first answer is cut off": """
        while True:
            os.write(3, bytes(1 << 16))
    """,
}


@pytest.mark.parametrize("source", LOAD_NOT.values(), ids=LOAD_NOT)
def test_this_attack_does_not_load(endings, source):
    assert endings(source) == {"not_loaded"}


def test_a_forged_loaded_frame_lets_the_program_answer_only_for_itself(comes_to):
    assert comes_to("""
        frame(b"L")
        for _ in range(4):
            frame(b"V", b"i2;")
        while True:
            pass
    """) == {(WRONG, "2")}


DIE = {
    "a set up failure forged in a call is no outage": "def secret(n):\n    frame(b'!', b'down')\n    return -1",
    "a load error forged in a call breaks the protocol": "def secret(n):\n    frame(b'X', b'oops')\n    return -1",
    "half a header then an exit is dying": "def secret(n):\n    os.write(3, b'V\\x03')\n    os._exit(0)",
    "replacing the channel by a pipe is silence": """
        def secret(n):
            reading, writing = os.pipe()
            os.dup2(writing, 3)
            return -1
    """,
    "shutting down the judges side of the channel is dying": """
        import socket
        channel = socket.socket(fileno=3)
        def secret(n):
            channel.shutdown(socket.SHUT_RDWR)
            return -1
    """,
}


@pytest.mark.parametrize("source", DIE.values(), ids=DIE)
def test_this_attack_is_its_own_death(endings, source):
    assert endings(source) == {"died"}


EARN_NOTHING = {
    "a frame one byte short swallows only its own answers": """
        def secret(n):
            os.write(3, struct.pack("<cI", b"V", 4) + b"i1;")
            return -1
    """,
    "capital digits leading zeros and underscores are no integers": """
        def secret(n):
            for text in (b"i0x1b808;", b"i1_b808;", b"i+1b808;", b"i 1b808;"):
                frame(b"V", text)
            os._exit(0)
    """,
    "frames from an audit hook are its own output": """
        import sys
        busy = []
        def hook(event, arguments):
            if event == "import" and not busy:
                busy.append(1)
                frame(b"V", b"i7;")
        sys.addaudithook(hook)
        def secret(n):
            import this_module_does_not_exist
    """,
    "urgent data is no answer": """
        import socket
        channel = socket.socket(fileno=3)
        def secret(n):
            try:
                channel.send(b"V", socket.MSG_OOB)
            except OSError:
                pass
            return -1
    """,
    "the main thread gone while another answers is its own output": """
        import ctypes, threading
        def secret(n):
            threading.Thread(target=lambda: [frame(b"V", b"i9;") for _ in range(4)]).start()
            ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
    """,
    "naming a value of another type for each call earns nothing": """
        kinds = iter((b"s6:112648", b"b6:112648", b"l1:i1b808;", b"t1:i1b808;"))
        def secret(n):
            frame(b"V", next(kinds, b"N"))
            import time
            time.sleep(9)
    """,
}


@pytest.mark.parametrize("source", EARN_NOTHING.values(), ids=EARN_NOTHING)
def test_this_attack_earns_nothing(endings, source):
    assert "passed" not in endings(source)


def test_half_a_payload_then_a_hang_is_a_time_out(endings):
    source = "def secret(n):\n    os.write(3, struct.pack('<cI', b'V', 9) + b'i1')\n    while True: pass"
    assert endings(source) == {"timed_out"}


def test_more_answers_than_calls_are_ignored(endings):
    assert endings("""
        def secret(n):
            for number in range(100):
                frame(b"V", b"i%x;" % number)
            os._exit(0)
    """) <= {WRONG, "died"}


def test_an_empty_value_is_wrong(endings):
    assert endings("def secret(n):\n    frame(b'V')\n    os._exit(0)") <= {WRONG, "died"}


def test_a_value_with_bytes_after_it_is_wrong(endings):
    right = "b'i%x;' % ((n * 7919 + 104729) % 1000003)"
    source = f"def secret(n):\n    frame(b'V', {right} + b'i0;')\n    import time; time.sleep(9)"
    assert "passed" not in endings(source)


def test_frames_from_a_signal_handler_are_its_own_output(attack):
    results = attack("""
        import signal
        def ring(*_):
            frame(b"V", b"i3;")
        signal.signal(signal.SIGALRM, ring)
        def secret(n):
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            while True:
                pass
    """)
    assert {result for result in results if result[0] != "timed_out"} <= {(WRONG, "3")}


def test_frames_from_a_weakref_callback_are_its_own_output(comes_to):
    assert comes_to("""
        import weakref
        class Victim: pass
        def secret(n):
            victim = Victim()
            weakref.finalize(victim, frame, b"V", b"i4;")
            return -1
    """) <= {(WRONG, "4"), (WRONG, "-1")}


def test_frames_from_a_garbage_collector_callback_are_its_own_output(comes_to):
    assert comes_to("""
        import gc
        gc.callbacks.append(lambda phase, info: frame(b"V", b"i5;"))
        def secret(n):
            gc.collect()
            return -1
    """) <= {(WRONG, "5"), (WRONG, "-1")}


def test_frames_from_a_trace_function_are_its_own_output(comes_to):
    assert comes_to("""
        import sys
        def trace(*_):
            sys.settrace(None)
            frame(b"V", b"i6;")
        def secret(n):
            sys.settrace(trace)
            return (lambda: -1)()
    """) <= {(WRONG, "6"), (WRONG, "-1")}


def test_frames_through_a_copy_of_the_channel_are_its_own_output(endings):
    assert endings("""
        copy = os.dup(3)
        def secret(n):
            os.write(copy, struct.pack("<cI", b"V", 3) + b"i8;")
            os._exit(0)
    """) <= {WRONG, "died"}


def test_a_value_of_the_largest_length_that_never_comes_is_a_time_out(endings):
    source = "def secret(n):\n    os.write(3, struct.pack('<cI', b'V', 1 << 20))\n    while True: pass"
    assert endings(source) == {"timed_out"}
