"""A start that stalls: what Ray has no place for is named, with what it asks for and what is free."""

import os
import subprocess
import sys

import pytest

from code_a1_recipe.training.lifecycle import start_watch

pytestmark = pytest.mark.nightly

# In a process of its own, as Ray's driver state is one a process.
STALLED = """
import threading
import time
import ray
from ray.util.placement_group import placement_group
from code_a1_recipe.training.lifecycle import start_watch

start_watch.NOTE_SECONDS = 0.5
ray.init(address="local", num_cpus=1, include_dashboard=False, logging_level="error")

@ray.remote(num_cpus=3)
class JudgeWorker:
    pass

@ray.remote(num_cpus=0)
class SlowServer:  # has its place, and takes its time
    def __init__(self):
        time.sleep(60)

slow = SlowServer.remote()
time.sleep(3)

def stalled(*, is_waiting):
    if is_waiting:
        keep = JudgeWorker.remote(), placement_group([{"CPU": 4}], strategy="STRICT_PACK")
    said = []
    given_up = threading.Event()

    def give_up(why):
        said.append(f"gave up: {why}")
        given_up.set()

    with start_watch.start_watch(2.0, note=said.append, give_up=give_up):
        assert given_up.wait(20)
    return said

print(*stalled(is_waiting=False), *stalled(is_waiting=True), sep="\\n")
with start_watch.start_watch(0.5, note=print, give_up=print) as has_started:
    has_started()
    time.sleep(2)
print("in time")
"""


@pytest.fixture(scope="module")
def lines():
    environment = {**os.environ, "RAY_SCHEDULER_EVENTS": "0"}  # the autoscaler would speak in between
    run = subprocess.run([sys.executable, "-c", STALLED], env=environment, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_a_start_in_which_all_have_a_place_ends_at_its_limit(lines):
    assert lines[0] == (
        "gave up: not started after start_timeout_seconds=2: every process has its place; the worker logs say what "
        "each one does"
    )


def test_what_has_no_place_is_named_early_and_at_the_limit(lines):
    waiting = "Ray has no place for 1 JudgeWorker; a placement group (STRICT_PACK) of 4 CPU. Free are 1 CPU"
    assert lines[1] == waiting
    assert lines[2] == f"gave up: not started after start_timeout_seconds=2: {waiting}"


def test_a_start_in_time_says_nothing(lines):
    assert lines[3:] == ["in time"]


def test_what_has_just_asked_for_a_place_is_not_named(monkeypatch):
    monkeypatch.setattr(start_watch, "_pending_actors", lambda: {"new": "JudgeWorker", "old": "Server"})
    monkeypatch.setattr(start_watch, "placement_group_table", dict)
    monkeypatch.setattr(start_watch.ray, "available_resources", dict)
    assert start_watch.without_a_place({"old"}) == "Ray has no place for 1 Server. Free are no CPUs"
