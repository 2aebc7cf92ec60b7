"""A grid of runs, and a small script in the place of the trainer."""

import sys

import pytest

from examples.experiment import runs as module
from examples.experiment.grid import Experiment

GRID = """
folder: {folder}
seeds: [0, 1]
overrides: [trainer.total_training_steps=2]
arms:
  code_a1: [arm=code_a1]
  static:
    overrides: [arm=static]
    harvest: code_a1
"""


@pytest.fixture
def grid(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text(GRID.format(folder=tmp_path / "out"))
    return Experiment.load(path)


@pytest.fixture
def fake_training(monkeypatch, run_folder):
    """Each run becomes a copy of ``run_folder``; those named in ``failing`` end with status 3."""
    failing: set[str] = set()
    started: list[str] = []

    def command_of_copy(experiment, arm, seed):
        name = f"{arm.name}/{seed}"
        started.append(name)
        target = str(experiment.run_folder(arm.name, seed))
        script = f"import shutil, sys; print('working'); {'sys.exit(3); ' if name in failing else ''}"
        script += "import time; time.sleep(1); " if failing else ""
        return [sys.executable, "-c", script + f"shutil.copytree({str(run_folder)!r}, {target!r})"]

    monkeypatch.setattr(module, "command_of", command_of_copy)
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    return failing, started
