"""What ended a run is told in one line, and a signal asks for an end before it forces one."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
import torch
from ray.exceptions import ActorDiedError, ActorUnavailableError, OutOfMemoryError, RayTaskError

import code_a1_recipe.training.policy as policy_module
from code_a1_recipe.errors import DiskFullError, OutageError
from code_a1_recipe.training.lifecycle import process_watch
from code_a1_recipe.training.lifecycle.failures import explain
from code_a1_recipe.training.lifecycle.signals import InterruptedRunError, LeaveRequestedError, SignalHandler
from code_a1_recipe.training.lifecycle.time_limit import within


def from_a_worker(error: Exception) -> Exception:
    """The error as ``ray.get`` raises it."""
    return RayTaskError("train", "Traceback: in a worker", error).as_instanceof_cause()


@pytest.mark.parametrize("error", [OutageError("x"), DiskFullError("x")])
def test_our_own_words_are_shown_as_they_are_from_wherever_they_come(error):
    assert explain(error, run_dir="r") == "x"
    assert explain(from_a_worker(error), run_dir="r") == "x"


def test_a_full_disk_is_told_with_its_place():
    full = OSError(errno.ENOSPC, "No space left on device")
    for error in (full, from_a_worker(full), from_a_worker(RuntimeError("write failed: No space left on device"))):
        told = explain(error, run_dir="outputs/x")
        assert told is not None
        assert told.startswith("no room to write, probably in outputs/x")


def test_a_lost_process_is_told_and_nothing_is_claimed_of_it():
    told = explain(from_a_worker(ActorDiedError()), run_dir="r")
    assert told is not None
    assert "a process of the run was lost (" in told
    assert told.count("\n") == 0


def test_too_little_memory_is_told_with_what_to_lower():
    for error in (OutOfMemoryError("a page of Ray's words"), from_a_worker(torch.OutOfMemoryError("CUDA"))):
        told = explain(error, run_dir="r")
        assert told is not None
        assert told.startswith("a machine ran out of memory")
        assert "data.train_batch_size" in told


def test_an_engine_that_failed_is_told_in_one_line():
    for text in ("EngineDeadError: see stack trace", "CUDA error: an illegal memory access was encountered"):
        told = explain(from_a_worker(RuntimeError(f"Traceback\n{text}")), run_dir="r")
        assert told is not None
        assert text in told
        assert told.count("\n") == 0


def test_a_process_that_cannot_start_says_why():
    why = RayTaskError(
        "__init__", "Traceback ...\nValueError: No available memory for the cache blocks.", ValueError("x")
    )
    told = explain(ActorDiedError(why), run_dir="r")
    assert told == "a process of the run could not start: ValueError: No available memory for the cache blocks."


def test_weights_that_could_not_be_written_to_their_end_mean_a_full_disk():
    error = RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0")
    assert str(explain(from_a_worker(error), run_dir="r")).startswith("no room to write")


def test_a_mistake_while_handling_a_loss_is_a_mistake():
    def handle_badly() -> None:
        try:
            raise ActorDiedError
        except ActorDiedError:
            raise AttributeError("foo")  # noqa: B904  # what a slip in a handler raises

    with pytest.raises(AttributeError) as caught:
        handle_badly()
    assert explain(caught.value, run_dir="r") is None


def test_a_reader_that_is_gone_keeps_no_run_from_saving():
    def broken(line: str) -> None:
        raise BrokenPipeError

    handler = SignalHandler(leave_within_seconds=60, show=broken)
    with handler.listening():
        handler.can_save = True
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(LeaveRequestedError):
            handler.check()


@pytest.mark.parametrize("error", [ValueError("x"), from_a_worker(KeyError("x"))])
def test_a_mistake_in_the_program_keeps_its_traceback(error):
    assert explain(error, run_dir="r") is None


def test_a_first_signal_asks_and_a_second_one_ends():
    said: list[str] = []
    handler = SignalHandler(leave_within_seconds=60, show=said.append)
    with handler.listening():
        handler.check()
        handler.can_save = True
        os.kill(os.getpid(), signal.SIGTERM)
        assert said == ["SIGTERM: saving and leaving, within 60 s; once more: leave at once"]
        with pytest.raises(LeaveRequestedError):
            handler.check()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_there_is_time_for_twice_what_the_last_save_took():
    said: list[str] = []
    handler = SignalHandler(leave_within_seconds=60, show=said.append)
    handler.can_save = True
    for seconds in (20.0, 400.0, 1.0):
        handler.note_save(seconds)
    with handler.listening():
        os.kill(os.getpid(), signal.SIGTERM)
    assert said == ["SIGTERM: saving and leaving, within 800 s; once more: leave at once"]


def test_before_there_is_anything_to_save_a_signal_ends_at_once():
    handler = SignalHandler(leave_within_seconds=60, show=lambda line: None)
    before = signal.getsignal(signal.SIGTERM)
    with handler.listening(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_exit_status_is_the_signals():
    assert InterruptedRunError(signal.SIGTERM, "x").exit_status == 143
    assert InterruptedRunError(signal.SIGINT, "x").exit_status == 130


HANGS = """
import signal, sys, time
from code_a1_recipe.training.lifecycle.signals import SignalHandler
handler = SignalHandler(leave_within_seconds=0.5, show=lambda line: print(line, flush=True))
with handler.listening():
    handler.can_save = True
    print("ready", flush=True)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.05)
"""


def test_a_run_that_cannot_save_in_time_leaves_all_the_same():
    process = subprocess.Popen([sys.executable, "-c", HANGS], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=30)[0]
    assert process.returncode == 143
    assert time.monotonic() - started < 20
    assert "error: not saved, and not left within 0.5 s (checkpoint.leave_within_seconds, or twice" in output


def test_servers_that_do_not_answer_keep_no_run_from_saving(monkeypatch):
    monkeypatch.setattr(policy_module, "_ABANDON_SECONDS", 0.1)
    stalled = threading.Event()
    policy = policy_module.Policy.__new__(policy_module.Policy)
    policy.name = "test"
    policy.checkpoint_manager = SimpleNamespace(
        abort_replicas=lambda reject_request: stalled.wait(),
        sleep_replicas=stalled.wait,
        update_weights=lambda step: 1 / 0,
    )
    policy.settings = SimpleNamespace(episode=SimpleNamespace(generation_timeout_seconds=0.2))
    started = time.monotonic()
    policy.abandon()
    with pytest.raises(OutageError, match="of the test policy did not answer within"):
        policy.sleep()
    stalled.set()
    assert time.monotonic() - started < 10
    with pytest.raises(ZeroDivisionError):
        policy.sync_weights(1)


def test_a_call_with_an_end():
    assert within(float("inf"), lambda: None, name="quick")
    forever = threading.Event()
    assert not within(0.05, forever.wait, name="slow")
    forever.set()
    with pytest.raises(ZeroDivisionError):
        within(10, lambda: 1 / 0, name="wrong")


@pytest.mark.parametrize(("error", "lost"), [(ActorUnavailableError("busy", None), False), (ActorDiedError(), True)])
def test_a_process_that_cannot_be_reached_for_now_is_not_lost(monkeypatch, error, lost):
    def get(answer):
        raise error

    monkeypatch.setattr(process_watch.ray, "wait", lambda answers, timeout: (answers, []))
    monkeypatch.setattr(process_watch.ray, "get", get)
    assert process_watch._is_lost({"worker": "answer"}, "worker") == lost
