"""What a run writes and prints."""

import json
import math
import threading

import numpy as np
import pytest

from code_a1_recipe.runs.console import step_line, time_metrics
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.runs.metrics import finalize_metrics


def rows_of(folder):
    return [json.loads(line) for line in folder.metrics.read_text().splitlines()]


def log(folder, step, data=b"{}\n", **options):
    with folder.rollout_log(step, **options) as write:
        write(data)


def test_metrics_are_one_json_object_a_step(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.root.mkdir(parents=True)
    folder.append_metrics(1, {"b": np.float32(0.5), "a": 2, "nan": math.nan})
    folder.append_metrics(2, {"a": True})
    assert rows_of(folder) == [{"step": 1, "a": 2, "b": 0.5, "nan": None}, {"step": 2, "a": 1}]


def test_a_resumed_run_writes_each_step_once(tmp_path):
    folder = RunFolder(tmp_path)
    for step in (0, 1, 2, 3):
        folder.append_metrics(step, {"a": step})
    with folder.metrics.open("a") as handle:
        handle.write('{"step": 4, "a"')  # the run died here
    folder.continue_at(2, {})
    folder.append_metrics(3, {"a": 30})
    assert [(row["step"], row["a"]) for row in rows_of(folder)] == [(0, 0), (1, 1), (2, 2), (3, 30)]


def test_what_a_step_lacks_is_added_to_its_row(tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.metrics_row(2) is None
    folder.append_metrics(1, {"a": 1})
    folder.append_metrics(2, {"a": 2})
    folder.add_to_metrics(2, {"val/a": 0.5})
    folder.add_to_metrics(3, {"a": 3})
    assert rows_of(folder) == [{"step": 1, "a": 1}, {"step": 2, "a": 2, "val/a": 0.5}, {"step": 3, "a": 3}]


def test_records_of_a_start_without_a_checkpoint_are_set_aside(tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.set_aside() is None
    for number in (1, 2):
        folder.append_metrics(number, {"a": 1})
        log(folder, 1)
        assert folder.set_aside() == tmp_path / f"unsaved_{number}"
        assert (tmp_path / f"unsaved_{number}" / "rollouts" / "train_000001.jsonl").exists()
    assert not folder.metrics.exists()


def test_a_damaged_line_of_metrics_is_left_out(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append_metrics(1, {"a": 1})
    with folder.metrics.open("ab") as handle:
        handle.write(b"\0" * 20 + b"\n")
    folder.continue_at(2, {"a": 2})
    assert [row["step"] for row in rows_of(folder)] == [1, 2]


def test_a_resumed_run_forgets_the_rollouts_it_writes_again(tmp_path):
    folder = RunFolder(tmp_path)
    for step in (1, 2, 3):
        for validation in (False, True):
            log(folder, step, validation=validation)
    folder.continue_at(2, {})
    left = sorted(path.name for path in folder.rollouts.iterdir())
    assert left == ["train_000001.jsonl", "train_000002.jsonl", "val_000001.jsonl", "val_000002.jsonl"]


def test_rollouts_are_copied_under_the_name_that_verl_gives_them(tmp_path):
    folder = RunFolder(tmp_path / "run")
    log(folder, 12, copy_in=str(tmp_path / "copies"))
    assert (tmp_path / "copies" / "12.jsonl").read_bytes() == (folder.rollouts / "train_000012.jsonl").read_bytes()


def lose_an_episode(folder):
    with folder.rollout_log(1) as write:
        write(b"a")
        raise RuntimeError("lost")


def test_a_rollout_log_appears_only_when_the_step_is_complete(tmp_path):
    folder = RunFolder(tmp_path)
    with pytest.raises(RuntimeError, match="lost"):
        lose_an_episode(folder)
    assert list(folder.rollouts.glob("*.jsonl")) == []
    with folder.rollout_log(1) as write:
        write(b"a\nb\n")
        write(b"c\n")
    assert (folder.rollouts / "train_000001.jsonl").read_bytes() == b"a\nb\nc\n"


def test_the_shares_of_a_steps_time_add_up_to_one():
    timing = {"step": 4.0, "episodes": 2.0, "update_code": 0.5, "update_test": 0.5, "gen": 9.0}
    shares = time_metrics({}, timing, num_devices=1, updates_at_once=False)
    assert (shares.pop("perf/generate_throughput"), shares.pop("perf/train_throughput")) == (0, 0)
    assert shares == {
        "time_frac/episodes": 0.5,
        "time_frac/update_code": 0.125,
        "time_frac/update_test": 0.125,
        "time_frac/other": 0.25,
    }


def test_of_updates_at_the_same_time_the_longer_one_counts():
    timing = {"step": 8.0, "episodes": 4.0, "update_code": 3.0, "update_test": 2.0}
    shares = time_metrics({}, timing, num_devices=1, updates_at_once=True)
    names = ("episodes", "update_code", "update_test", "other")
    assert [shares[f"time_frac/{name}"] for name in names] == [0.5, 0.375, 0.25, 0.125]
    without = time_metrics({}, {"step": 8.0, "episodes": 4.0}, num_devices=1, updates_at_once=True)
    assert without == {"time_frac/episodes": 0.5, "time_frac/other": 0.5, "perf/generate_throughput": 0}


def test_the_line_of_a_step():
    metrics = {
        "code/reward": 0.5,
        "test/reward": 0.25,
        "test/valid": 0.75,
        "test/adv": 0.125,
        "book/cases": 12,
        "judge/outages": 0,
        "timing_s/step": 4.0,
        "time_frac/exposed_judging": 0.125,
        "perf/generated_tokens": 400,
        "code/perf/total_num_tokens": 300,
        "test/perf/total_num_tokens": 500,
    }
    timing = {"step": 4.0, "episodes": 2.0, "update_code": 1.0, "update_test": 0.25}
    made = time_metrics(metrics, timing, num_devices=2, updates_at_once=False)
    assert (made["perf/generate_throughput"], made["perf/train_throughput"]) == (100, 320)
    metrics |= time_metrics(metrics, timing, num_devices=2, updates_at_once=True)
    assert metrics["perf/train_throughput"] == 400
    assert step_line(3, 30, metrics) == (
        "step 3/30 | code 0.500 | test 0.250 | valid 0.75 | adv 0.12 | book 12 | outages 0 | "
        "4.0s (episodes 50%, code 25%, test 6%) | 100 and 400 tokens/s, 12% judging alone"
    )


def test_sums_of_episodes_turn_into_means_and_totals():
    sums = [{"code/reward": (1.0, 2), "judge/outages": (1.0, 2)}, {"code/reward": (2.0, 2)}]
    assert finalize_metrics(sums, prefix="val/") == {"val/code/reward": 0.75, "val/judge/outages": 1.0}


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
