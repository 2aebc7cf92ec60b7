"""Programs that look for what they should compute: in memory, descriptors, folders, the kernel. One attack a test."""

import os

import pytest

from sandbox import Judge, JudgeRequest

WRONG = "wrong_value"


def test_a_scan_of_the_heap_finds_only_what_the_program_put_there(comes_to):
    """``write`` refuses an address that is not mapped instead of crashing, so it reads memory safely."""
    assert comes_to("""
        import ctypes, os
        libc = ctypes.CDLL(None)
        libc.write.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
        # In halves, or the scan would find its own search terms.
        halves = {"own": (b"my own ", b"mark"), "assert": (b"assert sec", b"ret("), "secret": (b"sword", b"fish"),
                  "reference": (b"79", b"19 + 1047")}
        planted = b"".join(halves["own"])
        def secret(n):
            reading, writing = os.pipe()
            found, page = set(), id(planted) & ~0xFFF
            for address in range(page - (2000 << 12), page + (2000 << 12), 1 << 12):
                if libc.write(writing, address, 4096) == 4096:
                    data = os.read(reading, 4096)
                    for name, (first, second) in halves.items():
                        found |= {name for part in data.split(first)[1:] if part.startswith(second)}
            os.close(reading), os.close(writing)
            return sorted(found)
    """) == {(WRONG, "['own']")}


def test_frames_hold_neither_claim_nor_answer_in_any_local(comes_to):
    assert comes_to("""
        import sys
        def secret(n):
            frame, seen = sys._getframe(1), []
            while frame:
                seen += {"claim", "claimed", "expected", "oracle"} & frame.f_locals.keys()
                frame = frame.f_back
            return seen
    """) == {(WRONG, "[]")}


def test_reading_all_orders_at_load_shows_calls_without_answers(attack):
    results = attack("""
        import os
        os.set_blocking(3, False)
        try:
            orders = os.read(3, 1 << 20)
        except OSError:
            orders = b""
        answers = {1: 112648, 2: 120567, 3: 128486, 4: 136405}
        leaked = [a for a in answers.values() if str(a).encode() in orders or a.to_bytes(4, "little") in orders]
        os.write(3, b"X" + len(str(leaked)).to_bytes(4, "little") + str(leaked).encode())
        while True:
            pass
    """)
    assert [outcome for outcome, _ in results] == ["not_loaded"] * 4


def test_what_leaks_from_the_orders_is_no_answer(runner):
    """The same program, its finding read from the load error."""
    source = (
        "import os, struct\n"
        "os.set_blocking(3, False)\n"
        "try: orders = os.read(3, 1 << 20)\n"
        "except OSError: orders = b''\n"
        "bad = [a for a in (112648, 120567) if str(a).encode() in orders or struct.pack('<I', a) in orders]\n"
        "raise KeyError(*bad)\n"
    )
    request = JudgeRequest(
        question_id="orders",
        reference="def secret(n):\n    return (n * 7919 + 104729) % 1000003\n",
        candidate=source,
        suites=(("assert secret(1) == 112648", "assert secret(2) == 120567"),),
    )
    assert Judge(runner).judge(request).load_error == "KeyError: "


REFUSED = {
    "the parents environment and arguments": "open(f'/proc/{os.getppid()}/cmdline', 'rb').read()",
    "its own memory map": "open('/proc/self/maps').read()",
    "scheduling of other processes": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
    "its own processors cannot be chosen": "os.sched_setaffinity(0, {0})",
    "the kernels log": """
        if libc.klogctl(3, ctypes.create_string_buffer(4096), 4096) < 0:
            raise OSError
    """,
    # An event of `timer_create` may carry any signal; SIGKILL would look like an outage.
    "a timer that sends sigkill": "call(222 if os.uname().machine == 'x86_64' else 107, 1, 0, 0)",
    "queueing a signal to itself": "call(129 if os.uname().machine == 'x86_64' else 138, os.getpid(), 9, 0)",
    "a second filter of its own": "call(317 if os.uname().machine == 'x86_64' else 277, 1, 0, 0)",
    "moving into other namespaces": "call(308 if os.uname().machine == 'x86_64' else 268, 3, 0)",
    "a changed root": "os.chroot('/')",
    "watching files for other candidates": "call(294 if os.uname().machine == 'x86_64' else 26, 0)",
    "shared memory of system v": "call(29 if os.uname().machine == 'x86_64' else 194, 4919, 4096, 0o1666)",
    "message queues": "call(68 if os.uname().machine == 'x86_64' else 186, 4919, 0o1666)",
    "naming the judge": "socket.socket(fileno=os.dup(3)).getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)",
    "a socket takes no packet filter": "socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, 26, bytes(16))",
}


