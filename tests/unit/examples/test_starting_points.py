"""What is there to be copied: the folder for verl's recipes, and jobs for schedulers."""

import subprocess
from pathlib import Path

import pytest
import yaml

from code_a1_recipe.config.compose import read_config

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "path", [*ROOT.glob("examples/slurm/*.sbatch"), *ROOT.glob("examples/verl_recipe/*.sh")], ids=lambda path: path.name
)
def test_scripts_are_read_by_the_shell(path):
    assert subprocess.run(["bash", "-n", str(path)], capture_output=True).stderr == b""


@pytest.mark.parametrize("path", list(ROOT.glob("examples/slurm/*.sbatch")), ids=lambda path: path.name)
def test_slurms_signal_reaches_the_shell_of_the_job(path):
    """Without B: it goes to job steps alone, and a job that starts the trainer itself has none."""
    assert "#SBATCH --signal=B:TERM@1900\n" in path.read_text()


def test_an_image_takes_no_environment_of_the_host():
    assert {".git", ".venv*", "outputs"} <= set((ROOT / ".dockerignore").read_text().splitlines())


def test_the_cloud_job_runs_what_is_there():
    job = yaml.safe_load((ROOT / "examples" / "skypilot.yaml").read_text())
    assert "run_codea1.sh setup --gpu" in job["setup"]
    read_config(job["envs"]["PRESET"], ["run_dir=/tmp/x", "policies.code.model.path=m", "policies.test.model.path=m"])
