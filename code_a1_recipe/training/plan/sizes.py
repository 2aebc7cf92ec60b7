"""Sizes of models, from a Hugging Face configuration or from a table of the presets' models, which needs no hub."""

import functools
from typing import Any

from ...config.run_config import ModelConfig, RunConfig
from ...errors import SettingsError
from .machine import Machine
from .memory import MIB, WEIGHT, ModelSize, kv_cache_bytes

_KV_MEMORY, _EXECUTOR = "kv_cache_memory_bytes", "distributed_executor_backend"

SMOLLM2 = "HuggingFaceTB/SmolLM2-135M-Instruct"
KNOWN = {
    name: ModelSize(*numbers)
    for name, numbers in {
        # parameters, layers, hidden, ffn, vocabulary
        "Qwen/Qwen2.5-Coder-0.5B-Instruct": (494_032_768, 24, 896, 4864, 151_936),
        "Qwen/Qwen2.5-Coder-1.5B-Instruct": (1_543_714_304, 28, 1536, 8960, 151_936),
        "Qwen/Qwen2.5-Coder-3B-Instruct": (3_085_938_688, 36, 2048, 11_008, 151_936),
        "Qwen/Qwen2.5-Coder-7B-Instruct": (7_615_616_512, 28, 3584, 18_944, 152_064),
        SMOLLM2: (134_515_008, 30, 576, 1536, 49_152),
        "micro": (566_688, 4, 96, 288, 451),
    }.items()
}
"""Sizes of models by name, so that these models need no hub. The sizes follow from the models' ``config.json`` and from
transformers.

"micro" is the larger of the two tiny models. A run without ``policies.*.model.path`` uses the tiny models."""


def with_sizes(config: RunConfig) -> RunConfig:
    """Fill in sizes that follow from the models and from the lengths of prompts and responses.

    If a server's context or an update's token budget is null, it becomes the length of one full sequence. The bucket
    for weight sync becomes large enough for the largest weight.

    Raises:
        SettingsError: as :func:`model_size`.
    """
    values: dict[str, Any] = {}
    for name in config.policy_names:
        policy = config.policy(name)
        rollout = policy.rollout
        length = rollout.prompt_length + rollout.response_length
        context = rollout.max_model_len or length
        bucket = -(-WEIGHT * size_of(policy.model).largest_weight // MIB)
        # Values that are large enough are not set again: a policy's own value would hide a change under
        # ``actor_rollout_ref``.
        own: dict[str, int] = {}
        if rollout.max_model_len is None:
            own["rollout.max_model_len"] = context
        # Without chunked prefill a pass of the server must take a whole prompt.
        if rollout.max_num_batched_tokens < context and not rollout.enable_chunked_prefill:
            own["rollout.max_num_batched_tokens"] = context
        if policy.actor.ppo_max_token_len_per_gpu is None:
            own["actor.ppo_max_token_len_per_gpu"] = length
        if rollout.checkpoint_engine["update_weights_bucket_megabytes"] < bucket:
            own["rollout.checkpoint_engine.update_weights_bucket_megabytes"] = bucket
        values |= {f"policies.{name}.{key}": value for key, value in own.items()}
    return config.with_values(values)


def engines(config: RunConfig, machine: Machine) -> dict[str, Any]:
    """Choose options of vLLM so that the servers of both policies can start at the same time on one card.

    The first option is the size of the KV cache. Without this size vLLM measures the card's free memory during its
    start, and the start of another engine falsifies the measurement. The second option lets an engine on one card run
    in the process of its server. A separate process would import vLLM again, which takes 20 s on a machine with an
    H100. Options that the user has set stay. On a CPU, or if the cards are in other machines, no option is chosen.
    """
    if config.trainer.device != "cuda" or not machine.num_gpus:
        return {}
    values: dict[str, Any] = {}
    for name in config.policy_names:
        rollout = config.policy(name).rollout
        amount = kv_cache_bytes(
            size_of(config.policy(name).model),
            room=int(rollout.gpu_memory_utilization * machine.gpu_memory),
            ranks=rollout.tensor_model_parallel_size,
            tokens=rollout.max_num_batched_tokens,
            sequences=rollout.max_num_seqs,
        )
        given = rollout.engine_kwargs.get("vllm") or {}
        key = f"policies.{name}.rollout.engine_kwargs.vllm"
        if amount > 0 and _KV_MEMORY not in given:
            values[f"{key}.{_KV_MEMORY}"] = amount
        if rollout.tensor_model_parallel_size == 1 and _EXECUTOR not in given:
            values[f"{key}.{_EXECUTOR}"] = "uni"
    return values


def kv_memory(config: RunConfig, policy: str) -> int | None:
    """Return the configured bytes of the KV cache of a policy's servers, or None."""
    amount: int | None = (config.policy(policy).rollout.engine_kwargs.get("vllm") or {}).get(_KV_MEMORY)
    return amount


def size_of(model: ModelConfig) -> ModelSize:
    """Return the size of a policy's model; see :func:`model_size`."""
    return model_size(model.path, trust_remote_code=model.trust_remote_code)


@functools.cache
def model_size(path: str | None, *, trust_remote_code: bool = False) -> ModelSize:
    """Return the size of a model in a folder, in the hub's cache, or on the hub.

    Args:
        path: folder or id of the model; None stands for the tiny models.
        trust_remote_code: run Python code that comes with the model.

    Raises:
        SettingsError: the model's configuration cannot be read here, or transformers knows no such decoder.
    """
    if (known := KNOWN.get(path or "micro")) is not None:
        return known
    try:
        config, model = without_weights(str(path), trust_remote_code=trust_remote_code)
        return ModelSize(
            parameters=sum(weight.numel() for weight in model.parameters()),
            layers=config.num_hidden_layers,
            hidden=config.hidden_size,
            ffn=getattr(config, "intermediate_size", None) or 4 * config.hidden_size,
            vocabulary=config.vocab_size,
        )
    except Exception as error:  # transformers may raise any error for a damaged file
        raise SettingsError(
            f"policies.*.model.path={path!r} cannot be read: {in_a_line(error)}; give a folder with its config.json "
            f"(`hf download ID --local-dir FOLDER`), or an id of the hub; known without it: {', '.join(KNOWN)}"
        ) from error


def check_tokenizer(tokenizer: Any, *, rows: int) -> None:
    """Raise ValueError if a tokenizer has no chat template, or more tokens than the model's embedding has rows."""
    if len(tokenizer) > rows:
        raise ValueError(
            f"the tokenizer has {len(tokenizer)} tokens, the model {rows}, so they do not belong together; take the "
            "tokenizer of this model"
        )
    if not tokenizer.chat_template:
        raise ValueError("the model has no chat template, so it cannot be asked; take its instruction-tuned release")


def in_a_line(error: Exception) -> str:
    """Return a library's error message in one line of at most 300 characters."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def without_weights(path: str, *, trust_remote_code: bool) -> tuple[Any, Any]:
    """Return configuration and model. The model's weights have shapes but no values (torch's device "meta")."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(path, trust_remote_code=trust_remote_code)
    with torch.device("meta"):
        return config, AutoModelForCausalLM.from_config(config, trust_remote_code=trust_remote_code)  # type: ignore[no-untyped-call]
