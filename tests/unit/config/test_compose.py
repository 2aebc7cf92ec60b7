"""Presets, overrides and the refusal of keys that do not exist."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import pytest
from omegaconf import OmegaConf

from code_a1_recipe.algorithm.schedule import POLICY_NAMES
from code_a1_recipe.config.compose import preset_names, read_config, recorded_config
from code_a1_recipe.config.run_config import RunConfig
from code_a1_recipe.errors import SettingsError
from code_a1_recipe.verl_plugin.backends import backend_name
from code_a1_recipe.verl_plugin.compat import TRAINER_NAME


def test_the_shipped_presets():
    small = ["cpu", "qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b-cpu", "qwen2.5-coder-1.5b", "qwen2.5-coder-1.5b-1gpu"]
    assert preset_names() == [*small, "qwen2.5-coder-3b", "qwen2.5-coder-7b", "smollm2-135m", "tiny-1gpu"]


def test_an_override_of_one_policy_leaves_the_other_alone():
    config = read_config("cpu", ["policies.code.actor.optim.lr=1e-5", "policies.code.actor.clip_ratio_high=0.5"])
    code, test = (config.for_policy(name).actor_rollout_ref.actor for name in ("code", "test"))
    assert (code.optim.lr, code.clip_ratio_high) == (1e-5, 0.5)
    assert (test.optim.lr, test.clip_ratio_high) == (1e-3, 0.28)


def test_a_policys_group_size_reaches_the_values_that_refer_to_it():
    config = read_config("cpu", ["episode.num_candidates=6", "episode.num_suites=5"])
    sizes = {name: config.for_policy(name).actor_rollout_ref for name in ("code", "test")}
    assert (sizes["code"].rollout.n, sizes["code"].actor.rollout_n) == (6, 6)
    assert (sizes["test"].rollout.n, sizes["test"].actor.rollout_n) == (5, 5)


def test_a_view_holds_no_other_policy_and_nothing_unresolved():
    view = read_config("cpu").for_policy("test")
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
        ("seed=7", "unknown key 'seed'; did you mean data.seed or "),
        ("lr=1", "did you mean actor_rollout_ref.actor.optim.lr or "),
        ("trainer=3", "trainer must be a block of keys, got 3"),
        ("policies=3", "policies must be a block of keys, got 3"),
        ("episode=3", "episode must be a block of keys"),
        ("data=3", "'data=3' replaces a block of keys; set keys in it"),
        ("data.columns=[a]", "'data.columns=[a]' gives a list to a block of keys, or keys to a list"),
        (
            "extensions={path: mine.py}",
            "'extensions={path: mine.py}' gives a list to a block of keys, or keys to a list",
        ),
        ("policies.code.actor.optim=3", "policies.code.actor.optim must be a block of keys, got 3"),
        ("data.train_batch_size=[", "no viable alternative"),
        ("arm=golde", "unknown arm 'golde'; did you mean golden?"),
        ("actor_rollout_ref.model.path=m", "set policies.code.model.path and policies.test.model.path"),
    ],
)
def test_a_key_that_does_not_exist_is_refused_with_near_misses(override, words):
    with pytest.raises(SettingsError) as caught:
        read_config("cpu", [override])
    assert words in str(caught.value)


def test_the_home_folder_may_be_written_as_a_tilde(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    config = read_config("cpu", ["data.train_files=~/mine.jsonl"])
    assert config.data.train_files == ("/home/me/mine.jsonl",)


def test_a_key_that_nothing_reads_is_named_once():
    with pytest.raises(SettingsError) as caught:
        read_config("cpu", ["rewards.test.alpha=0.1"])
    assert str(caught.value).count("unknown key") == 1


def test_a_shared_value_that_a_policy_reads_is_taken():
    key = "actor.optim.lr"
    config = read_config("cpu", [f"actor_rollout_ref.{key}=0", f"policies.code.{key}=0", f"policies.test.{key}=1"])
    assert config.policies.code.actor.optim.lr == 0
    config = read_config("cpu", ["actor_rollout_ref.actor.optim={weight_decay: 0.5}"])
    assert config.for_policy("test").actor_rollout_ref.actor.optim.weight_decay == 0.5


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("gpt", r"unknown preset 'gpt'; known: cpu, qwen2\.5-coder-0\.5b"),
        ("no/such/nowhere.yaml", r"nowhere\.yaml does not exist"),
    ],
)
def test_an_unknown_preset_lists_the_known_ones_and_a_missing_file_is_named(config, words):
    with pytest.raises(SettingsError, match=words):
        read_config(config)


def test_a_users_yaml_builds_on_a_preset(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("defaults: [cpu, _self_]\nrewards: {alpha: 0.75}\n")
    config = read_config(str(path), ["rewards.adversarial=figure"])
    assert (config.rewards.alpha, config.rewards.adversarial, config.episode.num_suites) == (0.75, "figure", 8)


def test_keys_of_vllm_and_hugging_face_pass_through():
    config = read_config("cpu", ["policies.code.rollout.engine_kwargs.vllm.swap_space=1"])
    assert config.for_policy("code").actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space == 1


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("mine", "defaults: [cpu, _self_]\nrewards: {alpha: [", "line 2: not valid YAML"),
        ("mine", "rewards: {alpha: 0.5}", "must build on a preset"),
        ("mine", "defaults: [cpu, _self_]\npolicies: {code: null}", "policies.code must be a block of keys"),
        ("mine", "defaults: [cpu, _self_]\ntrainer:", "trainer must be a block of keys, got None"),
        ("mine", "defaults: [cpuu, _self_]", "unknown preset 'cpuu' under defaults; known: cpu, "),
        ("mine", "defaults: [cpu, _self_]\nactor_rollout_ref:", "actor_rollout_ref must be a block of keys, got None"),
        (
            "mine",
            "defaults: [cpu, _self_]\nactor_rollout_ref: {rollout: }",
            "ref.rollout must be a block of keys, got N",
        ),
        (
            "mine",
            "defaults: [cpu, _self_]\nactor_rollout_ref: {rollout: 4}",
            "ref.rollout must be a block of keys, got 4",
        ),
        ("mine", "defaults: [cpu, _self_]\npolices: {code: {}}", "unknown key 'polices'; did you mean policies"),
        ("cpu", "defaults: [cpu, _self_]", "has the name of a shipped config"),
    ],
)
def test_a_yaml_file_that_cannot_be_a_config_is_refused(tmp_path, name, text, words):
    path = tmp_path / f"{name}.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        read_config(str(path))
    assert words in str(caught.value)


def test_a_value_makes_no_empty_block_whole(tmp_path):
    (tmp_path / "mine.yaml").write_text("defaults: [cpu, _self_]\ntrainer:")
    with pytest.raises(SettingsError, match="trainer must be a block of keys, got None"):
        read_config(str(tmp_path / "mine.yaml"), ["trainer.total_training_steps=1"])


def test_a_word_that_is_no_override_is_named():
    with pytest.raises(SettingsError) as caught:
        read_config("cpu", ["data.train_batch_size", "rewards.alpha=["])
    assert "'data.train_batch_size' is not of the form key=value" in str(caught.value)
    assert "'rewards.alpha=[' cannot be read" in str(caught.value)


def test_every_wrong_key_and_value_is_reported_at_once_and_each_thing_once():
    overrides = (
        "rewards.alhpa=0.3 rewards.alpha=1.5 episode.num_candidates=three data.max_response_length=0 "
        "actor_rollout_ref.actor.ppo_mini_batch_size=0 policies.test.actor.optim.lr=abc schedule.code_every=0 "
        "schedule.test_every=-1"
    )
    with pytest.raises(SettingsError) as caught:
        read_config("cpu", overrides.split())
    assert " ".join(problem.split()[0] for problem in caught.value.args) == (
        "unknown episode.num_candidates rewards.alpha schedule.test_every data.max_response_length "
        "actor_rollout_ref.actor.ppo_mini_batch_size policies.test.actor.optim.lr"
    )
    assert str(caught.value).startswith("7 problems:\n  - unknown key 'rewards.alhpa'; did you mean rewards.alpha?")


def test_the_configuration_of_a_run_is_read_as_it_was(tmp_path):
    config = read_config("cpu", ["run_dir=x", "policies.test.rollout.prompt_length=640", "arm=self_play"])
    path = tmp_path / "resolved_config.yaml"
    path.write_text(config.to_yaml())
    assert recorded_config(path) == config
    path.write_text(config.to_yaml().replace("max_outage_rate", "max_outage_part"))
    with pytest.raises(SettingsError, match=r"sandbox\.max_outage_rate is missing") as caught:
        recorded_config(path)
    assert "unknown key 'sandbox.max_outage_part'; did you mean sandbox.max_outage_rate?" in str(caught.value)
    for old, found in (("config_format: 1", 1), ("other: 1", None)):
        path.write_text(config.to_yaml().replace("config_format: 3", old))
        with pytest.raises(SettingsError, match=f"has format {found}, this release reads format 3; read the run with"):
            recorded_config(path)


def test_workers_get_a_configuration_without_verls_tree():
    config = read_config("cpu")
    assert len(pickle.dumps(config)) < 20_000
    assert pickle.loads(pickle.dumps(config)).episode == config.episode


def test_values_of_the_recipes_own_names_agree():
    modes = RunConfig.model_fields["trainer"].annotation.model_fields["v1"].annotation.model_fields["trainer_mode"]
    assert get_args(modes.annotation) == (TRAINER_NAME,)
    rollouts = {name: read_config("cpu").policy(name).rollout.name for name in POLICY_NAMES}
    assert rollouts == {name: backend_name(name) for name in POLICY_NAMES}


def test_several_threads_may_copy_one_configuration():
    config = read_config("cpu", ["run_dir=/nowhere/x"])

    def views(_):
        return config.to_plain(), config.for_policy("code"), config.for_verl()

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(views, range(12)))
    assert all(one == found[0] for one in found)
