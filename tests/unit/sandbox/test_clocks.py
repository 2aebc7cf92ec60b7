"""CPU time and idle time of another process."""

import subprocess
import sys
import time

import pytest

from sandbox.runners import clocks
from sandbox.runners.clocks import Stopwatch, process_cpu_seconds


@pytest.fixture
def start():
    started = []

    def run(code):
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", f"print(1, flush=True)\n{code}"], stdout=subprocess.PIPE
        )
        started.append(process)
        process.stdout.readline()
        return process.pid

    yield run
    for process in started:
        with process:
            process.kill()


def read_until(watch, enough):
    deadline = time.monotonic() + 30
    while not enough(reading := watch.read()):
        assert time.monotonic() < deadline, reading
        time.sleep(0.02)
    return reading


def test_a_spinning_process_uses_processor_time_and_is_not_idle(start):
    watch = Stopwatch(start("while True: pass"))
    _, idle = read_until(watch, lambda reading: reading[0] > 0.3)
    assert idle < 0.1  # other load on the machine does not count


def test_a_sleeping_process_is_idle(start):
    watch = Stopwatch(start("import time; time.sleep(1000)"))
    cpu, _ = read_until(watch, lambda reading: reading[1] > 0.3)
    assert cpu < 0.1


def test_a_quarter_of_the_kernels_time_for_new_pages_counts_and_all_of_its_other_time(start):
    used, counted = spent(start("import os\nwhile True: os.urandom(1 << 12)"))
    assert counted > 0.9 * used
    used, counted = spent(
        start("import mmap\nwhile True: mmap.mmap(-1, 1 << 26, mmap.MAP_PRIVATE | mmap.MAP_POPULATE)")
    )
    assert 0.2 * used < counted < 0.9 * used


def spent(pid):
    """Return the CPU seconds that a process has used in about one second, and the part of them that counts."""
    watch = Stopwatch(pid)
    watch.read()
    before = process_cpu_seconds(pid)
    read_until(watch, lambda reading: process_cpu_seconds(pid) - before > 1.0)
    used = process_cpu_seconds(pid) - before
    return used, watch.read()[0]


def test_a_restarted_stopwatch_begins_at_its_next_reading(start):
    watch = Stopwatch(start("while True: pass"))
    read_until(watch, lambda reading: reading[0] > 0.1)
    watch.restart()
    assert watch.read() == (0.0, 0.0)


def test_a_process_that_is_gone_has_used_nothing():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert process_cpu_seconds(process.pid) == 0.0


@pytest.mark.parametrize(
    ("readings", "idle"),
    [
        pytest.param([(1, 60), (2, 60), (3, 60)], 2, id="waits of many threads pay for no later sleep"),
        pytest.param([(1, 0), (1.5, 60)], 0, id="and for no sleep before the last interval"),
        pytest.param([(1, 0), (2, 0), (2.1, 60)], 1, id="only for the last one"),
        pytest.param([(0.5, 0), (1, 1)], 0, id="a wait that ends later than a reading counts in full"),
    ],
)
def test_the_waits_of_all_threads_count_at_most_the_clock_on_the_wall(monkeypatch, readings, idle):
    """Each reading is the time, and the seconds that all threads have waited for a processor."""
    watch = Stopwatch(0)
    for wall, waiting in [(0, 0), *readings]:
        now = clocks._Reading(cpu=0.0, pages=0.0, wall=wall, waiting=waiting, is_running=False)
        monkeypatch.setattr(clocks._Reading, "of", lambda pid, now=now: now)
        reading = watch.read()
    assert reading[1] == pytest.approx(idle)
