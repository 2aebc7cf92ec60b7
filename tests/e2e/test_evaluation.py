"""What a trained pair is evaluated and used with: real checkpoints, vLLM in one process for all, the real judge."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file

from code_a1_recipe.runs.reader import read_rollouts

from .proofs import weights

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("evaluation")]

STEP = "4"
SAMPLING = ["--temperature", "1", "--top-p", "1", "--max-tokens", "64", "--max-prompt-tokens", "512"]
OF_TESTS = [f"--test-{word.removeprefix('--')}" if word.startswith("--") else word for word in SAMPLING]
SIZES = ["--samples", "4", "--suites", "4", "--tests", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("evaluation")


@pytest.fixture(scope="module")
def done(trained, repository, folder, request) -> dict[str, dict]:
    """Status and standard output of each command by name; each engine takes half a minute to start."""
    run = str(trained.folder)
    held_out = yaml.safe_load((trained.folder / "resolved_config.yaml").read_text())["data"]["val_files"]
    pair = [held_out, "--model", run, "--prompt", "micro", "--limit", "6", *SAMPLING]
    code = ["eval", "code", *pair, "--samples", "4", "--output", f"{folder}/code"]
    commands = {"validate": ["validate", run, "--step", STEP, "--output", f"{folder}/validate"]}
    nightly = {
        "code": code,
        "code again": [*code, "--judge-only"],
        "test": ["eval", "test", *pair, "--tests", "1", "--max-mutants", "10", "--output", f"{folder}/test"],
        "select": ["select", *pair, *OF_TESTS, *SIZES, "--output", f"{folder}/select"],
    }
    commands |= nightly if request.config.getoption("--all") else {}
    driver = Path(__file__).parent / "drivers" / "several_commands.py"
    process = subprocess.run(
        [sys.executable, str(driver)],
        input=json.dumps(list(commands.values())),
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    results = [json.loads(line) for line in process.stdout.splitlines() if line.startswith('{"status"')]
    assert [result["status"] for result in results] == [0] * len(commands), process.stderr[-4000:]
    return dict(zip(commands, results, strict=True))


def test_a_checkpoint_validates_to_the_very_figures_of_training(done, trained, folder):
    printed = done["validate"]["printed"]
    assert " NO " not in printed
    assert "figures of training are the same here" in printed
    name = f"val_{int(STEP):06}.jsonl"
    written, recorded = (
        {(row.question, row.kind, row.candidate): row.response for row in read_rollouts(path)}
        for path in (folder / "validate" / name, trained.folder / "rollouts" / name)
    )
    assert written == recorded
    for policy in ("code", "test"):  # float32 as they were trained, not what verl's merger makes of them
        (exported,) = (folder / "validate" / "models").glob(f"{policy}_step_{STEP}_*/model.safetensors")
        kept = weights(trained.folder, int(STEP), policy)
        for name, value in load_file(exported).items():
            assert torch.equal(value, kept[name]), name


@pytest.mark.nightly
def test_the_code_llm_of_a_run_is_evaluated_on_a_file(done, folder):
    rows = [json.loads(line) for line in (folder / "code" / "verdicts.jsonl").open()]
    assert len(rows) == 24
    assert len({row["passed"] for row in rows}) == 2
    assert done["code again"] == done["code"]


@pytest.mark.nightly
def test_the_test_llm_of_a_run_is_evaluated_on_a_file(done):
    assert "| mut_all@1 " in done["test"]["printed"]


@pytest.mark.nightly
def test_the_best_of_n_is_chosen_by_a_trained_pair(done, folder):
    assert done["select"]["printed"]
    rows = [json.loads(line) for line in (folder / "select" / "choices.jsonl").open()]
    assert len(rows) == 6
    for row in rows:
        expected = row["expected"]
        assert expected["random"] <= expected["oracle"] + 1e-9
        assert all(0.0 <= value <= 1.0 for value in expected.values())
        assert expected["oracle"] in (0.0, 1.0)
