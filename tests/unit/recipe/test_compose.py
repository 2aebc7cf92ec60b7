"""Presets, overrides and the refusal of keys that do not exist."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from code_a1_recipe.compose import check_keys, compose_config, policy_view, preset_names
from code_a1_recipe.settings import SettingsError


def test_the_shipped_presets():
    assert preset_names() == ["cpu", "qwen2.5-coder-1.5b", "qwen2.5-coder-3b", "qwen2.5-coder-7b"]


def test_an_override_of_one_policy_leaves_the_other_alone():
    config = compose_config("cpu", ["policies.code.actor.optim.lr=1e-5", "policies.code.actor.clip_ratio_high=0.5"])
    code, test = (policy_view(config, name).actor_rollout_ref.actor for name in ("code", "test"))
    assert (code.optim.lr, code.clip_ratio_high) == (1e-5, 0.5)
    assert (test.optim.lr, test.clip_ratio_high) == (1e-3, 0.28)


def test_a_policys_group_size_reaches_the_values_that_refer_to_it():
    config = compose_config("cpu", ["episode.num_candidates=6", "episode.num_suites=5"])
    sizes = {name: policy_view(config, name).actor_rollout_ref for name in ("code", "test")}
    assert (sizes["code"].rollout.n, sizes["code"].actor.rollout_n) == (6, 6)
    assert (sizes["test"].rollout.n, sizes["test"].actor.rollout_n) == (5, 5)


def test_a_view_holds_no_other_policy_and_nothing_unresolved():
    view = policy_view(compose_config("cpu"), "test")
    assert "policies" not in view
    assert "${" not in OmegaConf.to_yaml(view.actor_rollout_ref)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("trainer.total_trainig_steps=3", "did you mean trainer.total_training_steps"),
        ("policies.code.actor.optim.lrr=1", "did you mean policies.code.actor.optim.lr"),
        ("policies.coder.actor.optim.lr=1", "policies.coder"),
        ("+rewards.alhpa=0.3", "did you mean rewards.alpha"),
        ("nonsense=1", "unknown key 'nonsense'"),
        ("data.train_batch_size=[", "no viable alternative"),
    ],
)
def test_a_key_that_does_not_exist_is_refused_with_near_misses(override, words):
    with pytest.raises(SettingsError) as caught:
        compose_config("cpu", [override])
    assert words in str(caught.value)


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(SettingsError, match=r"unknown preset 'gpt'; known: cpu, qwen2\.5-coder-1\.5b"):
        compose_config("gpt")


def test_a_missing_yaml_file_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"nowhere\.yaml does not exist"):
        compose_config(str(tmp_path / "nowhere.yaml"))


def test_a_users_yaml_builds_on_a_preset(tmp_path: Path):
    path = tmp_path / "mine.yaml"
    path.write_text("defaults: [cpu, _self_]\nrewards: {alpha: 0.75}\n")
    config = compose_config(str(path), ["rewards.adversarial=figure"])
    assert (config.rewards.alpha, config.rewards.adversarial, config.episode.num_suites) == (0.75, "figure", 8)


def test_a_misspelt_block_in_a_users_yaml_is_refused(tmp_path: Path):
    path = tmp_path / "mine.yaml"
    path.write_text("defaults: [cpu, _self_]\npolices: {code: {model: {path: x}}}\n")
    with pytest.raises(SettingsError, match="unknown keys: polices"):
        compose_config(str(path))


def test_keys_of_vllm_and_hugging_face_pass_through():
    config = compose_config("cpu", ["policies.code.rollout.engine_kwargs.vllm.swap_space=1"])
    check_keys(config, base=compose_config("cpu"))
    assert policy_view(config, "code").actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("defaults: [cpu, _self_]\nrewards: {alpha: [", "line 2: not valid YAML"),
        ("rewards: {alpha: 0.5}", "must build on a preset"),
        ("defaults: [cpu, _self_]\npolicies: {code: null}", "policies.code must be a block of keys"),
    ],
)
def test_a_yaml_file_that_cannot_be_a_config_is_refused(tmp_path: Path, text, words):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        compose_config(str(path))
    assert words in str(caught.value)


def test_a_file_that_would_hide_the_preset_it_builds_on_is_refused(tmp_path: Path):
    path = tmp_path / "cpu.yaml"
    path.write_text("defaults: [cpu, _self_]")
    with pytest.raises(SettingsError, match="has the name of a shipped config"):
        compose_config(str(path))


def test_a_word_that_is_no_override_is_named():
    with pytest.raises(SettingsError, match=r"'data\.train_batch_size' is not of the form key=value"):
        compose_config("cpu", ["data.train_batch_size"])
