"""verl's keys: each is honoured, refused with what to use instead, or named as without effect; none is silent."""

from collections import Counter

import pytest
import yaml
from omegaconf import OmegaConf

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.config import compose, verl_keys
from code_a1_recipe.config.compose import arm_names, keys_without_effect, preset_names, read_config
from code_a1_recipe.config.verl_keys import rule_of
from code_a1_recipe.errors import SettingsError

MICRO = ["run_dir=/tmp/run", "policies.code.model.path=m", "policies.test.model.path=m"]
FILES = ["data.train_files=q.jsonl", "data.val_files=q.jsonl"]


@pytest.fixture(scope="module")
def verls():
    """verl's own configuration, nothing of the recipe's."""
    tree = compose._composed_by_hydra(compose._verl_config_dir(), "ppo_trainer", ())
    return dict(verl_keys.leaves(OmegaConf.to_container(tree, resolve=False)))


def test_every_leaf_of_verls_configuration_has_a_rule(verls):
    without = [key for key in verls if rule_of(key) is None and not key.endswith("_target_")]
    assert without == []
    kinds = Counter(rule_of(key).kind for key in verls if not key.endswith("_target_"))
    assert kinds.keys() == {"honoured", "refused", "no_effect"}
    assert kinds["honoured"] > 250


def test_every_rule_is_about_a_key_of_verls(verls):
    names = {".".join(key.split(".")[:number]) for key in verls for number in range(1, key.count(".") + 2)}
    loaded = yaml.safe_load(verl_keys._FILE.read_text())
    assert {key for kind in loaded.values() for key in kind} - names == {
        "data.adapter",
        "data.columns",
        "data.left_out",
    }
    assert sum(len(kind) for kind in loaded.values()) == len(verl_keys._table())  # none is in two kinds


@pytest.mark.parametrize(
    "words", [*((preset,) for preset in preset_names()), *(("cpu", f"arm={arm}") for arm in arm_names())]
)
def test_no_preset_and_no_arm_sets_a_key_that_is_refused_or_without_effect(words):
    preset, *arm = words
    assert keys_without_effect(read_config(preset, [*MICRO, *FILES, *arm])) == []


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("algorithm.filter_groups.enable=true", "see episode.max_refills"),
        ("trainer.v1.sampler.sync_refill_failed_groups=true", "a step waits for all its episodes"),
        ("data.gen_batch_size=4", "set data.train_batch_size"),
        ("distillation.enabled=true", "two policies train on rewards alone"),
        ("policies.code.rollout.val_kwargs.n=4", "set validation.num_candidates"),
        ("reward.custom_reward_function.path=x.py", "set rewards.code and rewards.test"),
        ("critic.optim.lr=1", "GRPO has no critic"),
        ("skip.rollout.enable=true", "see resume"),
        ("trainer.critic_warmup=20", "both policies train from the first step"),
    ],
)
def test_a_key_that_would_change_the_run_silently_or_end_it_is_refused(override, hint):
    with pytest.raises(SettingsError) as refused:
        read_config("cpu", [*MICRO, override])
    key, _, _ = override.partition("=")
    assert len(refused.value.args) == 1
    assert refused.value.args[0].startswith(key)
    assert "is not honoured here" in refused.value.args[0]
    assert hint in refused.value.args[0]


def test_the_engine_must_be_one_of_torchs_own():
    with pytest.raises(SettingsError, match=r"actor\.strategy must be 'fsdp' or 'fsdp2', got 'megatron'"):
        read_config("cpu", [*MICRO, "actor_rollout_ref.actor.strategy=megatron"])


def test_a_key_without_effect_is_named_and_the_run_goes_on():
    own = ["data.columns={prompt: problem}", "data.adapter=mbpp"]
    config = read_config(
        "cpu", [*MICRO, *own, "trainer.balance_batch=false", "data.image_key=pictures", "algorithm.lam=0.9"]
    )
    assert sorted(keys_without_effect(config)) == [
        "algorithm.lam=0.9 has no effect here: GRPO has one reward at the end",
        "data.image_key='pictures' has no effect here: questions are read by the recipe; see data.columns and "
        "data.adapter",
        "trainer.balance_batch=False has no effect here: rows are always balanced",
    ]