@pytest.mark.parametrize("attempt", REFUSED.values(), ids=REFUSED)
def test_this_attempt_is_refused(refused, attempt):
    refused(attempt)


def test_other_processes_cannot_be_listed_by_probing_pids(comes_to):
    assert comes_to("""
        import os
        def secret(n):
            alive = 0
            for pid in range(1, 500):
                try:
                    os.kill(pid, 0)
                    alive += 1
                except ProcessLookupError:
                    pass
                except PermissionError:
                    alive += 0
            return alive
    """) == {(WRONG, "0")}


def test_device_files_are_closed(refused):
    for device in filter(os.path.exists, ("/dev/mem", "/dev/kmsg", "/dev/tty", "/dev/fuse", "/dev/ptmx", "/dev/shm")):
        refused(f"os.open({device!r}, os.O_RDONLY)")


REFUSED_AFTER_AN_IMPORT = {
    # TIOCSTI would type into the terminal of whoever runs the judge.
    "terminal input cannot be faked": ("fcntl", "fcntl.ioctl(0, 0x5412, b'x')"),
    "asynchronous input for a chosen owner": ("fcntl", "fcntl.ioctl(3, 0x8901, (0).to_bytes(4, 'little'))"),
    "locking files to signal others": ("fcntl", "fcntl.flock(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_SH)"),
    "record locks to signal others": ("fcntl", "fcntl.lockf(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_SH)"),
    "named semaphores": ("multiprocessing", "multiprocessing.Lock()"),
}


@pytest.mark.parametrize(("module", "attempt"), REFUSED_AFTER_AN_IMPORT.values(), ids=REFUSED_AFTER_AN_IMPORT)
def test_this_attempt_with_a_module_is_refused(refused, module, attempt):
    refused(attempt, setup=f"import {module}")


def test_descriptors_are_not_aimed_at_other_processes(refused):
    """F_SETOWN and F_SETSIG make the kernel send a signal of choice to a process of choice."""
    refused("fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())", setup="import fcntl")
    refused("fcntl.fcntl(3, 10, 9)", setup="import fcntl")


def test_shared_memory_blocks_are_refused(refused):
    refused(
        "SharedMemory('planted', create=True, size=64)", setup="from multiprocessing.shared_memory import SharedMemory"
    )


def test_clocks_of_other_processes_are_out_of_reach(refused):
    refused("time.clock_gettime((~os.getppid() << 3) | 2)", setup="import time")
    refused("time.clock_getres((~os.getppid() << 3) | 2)", setup="import time")


def test_the_clocks_and_socket_options_that_programs_use_work(attack):
    source = """
        import socket, time
        def secret(n):
            clocks = (time.time, time.monotonic, time.process_time, time.thread_time, time.perf_counter)
            one, other = socket.socketpair()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            time.sleep(0.01)
            assert all(clock() >= 0 for clock in clocks) and not one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            return (n * 7919 + 104729) % 1000003
    """
    assert [outcome for outcome, _ in attack(source)] == ["passed"] * 4


def test_the_command_line_that_started_python_is_not_kept(attack):
    found = attack("import sys\ndef secret(n):\n    return sys.orig_argv")
    assert {detail for _, detail in found} == {"['']"}
