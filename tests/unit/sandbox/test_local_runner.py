"""The pool of fork servers if somebody kills its processes, and after it was closed."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox import Limits, LocalRunner, Role, SandboxUnavailableError

from ...conformance.programs import run
from .processes import children, is_gone, wait_until

SLOW = "import time\ndef f(n):\n    time.sleep(0.5)\n    return n\n"


@pytest.fixture
def own_runner():
    with LocalRunner() as runner:
        yield runner


def candidate_fork_server(runner):
    return runner._pools[Role.CANDIDATE].pids()[0]


def run_while(runner, disturb):
    """Run four slow calls and call ``disturb(fork server, child)`` in the middle of them."""
    fork_server = candidate_fork_server(runner)
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(run, runner, SLOW, "f(1)", "f(2)", "f(3)", "f(4)", limits=Limits())
        wait_until(lambda: children(fork_server))
        time.sleep(0.7)
        disturb(fork_server, children(fork_server)[0])
        return [(answer.status.value, answer.value) for answer in work.result().results]


@pytest.mark.parametrize("victim", [0, 1], ids=["fork_server", "program"])
def test_a_process_killed_from_outside_is_replaced_and_nothing_is_lost(own_runner, victim):
    answers = run_while(own_runner, lambda *pids: os.kill(pids[victim], signal.SIGKILL))
    assert answers == [("value", b"i%d;" % n) for n in range(1, 5)]


def test_a_program_killed_again_and_again_is_an_outage_and_no_verdict(own_runner):
    stop = threading.Event()

    def keep_killing():
        while not stop.is_set():
            for child in [child for fork_server in own_runner.fork_server_pids() for child in children(fork_server)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.01)

    saboteur = threading.Thread(target=keep_killing)
    saboteur.start()
    try:
        with pytest.raises(SandboxUnavailableError, match="killed 8 times by somebody other than the judge"):
            run(own_runner, SLOW, "f(1)")
    finally:
        stop.set()
        saboteur.join()


def test_a_process_that_the_kernel_is_ending_is_waited_for(tmp_path):
    """On a loaded machine, a process may wait for a processor with a closed channel and a pending SIGKILL."""
    from sandbox.runners.local import fork_server_main

    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    assert not fork_server_main._is_ending(child.pid)
    child.kill()
    assert fork_server_main._is_ending(child.pid) or is_gone(child.pid)
    wait_until(lambda: is_gone(child.pid))
    assert fork_server_main._end(child.pid, is_closed=True) == fork_server_main.STATUS.pack(b"S", signal.SIGKILL, True)
    child.returncode = -signal.SIGKILL  # reaped above


def test_a_program_killed_by_another_signal_has_died(own_runner):
    answers = run_while(own_runner, lambda fork_server, child: os.kill(child, signal.SIGTERM))
    assert sorted(kind for kind, _ in answers) == ["died", "value", "value", "value"]


def test_a_sandbox_that_cannot_start_a_fork_server_is_an_outage(own_runner, monkeypatch):
    os.kill(candidate_fork_server(own_runner), signal.SIGKILL)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(SandboxUnavailableError, match="/no/such/python"):
        run(own_runner, SLOW, "f(1)")


def test_closing_leaves_no_process(own_runner):
    fork_servers = own_runner.fork_server_pids()
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(run, own_runner, "def f():\n    while 1: pass\n", "f()", limits=Limits())
        wait_until(lambda: children(candidate_fork_server(own_runner)))
        running = children(candidate_fork_server(own_runner))
        own_runner.close()
        with pytest.raises(SandboxUnavailableError):
            work.result()
    wait_until(lambda: all(is_gone(pid) for pid in (*fork_servers, *running)))


def test_no_process_outlives_a_parent_that_was_killed(repository):
    script = (
        "import sys, threading\n"
        "from sandbox import *\n"
        "runner = LocalRunner()\n"
        "program = Program(prelude='', source='def f():\\n while 1: pass', calls=(Call(expression='f()'),),\n"
        "                  reference_cpu_seconds=(100.0,), limits=Limits())\n"
        "threading.Thread(target=runner.run, args=(program,), kwargs={'role': Role.CANDIDATE}).start()\n"
        "print(*runner.fork_server_pids(), flush=True)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=repository, stdout=subprocess.PIPE, text=True)
    fork_servers = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(fork_servers) == 3
    wait_until(lambda: any(children(pid) for pid in fork_servers))
    running = [child for pid in fork_servers for child in children(pid)]
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: all(is_gone(pid) for pid in (*fork_servers, *running)))


def test_a_finished_program_leaves_no_process(own_runner):
    run(own_runner, "import threading\nthreading.Thread(target=threading.Event().wait).start()\ndef f(): pass\n", "f()")
    assert children(candidate_fork_server(own_runner)) == []


def test_a_program_is_told_nothing_of_the_parents_environment(own_runner):
    (answer,) = run(own_runner, "import os", "sorted(os.environ)").results
    assert b"HOME" in answer.value
    assert not {name for name in os.environ if f":{name}".encode() in answer.value} - {
        "HOME", "LANG", "PATH", "TZ", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONHASHSEED",
        "PYTHONDONTWRITEBYTECODE", "LC_CTYPE", "MALLOC_ARENA_MAX",
    }  # fmt: skip
