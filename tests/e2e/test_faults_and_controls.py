"""Runs that are sabotaged on purpose."""

import subprocess
import sys

import pytest
from msgspec.structs import replace

from code_a1_recipe.runs.reader import read_rollouts
from code_a1_recipe.runs.rollout_record import RolloutRecord

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("trained")]


def test_a_cut_weight_sync_is_seen(trained):
    for policy in ("code", "test"):
        assert trained.metrics[2][f"{policy}/rollout_log_probs_diff_worst"] <= 1e-5
        assert trained.metrics[3][f"{policy}/rollout_log_probs_diff_worst"] > 0.001  # the limit of `cpu`


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
