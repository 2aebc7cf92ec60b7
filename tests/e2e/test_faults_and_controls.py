"""Runs that are sabotaged on purpose, and runs on real problems."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.e2e

SHORT = ("trainer.save_freq=-1", "trainer.test_freq=-1", "trainer.val_before_train=False")


def test_a_cut_weight_sync_is_seen(cut):
    assert cut.returncode == 0, cut.output[-4000:]
    first, second = cut.metrics[:2]
    for policy in ("code", "test"):
        assert first[f"{policy}/rollout_probs_diff_mean"] <= 1e-5
        assert second[f"{policy}/rollout_probs_diff_mean"] > 1e-4


def test_killing_the_sandbox_ends_no_run_and_leaves_no_process(resumed):
    assert resumed.run.returncode == 0, resumed.run.output[-4000:]
    for kind in ("zygote", "judge", "candidate", "episode worker"):
        assert f"killed a {kind}" in resumed.run.output
    assert resumed.processes_left == []


def without_time(record: dict) -> dict:
    verdict = record["verdict"] and {key: value for key, value in record["verdict"].items() if key != "cpu_seconds"}
    return {**record, "verdict": verdict}


def test_killing_the_sandbox_invents_no_verdict_and_no_reward(resumed, repository, tmp_path):
    records = resumed.run.rollouts(3)
    assert resumed.run.metrics[2]["judge/outages"] == sum(bool(record["outage"]) for record in records)
    # Judged again in peace: whatever was judged among the kills has the same verdicts and rewards.
    scored = tmp_path / "scored.jsonl"
    rollouts = resumed.run.folder / "rollouts" / "train_000003.jsonl"
    command = [sys.executable, "-m", "code_a1_recipe", "score", str(rollouts), "--output", str(scored)]
    subprocess.run(command, cwd=repository, check=True, timeout=120)
    again = {(row["index"], row["candidate"]): row for row in map(json.loads, scored.read_text().splitlines())}
    judged = [record for record in records if not record["outage"]]
    assert len(judged) > len(records) / 2
    for record in judged:
        row = again[record["index"], record["candidate"]]
        assert without_time({key: row[key] for key in record}) == without_time(record)


def test_real_problems_train_too(train, shared_dir, tmp_path):
    run = train(
        tmp_path / "mbpp",
        f"data.train_files={shared_dir / 'data' / 'mbpp.jsonl'}",
        "trainer.total_training_steps=1",
        *SHORT,
    )
    assert run.returncode == 0, run.output[-4000:]
    records = run.rollouts(1)
    assert len(records) == 8 * 4
    assert all(record["verdict"] is not None for record in records)
