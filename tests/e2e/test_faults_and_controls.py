"""Runs that are sabotaged on purpose, and runs on real problems."""

import json
import subprocess
import sys

import pytest
from msgspec.structs import replace

from code_a1_recipe.algorithm.mistake_book import MistakeBook
from code_a1_recipe.runs.reader import read_rollouts
from code_a1_recipe.runs.rollout_record import RolloutRecord

from .proofs import replayed_book

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
    for kind in ("fork server", "judge", "candidate", "episode worker"):
        assert f"killed a {kind}" in resumed.run.output
    assert resumed.processes_left == []


def without_time(record: RolloutRecord) -> RolloutRecord:
    verdict = record.verdict and replace(record.verdict, cpu_seconds=0.0)
    suites = tuple(replace(suite, span=None, cached_tokens=0) for suite in record.suites)
    spans = dict.fromkeys(("span", "judge_span", "hidden_span", "pooled_span"))
    return replace(record, verdict=verdict, suites=suites, **spans)


def test_killing_the_sandbox_invents_no_verdict_and_no_reward(resumed, repository, tmp_path):
    records = resumed.run.rollouts(3)
    assert resumed.run.metrics[2]["judge/outages"] == sum(bool(record.outage) for record in records)
    # Judged again in peace: whatever was judged among the kills has the same verdicts and rewards.
    scored = tmp_path / "scored.jsonl"
    rollouts = resumed.run.folder / "rollouts" / "train_000003.jsonl"
    command = [sys.executable, "-m", "code_a1_recipe", "score", str(rollouts), "--output", str(scored)]
    subprocess.run(command, cwd=repository, check=True, timeout=120)
    again = {(row.index, row.candidate): row for row in read_rollouts(scored)}
    judged = [record for record in records if not record.outage]
    assert len(judged) > len(records) / 2
    for record in judged:
        assert without_time(again[record.index, record.candidate]) == without_time(record)


@pytest.fixture(scope="module")
def terminated(interrupt, shared_dir, tmp_path_factory):
    """Real problems, and a SIGTERM while the episodes of step 2 run."""
    return interrupt(
        tmp_path_factory.mktemp("e2e") / "mbpp",
        "step 1/50 |",
        f"data.train_files={shared_dir / 'data' / 'mbpp.jsonl'}",
        "trainer.total_training_steps=50",
        *SHORT,
    )


def test_real_problems_train_too(terminated):
    records = terminated.rollouts(1)
    assert len(records) == 8 * 4
    assert all(record.verdict is not None for record in records)


def test_sigterm_saves_the_last_finished_step_and_leaves_in_time(terminated):
    assert terminated.returncode == 143, terminated.output[-4000:]
    assert terminated.seconds_to_leave < 120
    (row,) = terminated.metrics
    saved = terminated.folder / "checkpoints" / "global_step_1"
    assert f"interrupted by SIGTERM: step 1 is saved in {saved}" in terminated.output
    assert (saved.parent / "latest_checkpointed_iteration.txt").read_text() == "1"
    assert MistakeBook.load(saved / "mistake_book.json") == replayed_book([terminated.rollouts(1)])
    assert json.loads((saved / "metrics.json").read_text())["code/reward"] == row["code/reward"]
