"""Which engines compute which models rightly, measured on models with few layers; and what a run makes of it."""

import logging

import pytest
import torch

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

import transformers
from transformers import AutoModelForCausalLM
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import SettingsError
from code_a1_recipe.training import resolve
from code_a1_recipe.verl_plugin import model_check
from code_a1_recipe.verl_plugin.model_check import MOST, PADDED, ROWS, WAYS, Way, cut_down, differences

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 300,
}
HEAD = {"head_dim": 16}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
LINEAR = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
SCALAR = {"query_pre_attn_scalar": 16}
PACKED, SDPA, EAGER, PADDED_SDPA, PADDED_EAGER = WAYS
FAMILIES = {
    "llama": (transformers.LlamaConfig, {}, PACKED),
    "qwen2": (transformers.Qwen2Config, {}, PACKED),
    "qwen3": (transformers.Qwen3Config, HEAD, PACKED),
    "qwen3_moe": (transformers.Qwen3MoeConfig, HEAD | MOE, PACKED),
    "mistral": (transformers.MistralConfig, HEAD | {"sliding_window": 4096}, PACKED),
    "starcoder2": (transformers.Starcoder2Config, {"sliding_window": 4096}, PACKED),
    "gemma2": (transformers.Gemma2Config, HEAD | SCALAR, EAGER),
    "gemma3": (transformers.Gemma3TextConfig, HEAD | SCALAR, PACKED),
    "olmo3": (transformers.Olmo3Config, {"sliding_window": 4096}, PACKED),
    "phi3": (transformers.Phi3Config, {"sliding_window": 2047, "pad_token_id": 0}, PACKED),
    "granite": (transformers.GraniteConfig, {"logits_scaling": 8.0}, SDPA),
    "cohere2": (transformers.Cohere2Config, HEAD | {"sliding_window": 4096}, SDPA),
    "gpt_oss": (transformers.GptOssConfig, HEAD | {"num_local_experts": 4, "num_experts_per_tok": 2}, PADDED_EAGER),
    "qwen3_next": (
        transformers.Qwen3NextConfig,
        HEAD | LINEAR | MOE | {"shared_expert_intermediate_size": 16},
        PADDED_SDPA,
    ),
    "qwen3_5": (Qwen3_5TextConfig, HEAD | LINEAR, PADDED_SDPA),
}


def config_of(family):
    kind, own, _ = FAMILIES[family]
    return kind(**SIZES | own)


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.WARNING)  # transformers asks for faster kernels of linear attention
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_right_way_is_taken_and_no_wrong_one(family):
    """Wrong ways are far above the limit, and right ones far below it."""
    found = list(differences(config_of(family)))
    expected = FAMILIES[family][2]
    print(f"{family:12} " + ", ".join(f"{way}: {difference:.1e}" for way, difference in found))
    way, difference = found.pop()
    assert (way, difference <= MOST / 10) == (expected, True)
    assert [way for way, _ in found] == list(WAYS[: WAYS.index(expected)])
    assert all(difference > 10 * MOST for _, difference in found)


def test_a_bias_of_the_head_and_small_logits_do_not_hide_a_wrong_way():
    with_bias = transformers.PhiConfig(**SIZES)
    assert next(differences(with_bias))[1] > 100 * MOST
    small = transformers.Gemma2Config(**SIZES | HEAD | SCALAR, final_logit_softcapping=0.05)
    found = dict(differences(small))
    assert list(found) == [PACKED, SDPA, EAGER]
    assert found[SDPA] > MOST > found[EAGER]


@pytest.mark.parametrize("family", ["mistral", "starcoder2", "gemma3", "olmo3", "phi3"])
def test_windows_are_seen_though_64_tokens_are_shorter_than_theirs(monkeypatch, family):
    def without_window(*states, sliding_window=None, **options):
        return model_check_attention(*states, **options)

    model_check_attention = transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS["attend_to_segments"]
    monkeypatch.setitem(
        transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS._global_mapping, "attend_to_segments", without_window
    )
    ((_, difference),) = differences(config_of(family), ways=(PACKED,))
    assert difference > 100 * MOST


