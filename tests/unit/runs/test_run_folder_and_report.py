"""What a run writes and prints."""

import json
import math
import threading

import numpy as np
import pytest

from code_a1_recipe.runs.console import step_line, time_metrics
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.runs.metrics import finalize_metrics, validation_metrics


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def rows_of(folder):
    return [json.loads(line) for line in folder.metrics.read_text().splitlines()]


def log(folder, step, data=b"{}\n", **options):
    with folder.rollout_log(step, **options) as write:
        write(data)


def test_metrics_are_one_json_object_a_step(folder):
    folder.append_metrics(1, {"b": np.float32(0.5), "a": 2, "nan": math.nan})
    folder.append_metrics(2, {"a": True})
    assert rows_of(folder) == [{"step": 1, "a": 2, "b": 0.5, "nan": None}, {"step": 2, "a": 1}]


@pytest.mark.parametrize("damaged", [b'{"step": 4, "a"', b"\0" * 20 + b"\n"])
def test_a_resumed_run_writes_each_step_once_and_no_damaged_line(folder, damaged):
    for step in range(4):
        folder.append_metrics(step, {"a": step})
    with folder.metrics.open("ab") as handle:
        handle.write(damaged)  # the machine died here
    folder.continue_at(2, {})
    folder.append_metrics(3, {"a": 30})
    folder.continue_at(4, {"a": 4})  # the checkpoint of step 4 was saved, but not its row
    assert rows_of(folder) == [{"step": step, "a": value} for step, value in enumerate([0, 1, 2, 30, 4])]


def test_what_a_step_lacks_is_added_to_its_row(folder):
    assert folder.metrics_row(2) is None
    folder.append_metrics(1, {"a": 1})
    folder.append_metrics(2, {"a": 2})
    folder.add_to_metrics(2, {"val/a": 0.5})
    folder.add_to_metrics(3, {"a": 3})
    assert rows_of(folder) == [{"step": 1, "a": 1}, {"step": 2, "a": 2, "val/a": 0.5}, {"step": 3, "a": 3}]


def test_records_of_a_start_without_a_checkpoint_are_set_aside(folder):
    assert folder.set_aside() is None
    for number in (1, 2):
        folder.append_metrics(number, {"a": 1})
        log(folder, 1)
        aside = folder.set_aside()
        assert aside == folder.root / f"unsaved_{number}"
        assert (aside / "rollouts" / "train_000001.jsonl").exists()
    assert not folder.metrics.exists()


def test_a_resumed_run_forgets_the_rollouts_it_writes_again(folder):
    for step in (1, 2, 3):
        for validation in (False, True):
            log(folder, step, validation=validation)
    folder.continue_at(2, {})
    left = sorted(path.name for path in folder.rollouts.iterdir())
    assert left == ["train_000001.jsonl", "train_000002.jsonl", "val_000001.jsonl", "val_000002.jsonl"]


def test_rollouts_are_copied_under_the_name_that_verl_gives_them(folder, tmp_path):
    log(folder, 12, copy_in=str(tmp_path / "copies"))
    assert (tmp_path / "copies" / "12.jsonl").read_bytes() == (folder.rollouts / "train_000012.jsonl").read_bytes()


def lose_an_episode(folder):
    with folder.rollout_log(1) as write:
        write(b"a")
        raise RuntimeError("lost")


def test_a_rollout_log_appears_only_when_the_step_is_complete(folder):
    with pytest.raises(RuntimeError, match="lost"):
        lose_an_episode(folder)
    assert list(folder.rollouts.glob("*.jsonl")) == []
    with folder.rollout_log(1) as write:
        write(b"a\nb\n")
        write(b"c\n")
    assert (folder.rollouts / "train_000001.jsonl").read_bytes() == b"a\nb\nc\n"


TIMING = {"step": 8.0, "episodes": 4.0, "update_code": 3.0, "update_test": 0.5}


@pytest.mark.parametrize(
    ("timing", "updates_at_once", "shares"),
    [
        (TIMING | {"gen": 9.0}, False, {"update_code": 0.375, "update_test": 0.0625, "other": 0.0625}),
        (TIMING | {"update_test": 2.0}, True, {"update_code": 0.375, "update_test": 0.25, "other": 0.125}),
        ({"step": 8.0, "episodes": 4.0}, True, {"other": 0.5}),
    ],
)
def test_shares_of_time_add_up_to_one_where_the_longer_of_two_updates_counts(timing, updates_at_once, shares):
    made = time_metrics({}, timing, num_devices=1, updates_at_once=updates_at_once)
    throughputs = [made.pop(name) for name in list(made) if name.endswith("_throughput")]
    assert throughputs == [0] * (2 if "update_code" in timing else 1)
    assert made == {"time_frac/episodes": 0.5} | {f"time_frac/{name}": share for name, share in shares.items()}


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


def test_sums_of_episodes_turn_into_means_and_totals_also_of_each_data_source():
    sums = [{"code/reward": (1.0, 2), "judge/outages": (1.0, 2)}, {"code/reward": (2.0, 2)}]
    together = {"val/code/reward": 0.75, "val/judge/outages": 1.0}
    assert finalize_metrics(sums, prefix="val/") == together
    parts = list(zip(("mbpp", "kodcode"), sums, strict=True))
    assert validation_metrics(parts[1:]) == {"val/code/reward": 1.0}
    assert validation_metrics(parts) == together | {
        "val/mbpp/code/reward": 0.5,
        "val/mbpp/judge/outages": 1.0,
        "val/kodcode/code/reward": 1.0,
    }


def test_whether_a_run_goes_on_is_seen_without_a_trace(folder):
    assert not folder.is_running()
    assert list(folder.root.iterdir()) == []
    with folder.lock():
        assert folder.is_running()
    assert not folder.is_running()


def test_a_run_can_begin_while_somebody_looks(folder):
    ends = threading.Event()

    def begin():
        with folder.lock():
            pass

    def look():
        while not ends.is_set():
            folder.is_running()

    begin()
    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(200):
            begin()
    finally:
        ends.set()
        thread.join()
