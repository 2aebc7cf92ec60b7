"""A run that goes on while it is read: only what is new is read, and nothing is written."""

import json
import os
import threading

import pytest

from code_a1_recipe.errors import InputError
from code_a1_recipe.runs import reader
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.runs.live_run import LiveRun
from code_a1_recipe.runs.reader import MetricsTail, RunRecords
from code_a1_recipe.runs.rollout_record import encode_records

from ..conftest import record


def line(step, **more):
    return json.dumps({"step": step, **more}) + "\n"


@pytest.fixture
def decoded(monkeypatch):
    """The lines of metrics that were decoded."""
    lines, decode = [], reader._metrics_row
    monkeypatch.setattr(reader, "_metrics_row", lambda text: lines.append(text) or decode(text))
    return lines


def test_only_new_lines_of_the_metrics_are_read(tmp_path, decoded):
    path = tmp_path / "metrics.jsonl"
    tail = MetricsTail(path)
    tail.read()
    assert tail.rows == []
    path.write_text(line(1) + line(2))
    tail.read()
    tail.read()
    with path.open("a") as handle:
        handle.write(line(3))
    tail.read()
    assert [row["step"] for row in tail.rows] == [1, 2, 3]
    assert len(decoded) == 3


@pytest.mark.parametrize("cut", [1, 5, len(line(2)) - 1])
def test_a_half_written_line_is_read_when_it_is_whole(tmp_path, cut):
    path = tmp_path / "metrics.jsonl"
    path.write_text(line(1) + line(2)[:cut])
    tail = MetricsTail(path)
    tail.read()
    assert [row["step"] for row in tail.rows] == [1]
    with path.open("a") as handle:
        handle.write(line(2)[cut:])
    tail.read()
    assert [row["step"] for row in tail.rows] == [1, 2]


def test_metrics_that_a_resumed_run_takes_back_are_forgotten(tmp_path):
    folder = RunFolder(tmp_path)
    for step in (1, 2, 3):
        folder.append_metrics(step, {"a": 1})
    tail = MetricsTail(folder.metrics)
    tail.read()
    folder.rewind(1)
    folder.append_metrics(2, {"a": 22})
    folder.append_metrics(3, {"a": 33})  # as long as before
    tail.read()
    assert [(row["step"], row["a"]) for row in tail.rows] == [(1, 1), (2, 22), (3, 33)]
    folder.metrics.unlink()
    tail.read()
    assert tail.rows == []


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(line(1) + "{}\n")
    with pytest.raises(InputError, match=r"metrics.jsonl, line 2 is no row of metrics: must have an integer 'step'"):
        MetricsTail(path).read()


def test_whether_a_run_goes_on_is_seen_without_a_trace(tmp_path):
    folder = RunFolder(tmp_path)
    assert not folder.is_running()
    assert list(tmp_path.iterdir()) == []
    with folder.lock():
        assert folder.is_running()
    assert not folder.is_running()


def test_a_run_can_begin_while_somebody_looks(tmp_path):
    folder, ends = RunFolder(tmp_path), threading.Event()
    with folder.lock():
        pass

    def look():
        while not ends.is_set():
            folder.is_running()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(200):
            with folder.lock():
                pass
    finally:
        ends.set()
        thread.join()


def test_a_run_is_running_then_finished_or_stopped(run_folder):
    live = LiveRun(run_folder)
    live.refresh()
    assert live.state == "ended"
    live.total_steps = 2
    assert live.state == "finished"
    live.total_steps = 3
    assert (live.state, live.expected_end) == ("stopped", None)
    with RunFolder(run_folder).lock():
        live.refresh()
        assert live.state == "running"
        assert live.expected_end == pytest.approx(live.updated + 3.0)  # steps took 2 and 4 seconds


def test_rollouts_are_read_again_only_when_their_file_changes(run_folder, monkeypatch):
    read, training = [], RunRecords.training
    monkeypatch.setattr(RunRecords, "training", lambda run, step: read.append(step) or training(run, step))
    live = LiveRun(run_folder)
    assert len(live.records(2)) == len(live.records(2)) == 2
    assert read == [2]
    path = live.paths.rollout_file(2, validation=False)
    path.write_bytes(encode_records([record(3, step=2)]))
    os.utime(path, ns=(0, 1))
    assert [one.index for one in live.records(2)] == [3]


def test_questions_whose_file_is_gone_are_left_out(run_folder):
    live = LiveRun(run_folder)
    live.read_questions()
    assert len(live.questions) == 6
    (run_folder / "questions.jsonl").unlink()
    again = LiveRun(run_folder)
    again.read_questions()
    assert again.questions == {}
