"""Fingerprints, random states, pools and what `code-a1 export` is asked for."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.cli.app import main
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import CheckpointError, InputError
from code_a1_recipe.training.checkpoint import random_states
from code_a1_recipe.training.checkpoint.export import export_policy, find_step
from code_a1_recipe.training.checkpoint.fingerprints import data_fingerprint, model_fingerprint
from code_a1_recipe.training.checkpoint.folder import note_best, step_folder, write_state, writing

QUESTION = Question(id="q1", prompt="Add one.", reference="def f(x): return x + 1")


def test_data_are_known_by_all_their_content_and_their_order():
    other = replace(QUESTION, id="q2")
    assert data_fingerprint([QUESTION, other]) == data_fingerprint([QUESTION, replace(other)])
    different = [[other, QUESTION], [QUESTION], [QUESTION, replace(other, reference="def f(x): return 1 + x")]]
    assert len({data_fingerprint(questions) for questions in (*different, [QUESTION, other])}) == 4


def test_a_model_is_known_by_its_files_wherever_they_lie(tmp_path):
    weights = b"w" * 5_000_000

    def fingerprint(name: str, weights: bytes = weights, tokenizer: str = "{}") -> str:
        folder = tmp_path / name
        folder.mkdir()
        for file in ("config.json", "tokenizer.json"):
            (folder / file).write_text(tokenizer)
        (folder / "model.safetensors").write_bytes(weights)
        return model_fingerprint(str(folder))

    here = fingerprint("here")
    assert here == fingerprint("there")
    assert here not in (fingerprint("other", weights[:-1] + b"x"), fingerprint("third", tokenizer="{ }"))
    assert model_fingerprint("Qwen/Qwen2.5-Coder-1.5B-Instruct") == "Qwen/Qwen2.5-Coder-1.5B-Instruct"


def test_random_states_go_on_where_they_were_captured():
    def draw() -> tuple[float, float, float]:
        return random.random(), float(np.random.random()), float(torch.rand(()))

    random_states.seed(3)
    draw()
    states = random_states.capture()
    expected = draw()
    draw()
    random_states.restore(states)
    assert draw() == expected


def test_one_pool_for_both_policies_or_one_for_each():
    together = read_config("cpu", ["trainer.n_gpus_per_node=2"])
    assert together.pool_spec() == {"colocated": [2]}
    apart = read_config("cpu", ["layout=separate", "pools.test.n_gpus_per_node=2", "pools.test.nnodes=2"])
    assert apart.pool_spec() == {"code": [1], "test": [2, 2]}
    for name, size in (("code", 1), ("test", 2)):
        view = apart.for_policy(name)
        assert view.trainer.nnodes == view.trainer.n_gpus_per_node == size
        assert view.actor_rollout_ref.rollout.n_gpus_per_node == size


def run_with_steps(root: Path, *steps: int) -> Path:
    for step in steps:
        with writing(root / "checkpoints", step) as folder:
            write_state(folder, {"step": step})
    return root


def test_export_finds_the_step_that_is_meant(tmp_path):
    run = run_with_steps(tmp_path / "run", 2, 4)
    note_best(run / "checkpoints", step=2, metric="val/x", value=1.0)
    assert [find_step(run, step).step for step in ("latest", "best", "2")] == [4, 2, 2]
    assert find_step(run / "checkpoints", "2").step == 2
    assert find_step(step_folder(run / "checkpoints", 2), "latest").step == 2
    for step in ("3", "²"):
        with pytest.raises(CheckpointError, match=rf"--step must be latest, best or one of \[2, 4\], got '{step}'"):
            find_step(run, step)


def test_export_refuses_what_it_would_overwrite_and_a_policy_that_is_not_there(tmp_path, capsys):
    run = run_with_steps(tmp_path / "run", 2)
    with pytest.raises(InputError, match="has no policy 'test'; a run with one model has `code` only"):
        export_policy(find_step(run, "latest"), "test", tmp_path / "out")
    (step_folder(run / "checkpoints", 2) / "code" / "actor").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    assert main(["export", str(run), "--output", str(tmp_path / "out")]) == 2
    assert "exists; name a new folder, or remove this one" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    below_file = str(tmp_path / "file" / "out")
    assert main(["export", str(run), "--output", below_file]) == 2
    output = capsys.readouterr().err
    assert f"--output={below_file} cannot be written" in output
    assert "merger" not in output


@pytest.mark.parametrize(("preset", "on_cpu"), [("cpu", True), ("qwen2.5-coder-1.5b", False)])
def test_one_key_makes_both_policies_deterministic_down_to_verls_own(preset, on_cpu):
    for deterministic in (True, False):
        config = read_config(preset, [f"deterministic={deterministic}", "data.seed=7"])
        for name in ("code", "test"):
            policy = config.for_policy(name).actor_rollout_ref
            for block in (policy.actor.fsdp_config, policy.ref.fsdp_config):
                assert (block.full_determinism, block.seed) == (deterministic, 7)
            # vLLM's batch-invariant kernels are for GPUs.
            assert policy.rollout.full_determinism == (deterministic and not on_cpu)
