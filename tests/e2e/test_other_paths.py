"""Two steps each of ways that no ordinary run takes: LoRA, own devices, a frozen policy, hindsight, windows."""

import json
from pathlib import Path

import pytest
import torch
import yaml
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, MistralConfig

from .conftest import SHORT

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.xdist_group("others")]


def diffs(run, policy):
    assert run.returncode == 0, run.output[-4000:]
    assert len(run.metrics) == 2
    return [row.get(f"{policy}/rollout_log_probs_diff_worst") for row in run.metrics]


def test_both_policies_train_an_adapter(train, tmp_path):
    run = train(tmp_path / "lora", "actor_rollout_ref.model.lora_rank=4", *SHORT)
    for policy in ("code", "test"):
        assert max(diffs(run, policy)) <= 1e-3  # the server adds the adapter's product in another order
        assert all(row[f"{policy}/actor/grad_norm"] > 0 for row in run.metrics)


def test_each_policy_trains_on_devices_of_its_own(train, tmp_path):
    run = train(tmp_path / "separate", "layout=separate", *SHORT)
    for policy in ("code", "test"):
        assert max(diffs(run, policy)) <= 1e-5


def test_verls_engine_trains_with_padded_rows_and_with_eager_attention(train, tmp_path):
    run = train(
        tmp_path / "ways",
        "policies.code.model.use_remove_padding=false",
        "policies.test.model.override_config.attn_implementation=eager",
        *SHORT,
    )
    for policy in ("code", "test"):
        assert max(diffs(run, policy)) <= 1e-5


def test_a_frozen_policy_is_watched_and_one_that_takes_its_servers_log_probs(train, tmp_path):
    run = train(tmp_path / "frozen", "schedule.test_every=0", "algorithm.rollout_correction.bypass_mode=true", *SHORT)
    first, second = diffs(run, "test")
    assert first <= 1e-5  # at the first and each tenth step
    assert second is None
    assert max(diffs(run, "code")) <= 1e-5


def test_hindsight_beside_the_adversarys_rewards_is_resumed_with_its_state(train, tmp_path):
    folder = tmp_path / "hindsight"
    settings = ("hindsight.weight=2.0", "rewards.test.name=adversary", "rewards.alpha=0")
    once = [one for one in SHORT if "save_freq" not in one and "total" not in one]
    begun = train(folder, "trainer.total_training_steps=1", "trainer.save_freq=1", *settings, *once)
    assert begun.returncode == 0, begun.output[-4000:]
    kept = json.loads((folder / "checkpoints" / "global_step_1" / "extensions.json").read_text())
    assert [len(state) > 0 for state in kept.values()] == [True]
    resumed = train(folder, "trainer.total_training_steps=2", "trainer.save_freq=1", *settings, *once)
    assert max(diffs(resumed, "test")) <= 1e-5
    later = json.loads((folder / "checkpoints" / "global_step_2" / "extensions.json").read_text())
    (name,) = kept
    assert len(later[name]) > len(kept[name])
    assert all(lesson in later[name] for lesson in kept[name])


def test_a_model_with_windows_trains_on_its_own_log_probs(train, tmp_path):
    """The micro world's models with windows of 32 tokens. Before, a difference of 0.028 went unnoticed."""
    first = train(tmp_path / "plain", *SHORT)
    config = yaml.safe_load((first.folder / "resolved_config.yaml").read_text())
    paths = []
    for policy in ("code", "test"):
        folder = Path(config["policies"][policy]["model"]["path"])
        llama = AutoConfig.from_pretrained(folder)
        names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
        names += ("vocab_size", "rms_norm_eps", "bos_token_id", "eos_token_id", "pad_token_id", "tie_word_embeddings")
        names += ("rope_parameters", "max_position_embeddings")
        mistral = MistralConfig(**{name: getattr(llama, name) for name in names}, sliding_window=32)
        model = AutoModelForCausalLM.from_config(mistral, dtype=torch.float32)
        model.load_state_dict(AutoModelForCausalLM.from_pretrained(folder).state_dict())
        model.save_pretrained(tmp_path / policy)
        AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / policy)
        paths.append(f"policies.{policy}.model.path={tmp_path / policy}")
    run = train(tmp_path / "windows", *paths, *SHORT)
    for policy in ("code", "test"):
        assert max(diffs(run, policy)) <= 1e-5
