"""What verl, vLLM or a save would refuse minutes after the start is refused before it, with the key that has it."""

from types import SimpleNamespace

import pytest

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import SettingsError
from code_a1_recipe.training import policy, preflight
from code_a1_recipe.verl_plugin.config_checks import check_verl_config

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
CORRECTION = "algorithm.rollout_correction"


def config_of(*overrides, preset="cpu"):
    models = [f"policies.{name}.model.path=m" for name in ("code", "test")]
    return read_config(preset, ["run_dir=/nowhere", *models, *overrides])


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (f"{ACTOR}.policy_loss.loss_mode=vanila", "Unsupported loss mode: vanila"),
        (f"{ACTOR}.kl_loss_type=k9", "verl has no actor.kl_loss_type='k9'"),
        (f"{ACTOR}.loss_agg_mode=mean", "Invalid loss_agg_mode: mean"),
        (f"{ACTOR}.optim.optimizer=AdamWW", "Optimizer 'AdamWW' not found in module 'torch.optim'"),
        (f"{ACTOR}.optim.lr_scheduler_type=linear", "lr_scheduler_type"),
        (f"{CORRECTION}.rollout_is=tokens", "Invalid rollout_is: tokens"),
        (f"{CORRECTION}.rollout_rs=token_k1", "rollout_rs_threshold must be provided"),
        (f"{ROLLOUT}.quantization=int3", "rollout.quantization must be one of fp8, torchao, got int3"),
        (f"+{ROLLOUT}.engine_kwargs.vllm.max_seqs=4", "engine_kwargs.vllm.max_seqs is no option of the installed vLLM"),
    ],
)
def test_a_name_that_verl_does_not_know_is_refused_before_the_start(override, words):
    config = config_of(override, f"{ACTOR}.use_kl_loss=true")
    with pytest.raises(SettingsError) as caught:
        check_verl_config(config, "test")
    assert "policies.test: verl refuses this configuration: " in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("preset", ["cpu", "qwen2.5-coder-7b"])
def test_what_presets_set_and_what_a_user_may_set_is_known(preset):
    given = (f"{CORRECTION}.rollout_is=token", f"+{ROLLOUT}.engine_kwargs.vllm.block_size=16")
    check_verl_config(config_of(*given, preset=preset), "code")


def test_several_nodes_need_a_cluster_with_an_address(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    several = [config_of("trainer.nnodes=2"), config_of("layout=separate", "pools.test.nnodes=2")]
    for config in several:
        (words,) = preflight._nodes(config)
        assert "the run asks for 2 nodes" in words
    joined = config_of("trainer.nnodes=2", "+ray_kwargs.ray_init.address=auto")
    assert not [words for config in (joined, config_of()) for words in preflight._nodes(config)]
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert not [words for config in several for words in preflight._nodes(config)]


def test_a_checkpoint_folder_that_one_node_does_not_see_is_refused_at_the_start(tmp_path, monkeypatch):
    here, elsewhere = (
        SimpleNamespace(__ray_call__=SimpleNamespace(remote=answer))
        for answer in (lambda sees, folder: sees(None, folder), lambda sees, folder: sees(None, f"{folder}/none"))
    )
    folder = tmp_path / "run" / "checkpoints"
    monkeypatch.setattr(policy.ray, "get", list)
    policy.check_shared_folder(str(folder), [here, here])
    assert folder.is_dir()
    with pytest.raises(SettingsError, match="is not the same folder on every node"):
        policy.check_shared_folder(str(folder), [here, elsewhere])
