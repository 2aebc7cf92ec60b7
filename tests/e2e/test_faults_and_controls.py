"""Runs that are sabotaged on purpose, and runs on real problems."""

import pytest

pytestmark = pytest.mark.e2e

SHORT = ("trainer.save_freq=-1", "trainer.test_freq=-1", "trainer.val_before_train=False")


def test_a_cut_weight_sync_is_seen(cut):
    assert cut.returncode == 0, cut.output[-4000:]
    first, second = cut.metrics[:2]
    for policy in ("code", "test"):
        assert first[f"{policy}/rollout_probs_diff_mean"] <= 1e-5
        assert second[f"{policy}/rollout_probs_diff_mean"] > 1e-4


def without_time(record: dict) -> dict:
    verdict = record["verdict"] and {key: value for key, value in record["verdict"].items() if key != "cpu_seconds"}
    return {**record, "verdict": verdict}


def test_killing_the_sandbox_invents_no_reward_and_leaves_no_process(trained, drive, tmp_path, processes_mentioning):
    ours = {words: set(processes_mentioning(words)) for words in ("zygote_main", "JudgeWorker")}
    run = drive(
        "kill_sandbox.py", tmp_path / "killed", "trainer.total_training_steps=1", "data.train_max_samples=16", *SHORT
    )
    assert run.returncode == 0, run.output[-4000:]
    for kind in ("zygote", "judge", "candidate", "episode worker"):
        assert f"killed a {kind}" in run.output
    killed, quiet = run.rollouts(1), trained.rollouts(1)
    lost = [record for record in killed if record["outage"]]
    assert run.metrics[0]["judge/outages"] == len(lost)
    # Same seed, so the same programs and suites: whatever was judged was judged as in the quiet run.
    for mine, theirs in zip(killed, quiet, strict=True):
        if not mine["outage"]:
            mine, theirs = without_time(mine), without_time(theirs)
            assert {**mine, "selected": None} == {**theirs, "selected": None}
    for words, before in ours.items():  # other tests of this session keep judges of their own
        assert set(processes_mentioning(words)) - before == set()


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
