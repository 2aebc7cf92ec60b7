"""One model in both roles with pooled rewards, and tests harvested from its run as the fixed tests of another."""

import json
import subprocess
import sys

import pytest

from .conftest import SHORT

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.xdist_group("others")]


@pytest.fixture(scope="module")
def self_play(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("arms") / "self_play"
    return train(folder, "arm=self_play", "rewards.code_tests=pooled", *SHORT)


def test_self_play_updates_one_model_with_both_kinds_of_responses(self_play):
    assert self_play.returncode == 0, self_play.output[-4000:]
    assert len(self_play.metrics) == 2
    for row in self_play.metrics:
        assert row["code/rollout_probs_diff_mean"] <= 1e-5
        assert not any(name.startswith("test/actor") for name in row)
        assert row["timing_s/update_code"] > 0
    # Each program has a group of suites in the one batch.
    for record in self_play.rollouts(1):
        assert len(record.suites) == (4 if record.source is not None else 0)


def test_pooled_rewards_are_made_of_the_cases_of_all_programs_of_a_question(self_play):
    for index in range(8):
        records = [record for record in self_play.rollouts(1) if record.index == index and record.pooled_tests]
        written = {case.key for record in records for suite in record.suites for case in suite.verdict.cases}
        for record in records:
            cases = record.pooled_tests.cases
            assert {case.key for case in cases} == written
            rate = sum(case.outcome == "passed" for case in cases) / len(cases)
            assert record.reward.total == pytest.approx(rate, abs=1e-6)


def test_static_tests_are_the_ones_that_were_harvested(self_play, train, repository, tmp_path):
    tests = tmp_path / "tests.jsonl"
    command = [sys.executable, "-m", "code_a1_recipe", "harvest", str(self_play.folder), "--output", str(tests)]
    subprocess.run(command, cwd=repository, check=True, timeout=300)
    static = train(tmp_path / "static", "arm=static", f"data.train_files={tests}", *SHORT)
    assert static.returncode == 0, static.output[-4000:]
    rows = map(json.loads, tests.read_text().splitlines())
    harvested = {row["id"]: set(row["golden_tests"]) for row in rows}
    for record in static.rollouts(1):
        assert record.suites == ()
        if record.given_tests is None:
            continue
        cases = record.given_tests.cases
        assert {f"assert {case.call} == {case.reference_value}" for case in cases} == harvested[record.question]
        assert (record.reward.total == 1.0) is all(case.outcome == "passed" for case in cases)
