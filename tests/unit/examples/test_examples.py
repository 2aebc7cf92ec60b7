"""The examples run as their first lines say, and the configuration of the verl job composes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def run(repository):
    """``run(words, **environment)``: what a command prints."""

    def start(*words: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=repository,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return start


def test_the_sandbox_alone(run):
    assert run("examples/sandbox_in_ten_lines.py").splitlines() == [
        "add(1, 2) is 3, claimed 3: the program passed",
        "add(-1, 2) is 1, claimed 1: the program wrong_value",
        "add(0, 0) is 0, claimed 1: the program passed",
    ]


def test_the_rewards_alone(run):
    printed = run("examples/rewards_alone.py")
    assert "code reward 0.750" in printed
    assert "test reward 0.500" in printed


@pytest.fixture
def job_config(run, tmp_path, repository) -> str:
    """What hydra makes of the verl job's two files, on a CPU."""
    folder = repository / "examples" / "stock_verl_grpo"
    script = (
        "import sys; from hydra import compose, initialize_config_dir; from pathlib import Path;"
        "from code_a1_recipe.config.compose import _verl_config_dir; from omegaconf import OmegaConf;"
        "context = initialize_config_dir(sys.argv[1], version_base=None); context.__enter__();"
        "config = compose('cpu', overrides=[f'hydra.searchpath=[file://{_verl_config_dir()}]']);"
        "print(OmegaConf.to_yaml(config.reward.custom_reward_function), config.trainer.device, config.trainer.use_v1,"
        "config.trainer.v1.trainer_mode, config.algorithm.adv_estimator, config.data.train_files)"
    )
    return run("-c", script, str(folder), EXAMPLE_DIR=str(tmp_path))


def test_the_verl_job_is_verls_own_trainer_with_our_reward(job_config, tmp_path):
    assert "path: pkg://reward_fns.verl_entry" in job_config
    assert job_config.split()[-5:] == ["cpu", "True", "sync", "grpo", f"{tmp_path}/data/train.parquet"]


def test_the_curves_summary_compares_the_first_and_last_steps(run, tmp_path, repository):
    path = tmp_path / "metrics.jsonl"
    rows = [{"step": step, "data": {"critic/score/mean": step / 100}} for step in range(1, 41)]
    rows.append({"step": 40, "data": {"val/other": 1.0}})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = run(str(Path("examples") / "stock_verl_grpo" / "curve.py"), str(path))
    assert printed.splitlines()[-1] == "mean reward: first 10 steps 0.055, last 10 steps 0.355"
