"""verl's own trainer, with this project's judge as its reward, learns on a CPU: examples/stock_verl_grpo."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from reward_fns.verl_entry import compute_score

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.xdist_group("others")]

STEPS, STEPS_TO_LEARN = 6, 20
WINDOW = 5
SAME_QUESTIONS_EVERY_STEP = "data.train_max_samples=16"
"""Otherwise steps differ by how hard their questions are, more than by what was learned in between."""
RUN_TIMEOUT_SECONDS = 600
LEAST_RISE = 0.02
"""Of the mean reward, from the first steps to the last ones. One step's mean has a standard error of about 0.03."""


@dataclass(frozen=True)
class Job:
    folder: Path
    returncode: int
    output: str

    @property
    def rewards(self) -> list[float]:
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["data"]["critic/score/mean"] for line in lines]

    def responses(self, step: int) -> list[dict]:
        return [json.loads(line) for line in (self.folder / "rollouts" / f"{step}.jsonl").read_text().splitlines()]


def run_job(repository: Path, folder: Path, *, steps: int) -> Job:
    command = [
        "bash",
        str(repository / "examples" / "stock_verl_grpo" / "run.sh"),
        f"trainer.total_training_steps={steps}",
        SAME_QUESTIONS_EVERY_STEP,
        f"trainer.rollout_data_dir={folder / 'rollouts'}",
    ]
    environment = os.environ | {"EXAMPLE_DIR": str(folder), "PYTHON": sys.executable}
    log = folder / "job.log"
    with log.open("w") as handle:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdout=handle,
            stderr=subprocess.STDOUT,
            timeout=RUN_TIMEOUT_SECONDS,
            check=False,
        )
    return Job(folder=folder, returncode=done.returncode, output=log.read_text())


@pytest.fixture(scope="module")
def job(repository, tmp_path_factory) -> Job:
    return run_job(repository, tmp_path_factory.mktemp("stock_verl"), steps=STEPS)


def test_the_job_ends_well_and_shows_its_curve(job):
    assert job.returncode == 0, job.output[-4000:]
    assert len(job.rewards) == STEPS
    assert f"mean reward: first {STEPS // 2} steps" in job.output


@pytest.mark.parametrize("step", [1, STEPS])
def test_every_response_was_rewarded_by_our_judge(job, step):
    responses = job.responses(step)
    again = [compute_score("micro", row["output"], row["gts"])["score"] for row in responses]
    assert [row["score"] for row in responses] == again
    assert len(set(again)) > 1


def test_the_mean_reward_rises(repository, tmp_path):
    rewards = run_job(repository, tmp_path, steps=STEPS_TO_LEARN).rewards
    first, last = sum(rewards[:WINDOW]) / WINDOW, sum(rewards[-WINDOW:]) / WINDOW
    assert last > first + LEAST_RISE, rewards
