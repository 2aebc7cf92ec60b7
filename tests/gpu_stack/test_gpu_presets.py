"""The GPU presets in the GPU stack: verl's workers, the arguments of vLLM, and its configuration on an H100 that is not
there. Nothing of it shows that kernels are right or that memory suffices: that takes a card."""

import json

import pytest

from .conftest import CASES, PAPER

LENGTHS = {
    **{preset: {"code": 4096 + 4096, "test": 8192 + 4096} for preset in PAPER},
    "qwen2.5-coder-0.5b": {"code": 1024 + 1024, "test": 3072 + 1024},
    "qwen2.5-coder-1.5b-1gpu": {"code": 2048 + 2048, "test": 4096 + 1024},
    "tiny-1gpu": {"code": 1024, "test": 1024},
}
"""Tokens of the longest prompt and the longest response together."""
OF_A_RUN = {"paper": (16384, 512), "qwen2.5-coder-0.5b": (8192, 128), "tiny-1gpu": (4096, 128)}
"""Tokens of one pass of a server, and responses that it works on at once."""


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return request.param


@pytest.fixture(params=["code", "test"])
def policy(request):
    return request.param


@pytest.fixture
def facts(facts_of, case, policy):
    return facts_of(case)[policy]


def as_engine_has_it(value):
    """An argument that travels as JSON, as the mapping that it is."""
    return json.loads(value) if isinstance(value, str) and value.startswith("{") else value


def test_vllm_knows_each_argument_and_gets_its_value(facts, case, record_property):
    arguments = facts["arguments"]
    assert len(arguments) >= 24
    assert [name for name, one in arguments.items() if not one["known"]] == []
    plain = {name: one for name, one in arguments.items() if name != "compilation_config" and one["given"] is not None}
    lost = {name: one for name, one in plain.items() if as_engine_has_it(one["given"]) != one["parsed"]}
    assert lost == {}
    record_property(f"arguments of {case.preset}", len(arguments))


def test_verls_workers_are_configured_as_the_preset_says(facts, case, policy):
    has_adapter = case.variant == "lora" or case.preset == "qwen2.5-coder-0.5b"
    assert facts["role"] == ("actor_rollout" if has_adapter else "actor_rollout_ref")
    assert sorted(facts["trained"]) == (["actor"] if has_adapter else ["actor", "ref"])
    assert facts["adapter"] == "PolicyServerAdapter"
    assert (facts["rollout"]["type"], facts["rollout"]["name"]) == ("RolloutConfig", f"vllm_{policy}")
    assert facts["checkpoint_engine"]["type"] == "CheckpointEngineConfig"
    assert facts["checkpoint_engine"]["backend"] == "naive"
    for role, parts in facts["trained"].items():
        model, engine = parts["model"], parts["engine"]
        assert (model["type"], engine["type"]) == ("HFModelConfig", "FSDPEngineConfig")
        assert (engine["strategy"], engine["use_remove_padding"], engine["use_dynamic_bsz"]) == ("fsdp2", True, True)
        assert engine["infer_max_token_len_per_gpu"] >= LENGTHS[case.preset][policy]
        assert engine["full_determinism"] is (case.variant == "deterministic")
        assert parts["checkpoint"]["type"] == "CheckpointConfig"
        assert model["override_config"]["attn_implementation"] == "sdpa", role
    actor = facts["trained"]["actor"]
    assert actor["engine"]["max_token_len_per_gpu"] >= LENGTHS[case.preset][policy]
    is_large = case.preset != "tiny-1gpu"
    assert (actor["engine"]["param_offload"], actor["engine"]["optimizer_offload"]) == (is_large, is_large)
    assert (actor["optimizer"]["type"], actor["optimizer"]["total_training_steps"]) == ("FSDPOptimizerConfig", 100)
    assert actor["model"]["lora_rank"] == (32 if has_adapter else 0)


def test_the_engine_is_configured_for_a_run_of_this_preset(facts, case, policy):
    engine, is_tiny = facts["engine"], case.preset == "tiny-1gpu"
    assert (engine["architecture"], engine["dtype"], engine["load_format"]) == (
        "LlamaForCausalLM" if is_tiny else "Qwen2ForCausalLM", "torch.bfloat16", "dummy",
    )  # fmt: skip
    assert engine["max_model_len"] == LENGTHS[case.preset][policy]
    assert (engine["sleep_mode"], engine["chunked_prefill"], engine["prefix_caching"]) == (True, True, True)
    assert (engine["logprobs_mode"], engine["enforce_eager"]) == ("processed_logprobs", is_tiny)
    tokens, requests = OF_A_RUN.get(case.preset, OF_A_RUN["paper"])
    assert (engine["max_num_batched_tokens"], engine["max_num_seqs"]) == (tokens, requests)
    assert (engine["tensor_parallel_size"], engine["executor"]) == (1, "mp")
    assert engine["worker"] == "vllm.v1.worker.gpu_worker.Worker"
    assert engine["worker_extension"].endswith(".vLLMColocateWorkerExtension")
    assert engine["lora_rank"] == (32 if case.variant == "lora" or case.preset == "qwen2.5-coder-0.5b" else 0)
    # The other sampler is compiled by nvcc when an engine starts, which a user need not have.
    assert (engine["attention"], engine["sampler"]) == ("FLASH_ATTN", "forward_native")
    shares = {"colocated": 0.4, "separate": 0.8}
    own = {"qwen2.5-coder-0.5b": 0.25, "qwen2.5-coder-1.5b-1gpu": 0.35, "tiny-1gpu": 0.1}
    assert engine["gpu_memory_utilization"] == own.get(case.preset, shares[case.layout])


def test_requests_are_seeded_where_determinism_is_asked_for_and_nowhere_else(facts, case):
    wanted = case.variant == "deterministic"
    assert facts["seeds_each_request"] is wanted
    assert facts["rollout"]["full_determinism"] is wanted
    flag = "1" if wanted else "0"
    assert facts["environment"] == {"VLLM_BATCH_INVARIANT": flag, "VERL_FULL_DETERMINISM": flag}
    assert facts["engine"]["scheduling_policy"] == "fcfs"
    assert facts["engine"]["seed"] == 1  # each server its own: its rank and data.seed
