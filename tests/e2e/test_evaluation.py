"""What a trained pair is evaluated and used with: real checkpoints, vLLM in this process, the real judge."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from code_a1_recipe.runs.reader import read_rollouts

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("trained")]

SAMPLING = ["--temperature", "1", "--top-p", "1", "--max-tokens", "64", "--max-prompt-tokens", "512"]
OF_TESTS = [f"--test-{word.removeprefix('--')}" if word.startswith("--") else word for word in SAMPLING]


@pytest.fixture(scope="module")
def code_a1(repository):
    def run(*words: object, module: str = "code_a1_recipe") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", module, *map(str, words)]
        return subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=600, check=False)

    return run


@pytest.fixture(scope="module")
def held_out(trained) -> Path:
    return Path(yaml.safe_load((trained.folder / "resolved_config.yaml").read_text())["data"]["val_files"])


def test_a_checkpoint_validates_to_the_very_figures_of_training(code_a1, trained, tmp_path):
    done = code_a1("validate", trained.folder, "--step", "3", "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr[-3000:]
    assert " NO " not in done.stdout
    assert "figures of training are the same here" in done.stdout
    assert "0 of 0 figures" not in done.stdout
    name = "val_000003.jsonl"
    written, recorded = (
        {(row.question, row.kind, row.candidate): row.response for row in read_rollouts(path)}
        for path in (tmp_path / "out" / name, trained.folder / "rollouts" / name)
    )
    assert written == recorded


def test_both_policies_of_a_run_are_evaluated_on_a_file(code_a1, trained, held_out, tmp_path):
    code = tmp_path / "code"
    shared = [held_out, "--model", trained.folder, "--prompt", "micro", "--limit", "6", *SAMPLING]
    done = code_a1("eval", "code", *shared, "--samples", "4", "--output", code)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in (code / "verdicts.jsonl").open()]
    assert len(rows) == 24
    assert len({row["passed"] for row in rows}) == 2
    again = code_a1("eval", "code", *shared, "--samples", "4", "--output", code, "--judge-only")
    assert again.stdout == done.stdout
    test = code_a1("eval", "test", *shared, "--tests", "1", "--max-mutants", "10", "--output", tmp_path / "test")
    assert test.returncode == 0, test.stderr[-3000:]
    assert "| mut_all@1 " in test.stdout


def test_the_best_of_n_is_chosen_by_a_trained_pair(code_a1, trained, held_out, tmp_path):
    size = ["--samples", "4", "--suites", "4", "--tests", "1", "--limit", "6", "--output", tmp_path / "out"]
    done = code_a1("select", held_out, "--model", trained.folder, "--prompt", "micro", *size, *SAMPLING, *OF_TESTS)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in (tmp_path / "out" / "choices.jsonl").open()]
    assert len(rows) == 6
    for row in rows:
        expected = row["expected"]
        assert expected["random"] <= expected["oracle"] + 1e-9
        assert all(0.0 <= value <= 1.0 for value in expected.values())
        assert expected["oracle"] in (0.0, 1.0)
