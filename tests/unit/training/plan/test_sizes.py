"""Sizes that nobody sets: they follow from the model and the lengths."""

import operator

import pytest

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.plan.sizes import with_sizes

BUCKET = "update_weights_bucket_megabytes"


def test_a_real_models_sizes():
    config = with_sizes(read_config("smollm2-135m", ["run_dir=outputs/x"]))
    code, test = config.policies.code, config.policies.test
    assert (code.rollout.max_model_len, code.actor.ppo_max_token_len_per_gpu) == (512 + 128, 512 + 128)
    assert (test.rollout.max_model_len, test.actor.ppo_max_token_len_per_gpu) == (1024 + 80, 1024 + 80)
    assert code.rollout.checkpoint_engine[BUCKET] == 108  # MiB: 49,152 words of 576 numbers of 4 bytes
    assert config.for_policy("test").actor_rollout_ref.rollout.checkpoint_engine[BUCKET] == 108


def test_lengths_that_are_overridden_are_followed():
    config = with_sizes(read_config("smollm2-135m", ["run_dir=outputs/x", "data.max_response_length=6000"]))
    rollout = config.policies.code.rollout
    assert (rollout.max_model_len, rollout.max_num_batched_tokens) == (6512, 6512)


@pytest.mark.parametrize("setting", ["rollout.max_model_len=2048", "actor.ppo_max_token_len_per_gpu=4096"])
def test_what_a_user_sets_stays(setting):
    config = with_sizes(read_config("smollm2-135m", ["run_dir=outputs/x", f"actor_rollout_ref.{setting}"]))
    key, _, value = setting.partition("=")
    assert operator.attrgetter(key)(config.policies.code) == int(value)


def test_the_tiny_models_keep_their_settings():
    rollout = with_sizes(read_config("cpu", ["run_dir=outputs/x"])).policies.test.rollout
    assert (rollout.max_model_len, rollout.max_num_batched_tokens) == (1024, 4096)
    assert rollout.checkpoint_engine[BUCKET] == 16
