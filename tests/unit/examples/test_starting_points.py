"""What is there to be copied: the folder for verl's recipes, and jobs for schedulers."""

import subprocess
from pathlib import Path

import pytest
import yaml

from code_a1_recipe.config.compose import read_config

ROOT = Path(__file__).resolve().parents[3]
RECIPE = ROOT / "examples" / "verl_recipe"


def test_the_baseline_differs_from_the_recipe_in_the_arm_alone():
    ours, frozen = ((RECIPE / f"run_{name}.sh").read_text() for name in ("code_a1", "frozen"))
    assert ours.replace("arm=code_a1", "arm=frozen") == frozen
    assert ours != frozen


@pytest.mark.parametrize("arm", ["code_a1", "frozen"])
def test_its_settings_are_those_of_a_preset(arm):
    config = read_config(str(RECIPE / "qwen_1_5b.yaml"), ["run_dir=/tmp/x", f"arm={arm}"])
    assert config.data.train_files == ("train.parquet",)
    assert config.schedule.test_every == (1 if arm == "code_a1" else 0)


def test_it_asks_for_the_verl_of_the_project():
    assert (RECIPE / "REQUIRED_VERL.txt").read_text() == (ROOT / "REQUIRED_VERL.txt").read_text()


@pytest.mark.parametrize(
    "path", [*ROOT.glob("examples/slurm/*.sbatch"), *RECIPE.glob("*.sh")], ids=lambda path: path.name
)
def test_scripts_are_read_by_the_shell(path):
    assert subprocess.run(["bash", "-n", str(path)], capture_output=True).stderr == b""


def test_the_cloud_job_runs_what_is_there():
    job = yaml.safe_load((ROOT / "examples" / "skypilot.yaml").read_text())
    assert "run_codea1.sh setup --gpu" in job["setup"]
    read_config(job["envs"]["PRESET"], ["run_dir=/tmp/x", "policies.code.model.path=m", "policies.test.model.path=m"])
