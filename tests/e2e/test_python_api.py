"""The Python API trains for real: as its example does, and in the notebook."""

import os
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from code_a1_recipe.runs.reader import RunRecords

pytestmark = pytest.mark.e2e


def test_the_example_trains_on_and_takes_other_questions(repository, tmp_path):
    run = tmp_path / "run"
    command = [sys.executable, str(repository / "examples" / "python_api.py"), str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert lines[:5] == [
        "assert f([0, 1]) == 2: +1.00 = {'validity': 0.6, 'adversarial': 0.4}, kept",
        "assert f([2]) == 1: +0.60 = {'validity': 0.6, 'adversarial': 0.0}, kept",
        "assert f([0]) == 5: +0.40 = {'validity': 0.0, 'adversarial': 0.4}, kept",
        "assert f(0) == 0: -0.50 = {'invalid': -0.5}",
        "the best test: assert f([0, 1]) == 2",
    ]
    records = RunRecords.open(run)
    assert records.steps == [1, 2, 3]
    assert [len({record.question for record in records.training(step)}) for step in (1, 2, 3)] == [4, 4, 2]
    totals = {record.reward.total for record in records.training(1) if record.reward}
    assert all(-1.0 <= total <= 1.0 for total in totals)
    assert lines[-1].startswith("what broke programs, best first: ['assert f(")


def test_the_notebook_runs_from_top_to_bottom(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(repository), prepend=os.pathsep)
    notebook = nbformat.read(repository / "examples" / "first_steps.ipynb", as_version=4)
    NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = [
        "".join(out.get("text", "") for out in cell.outputs) for cell in notebook.cells if cell.cell_type == "code"
    ]
    assert printed[0].split()[-1] == "-0.50"
    assert printed[2].count("R_C") == 2
    assert "programs were broken" in printed[3]
    assert "broke it" in printed[3]
