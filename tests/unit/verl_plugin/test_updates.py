"""Two optimizer steps of a batch equal plain PyTorch; a worker whose engine is wrong for its model does not start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

FILE = Path(__file__).with_name("updates_on_cpu.py")


def test_updates_on_a_cpu(repository):
    """In a process of its own, since verl decides about its platform once."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FILE)]
    environment = os.environ | {"VERL_PLATFORM": "cpu"}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "3 passed" in done.stdout