@pytest.mark.parametrize(
    ("config", "layers", "hidden"),
    [
        (transformers.Qwen2Config(hidden_size=3584, num_attention_heads=28, num_key_value_heads=4), 2, 896),
        (transformers.Gemma3TextConfig(), 2, 256),
        (transformers.GptOssConfig(), 2, 1024),
        (transformers.LlamaConfig(hidden_size=1024, num_attention_heads=16), 2, 1024),
    ],
)
def test_a_model_is_cut_down_to_a_few_layers_of_each_kind(config, layers, hidden):
    small = cut_down(config)
    assert (small.num_hidden_layers, small.vocab_size) == (layers, 256)
    assert small.hidden_size <= 1024
    shared = [one.num_attention_heads / one.num_key_value_heads for one in (small, config)]
    assert shared[0] == shared[1]
    assert getattr(small, "sliding_window", None) in (None, 8)
    types = getattr(config, "layer_types", None)
    if types:
        assert set(small.layer_types) == set(types)
    AutoModelForCausalLM.from_config(small)


def test_the_random_numbers_of_a_run_stay_as_they_are():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    list(differences(config_of("llama")))
    assert torch.equal(torch.rand(1), expected)


@pytest.fixture
def choice(tmp_path):
    """``choice(code, test, *overrides)``: the engines of a run with two models, of which only config.json is there."""

    def choose(code, test, *overrides):
        paths = []
        for name, family in (("code", code), ("test", test)):
            config_of(family).save_pretrained(tmp_path / name)
            paths.append(f"policies.{name}.model.path={tmp_path / name}")
        config = read_config("cpu", ["run_dir=/nowhere/x", *paths, *overrides])
        config = config.with_values(resolve.attention(config))
        models = [config.for_policy(name).actor_rollout_ref.model for name in ("code", "test")]
        return [
            Way(
                PACKED.engine if model.use_fused_kernels else ROWS if model.use_remove_padding else PADDED,
                model.override_config.attn_implementation,
            )
            for model in models
        ]

    return choose


def test_each_policy_gets_the_engine_of_its_own_model(choice, capfd):
    assert choice("llama", "gemma2") == [PACKED, EAGER]
    (told,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("policy ")]
    assert told == (
        "policy test: verl's engine (eager attention), slower than the recipe's engine (sdpa attention), which is not "
        "right for this model. A mask has up to 8,192 x 8,192 entries; eager attention has as many scores for each head"
    )


def test_what_a_user_chose_for_one_policy_stays(choice, capfd):
    key = "policies.test.model.override_config.attn_implementation"
    assert choice("qwen2", "qwen2", f"+{key}=eager") == [PACKED, EAGER]
    assert "policy test: attention is eager, as chosen" in capfd.readouterr().out
    assert choice("qwen2", "qwen2", f"+{key}=null") == [PACKED, PACKED]
    assert choice("qwen2", "qwen2", "policies.code.model.use_fused_kernels=false") == [SDPA, PACKED]
    assert choice("qwen2", "qwen2", "policies.code.model.use_remove_padding=false") == [PADDED_SDPA, PACKED]


@pytest.mark.parametrize(("attention", "reason"), [("eager", "0.65"), ("sdap", "KeyError")])
def test_a_chosen_attention_that_does_not_work_is_refused_with_what_was_found(choice, attention, reason):
    with pytest.raises(SettingsError) as caught:
        choice("qwen2", "qwen3_5", f"+policies.test.model.override_config.attn_implementation={attention}")
    (words,) = caught.value.args
    assert words.startswith("policies.test.model.path=")
    assert f"verl's engine ({attention} attention): {reason}" in words


def test_a_model_that_verl_cannot_patch_is_refused(choice, monkeypatch):
    monkeypatch.setitem(FAMILIES, "gpt2", (lambda **_: transformers.GPT2Config(), {}, None))
    with pytest.raises(SettingsError, match="verl cannot train models of the kind gpt2, whose config has no num_key"):
        choice("qwen2", "gpt2")


def test_a_model_that_cannot_be_cut_down_is_left_to_its_workers(choice, monkeypatch, capfd):
    def fail(config):
        raise RuntimeError("no such layer\nmore")

    monkeypatch.setattr(model_check, "cut_down", fail)
    assert choice("qwen2", "llama") == [PADDED_SDPA, PADDED_SDPA]
    told = capfd.readouterr().out
    assert (
        "policy code: verl's engine with padded rows (sdpa attention), since its log-probabilities cannot be " in told
    )
