"""The Python API trains for real: as its example does, step by step, and in the notebook."""

import os
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from code_a1_recipe import AdversarialCodeTrainer
from code_a1_recipe.runs.reader import RunRecords
from examples.python_api import QUESTIONS

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.xdist_group("others")]


@pytest.fixture(scope="module")
def example(repository, tmp_path_factory):
    """The run folder of the example, and what it printed."""
    run = tmp_path_factory.mktemp("api") / "run"
    command = [sys.executable, str(repository / "examples" / "python_api.py"), str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, cwd=run.parent)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return run, done.stdout.splitlines()


def questions_of(run, step):
    return {record.question for record in RunRecords.open(run).training(step)}


def test_the_example_scores_tests_and_trains(example):
    run, lines = example
    assert lines[:5] == [
        "assert f([0, 1]) == 2: +1.00 = {'validity': 0.6, 'adversarial': 0.4}, kept",
        "assert f([2]) == 1: +0.60 = {'validity': 0.6, 'adversarial': 0.0}, kept",
        "assert f([0]) == 5: +0.40 = {'validity': 0.0, 'adversarial': 0.4}, kept",
        "assert f(0) == 0: -0.50 = {'invalid': -0.5}",
        "the best test: assert f([0, 1]) == 2",
    ]
    records = RunRecords.open(run)
    assert records.steps[:2] == [1, 2]
    assert [len(questions_of(run, step)) for step in (1, 2)] == [4, 4]
    totals = {record.reward.total for record in records.training(1) if record.reward}
    assert all(-1.0 <= total <= 1.0 for total in totals)
    assert lines[-1].startswith("what broke programs, best first: ['assert f(")


def test_a_step_goes_on_with_a_run_and_takes_other_questions(example):
    run, _ = example
    trainer = AdversarialCodeTrainer(max_code_len=64, run_dir=run)
    assert trainer.step(QUESTIONS[:2], num_samples=4)["step"] == 3
    assert len(questions_of(run, 3)) == 2


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
