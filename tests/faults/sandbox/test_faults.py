"""Cases in which the machine is at fault and not the program, and programs that print or return too much."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sandbox import CallStatus, Limits, LocalRunner, Role, SandboxUnavailableError
from sandbox.runners.local import fork_server, fork_server_main, jail_choice

from ...conformance.programs import run
from ...unit.sandbox.processes import children, wait_until

LIMITS = Limits(cpu_seconds_per_case=10.0, min_cpu_seconds_per_case=5.0, wall_seconds_per_case=60.0)
SLEEPER = "import time\ndef f(n):\n    time.sleep(0.3)\n    return n\n"
ONE, TWO = (CallStatus.VALUE, b"i1;"), (CallStatus.VALUE, b"i2;")


@pytest.fixture(scope="module")
def runner():
    with LocalRunner() as shared:
        yield shared


def ask(runner, source, *expressions, limits=LIMITS):
    return [(answer.status, answer.value) for answer in run(runner, source, *expressions, limits=limits).results]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (
            "import os\ndef f(n):\n    block = b'x' * 10**6\n    for _ in range(5_000):\n        os.write(1, block)\n"
            "    return n\n",
            CallStatus.VALUE,
        ),
        ("def f(n):\n    return 'x' * 5_000_000_000 if n == 1 else n\n", CallStatus.RAISED),
    ],
    ids=["5 GB printed", "5 GB returned"],
)
def test_a_flood_costs_at_most_its_own_case(runner, source, kind):
    kinds = [answer_kind for answer_kind, _ in ask(runner, source, "f(1)", "f(2)")]
    assert kinds[0] is kind
    assert kinds[1] is CallStatus.VALUE


def kill_the_first(monkeypatch, number):
    """Kill the next ``number`` fork servers as soon as they have started."""
    left = iter(range(number))
    start = subprocess.Popen

    def start_and_kill(command, **options):
        process = start(command, **options)
        if next(left, None) is not None:
            process.kill()
        return process

    monkeypatch.setattr(fork_server.subprocess, "Popen", start_and_kill)


def test_a_fork_server_killed_while_it_starts_is_started_again(monkeypatch):
    kill_the_first(monkeypatch, 2)
    with LocalRunner() as runner:
        assert ask(runner, SLEEPER, "f(1)") == [ONE]


def test_fork_servers_that_are_killed_again_and_again_are_an_outage_and_no_complaint_about_the_machine(monkeypatch):
    kill_the_first(monkeypatch, 10**6)
    with pytest.raises(SandboxUnavailableError, match="3 fork servers of role candidate died while they started"):
        LocalRunner()


def test_a_killed_probe_says_nothing_about_the_machine():
    class Killed:
        ruleset_fd = None

        def enter(self, limits):
            os.kill(os.getpid(), signal.SIGKILL)

    assert jail_choice.try_jail(Killed()) is None


def test_judging_needs_no_disk(repository):
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "from sandbox import *\n"
        "with LocalRunner() as runner:\n"
        "    request = JudgeRequest(question_id='q', reference='def f(n): return n', candidate='def f(n): return n',\n"
        "                           suites=(('assert f(1) == 1',),))\n"
        "    print(Judge(runner).judge(request).suites[0].cases[0].outcome.value)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout == "passed\n"


def test_a_fork_that_the_system_refuses_is_reported_and_not_survived_by_a_verdict(monkeypatch):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def refuse():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(fork_server_main.os, "fork", refuse)
    inside = fork_server_main._ForkServer(control=theirs, parent=os.getppid(), jail=None, namespaces=None, server=None)
    outside = fork_server.ForkServer.__new__(fork_server.ForkServer)
    outside._control = ours
    served = threading.Thread(target=inside.serve)
    served.start()
    with pytest.raises(SandboxUnavailableError, match=r"refused a fork: .*unavailable"):
        outside.fork(Limits(), cpu_seconds=64)
    ours.close()
    served.join()
    theirs.close()


def test_a_wall_clock_that_jumps_changes_no_outcome(runner, monkeypatch):
    jumps = iter(range(10**9))
    monkeypatch.setattr(time, "time", lambda: 1e9 * (-1) ** next(jumps))
    assert ask(runner, SLEEPER, "f(1)", "f(2)") == [ONE, TWO]


def run_and_stop(runner, choose, limits=LIMITS):
    """Run two sleeping calls, and meanwhile stop the process ``choose(pid of the fork server)``."""
    pid = runner._pools[Role.CANDIDATE].pids()[0]
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(ask, runner, SLEEPER, "f(1)", "f(2)", limits=limits)
        wait_until(lambda: children(pid))
        os.kill(choose(pid), signal.SIGSTOP)
        return work.result()


def test_a_stopped_program_is_asked_again_in_another_process(runner):
    limits = replace(LIMITS, wall_seconds_per_case=1.5)
    assert run_and_stop(runner, lambda pid: children(pid)[0], limits) == [ONE, TWO]


def test_a_stopped_fork_server_is_replaced(monkeypatch):
    monkeypatch.setattr(fork_server, "_CONTROL_SECONDS", 3.0)
    with LocalRunner() as own:
        assert run_and_stop(own, lambda pid: pid) == [ONE, TWO]


def test_threads_that_wait_for_a_processor_are_not_idle(runner):
    source = (
        "import threading, time\n"
        "def work():\n    end = time.thread_time() + 0.2\n    while time.thread_time() < end: pass\n"
        "def f(n):\n    one = threading.Thread(target=work)\n    one.start()\n    one.join()\n    return n\n"
    )
    limits = replace(LIMITS, wall_seconds_per_case=0.5)
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    try:
        assert ask(runner, source, "f(1)", limits=limits) == [ONE]
    finally:
        for spinner in spinners:
            with spinner:
                spinner.kill()
