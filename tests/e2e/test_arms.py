"""Arms without a Test LLM, or with one model in both roles, through `studies.experiment`, harvest and report."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from code_a1_recipe.runs.reader import RunRecords

from .proofs import records_of

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("others")]

GRID = """
folder: {folder}
overrides:
  - trainer.total_training_steps=2
  - trainer.save_freq=-1
  - trainer.test_freq=2
  - trainer.val_before_train=false
  - data.val_max_samples=8
  - data.train_max_samples=16
arms:
  self_play: [arm=self_play]
  static:
    overrides: [arm=static]
    harvest: self_play
"""


@pytest.fixture(scope="module")
def experiment(repository, tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess]:
    folder = tmp_path_factory.mktemp("arms")
    path = folder / "grid.yaml"
    path.write_text(GRID.format(folder=folder / "out"))
    command = [sys.executable, "-m", "studies.experiment", "run", str(path)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return folder / "out", done


def metrics_of(run: Path) -> list[dict]:
    return RunRecords.open(run).metrics


def test_self_play_updates_one_model_with_both_kinds_of_responses(experiment):
    run = experiment[0] / "self_play" / "seed0"
    for row in metrics_of(run):
        assert row["code/rollout_probs_diff_mean"] <= 1e-5
        assert not any(name.startswith("test/actor") for name in row)
        # 8 groups of 4 programs, and for each question the suites of one program.
        assert row["timing_s/update_code"] > 0
    for record in records_of(run, 1):
        assert len(record.suites) == (4 if record.source is not None else 0)


def test_static_tests_are_the_ones_that_were_harvested(experiment):
    folder = experiment[0] / "static"
    harvested = {
        row["id"]: row["golden_tests"]
        for row in map(json.loads, (folder / "tests_seed0.jsonl").read_text().splitlines())
    }
    for record in records_of(folder / "seed0", 1):
        assert record.suites == ()
        if record.given_tests is None:
            continue
        calls = {f"assert {case.call} == {case.reference_value}" for case in record.given_tests.cases}
        assert calls == set(harvested[record.question])
        passed = all(case.outcome == "passed" for case in record.given_tests.cases)
        assert (record.reward.total == 1.0) is passed


def test_the_table_and_the_page_are_there(experiment):
    folder, done = experiment
    assert "self_play" in done.stdout
    assert (folder / "report" / "index.html").is_file()
