"""Each shipped preset composes, says what the paper says, and can work."""

import pytest

from code_a1_recipe.config.compose import arm_names, preset_names, read_config

PAPER_PRESETS = ["qwen2.5-coder-1.5b", "qwen2.5-coder-3b", "qwen2.5-coder-7b"]


@pytest.mark.parametrize("preset", preset_names())
@pytest.mark.parametrize("policy", ["code", "test"])
def test_verl_accepts_a_presets_view_of_each_policy(preset, policy):
    from verl.utils.config import omega_conf_to_dataclass

    view = read_config(preset, ["run_dir=outputs/x"]).for_policy(policy).actor_rollout_ref
    actor, rollout = omega_conf_to_dataclass(view.actor), omega_conf_to_dataclass(view.rollout)
    assert actor.strategy == "fsdp2"
    assert rollout.name == f"vllm_{policy}"


@pytest.mark.parametrize("preset", PAPER_PRESETS)
def test_a_preset_of_the_paper_has_the_papers_settings(preset):
    config = read_config(preset, ["run_dir=outputs/x"])
    code, test = (config.for_policy(name).actor_rollout_ref for name in ("code", "test"))
    episode = config.episode
    assert (config.data.train_batch_size, episode.num_candidates, episode.num_suites) == (256, 8, 8)
    assert (episode.cases_per_suite, config.rewards.alpha, config.for_verl().trainer.total_epochs) == (8, 0.5, 3)
    for policy in (code, test):
        actor, optim = policy.actor, policy.actor.optim
        assert (optim.lr, optim.lr_warmup_steps, optim.lr_scheduler_type) == (1e-6, 10, "cosine")
        assert (optim.weight_decay, actor.entropy_coeff, actor.loss_agg_mode) == (0.1, 0, "token-mean")
        assert (actor.clip_ratio_low, actor.clip_ratio_high, actor.clip_ratio_c) == (0.2, 0.28, 10.0)
        assert (actor.use_kl_loss, actor.kl_loss_coef, actor.kl_loss_type) == (True, 0.001, "low_var_kl")
        assert (actor.ppo_mini_batch_size, policy.rollout.temperature) == (128, 1.0)
        assert (policy.rollout.val_kwargs.temperature, policy.rollout.val_kwargs.top_p) == (0.7, 0.95)
    assert (code.rollout.prompt_length, test.rollout.prompt_length) == (4096, 8192)
    assert (code.rollout.response_length, test.rollout.response_length) == (4096, 4096)
    assert (config.validation.num_candidates, config.trainer.test_freq) == (32, 10)


def test_the_papers_presets_differ_only_where_they_must():
    def without_model(preset):
        config = read_config(preset, ["run_dir=outputs/x"]).to_plain()
        for policy in ("code", "test"):
            config["policies"][policy]["model"].pop("path")
        return config

    small, middle, large = (without_model(preset) for preset in PAPER_PRESETS)
    assert small == middle
    offload = large["actor_rollout_ref"]["actor"]["fsdp_config"]
    assert (offload.pop("param_offload"), offload.pop("optimizer_offload")) == (True, True)
    for key in ("param_offload", "optimizer_offload"):
        small["actor_rollout_ref"]["actor"]["fsdp_config"].pop(key)
    assert large == small


@pytest.mark.parametrize("arm", arm_names())
@pytest.mark.parametrize("preset", ["cpu", "qwen2.5-coder-1.5b"])
def test_every_arm_works_with_every_kind_of_preset(preset, arm):
    settings = read_config(preset, [f"arm={arm}", "run_dir=x", "data.train_files=x", "data.val_files=x"])
    has_tester = arm in ("code_a1", "pooled", "frozen", "sft")
    assert settings.policy_names == (("code", "test") if has_tester else ("code",))
    assert settings.self_play is (arm == "self_play")
