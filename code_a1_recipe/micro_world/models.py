"""Architecture of the tiny models: ordinary Llama configurations that vLLM and verl load as they are."""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from .settings import HEAD_SIZE, ModelSettings

MAX_LENGTH = 1024
"""Longest sequence, prompt and response together, in tokens. Demonstrations stay below 120."""

# Wide enough that the hidden states of so small a model start at a useful size.
_INITIALIZER_RANGE = 0.04


def build_model(settings: ModelSettings, tokenizer: PreTrainedTokenizerFast, *, seed: int) -> LlamaForCausalLM:
    """A randomly initialised float32 model whose vocabulary is exactly that of ``tokenizer``.

    Exactly, because token ids beyond the tokenizer are masked by vLLM and not by the trainer: a
    padded vocabulary would make the two disagree on every probability. The model type must not
    be one for which AutoTokenizer brings its own pre-tokenizer (qwen2 does).
    """
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.hidden_size,
        intermediate_size=settings.intermediate_size,
        num_hidden_layers=settings.num_layers,
        num_attention_heads=settings.hidden_size // HEAD_SIZE,
        num_key_value_heads=settings.hidden_size // HEAD_SIZE,
        head_dim=HEAD_SIZE,
        max_position_embeddings=MAX_LENGTH,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        initializer_range=_INITIALIZER_RANGE,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).float()  # type: ignore[no-any-return,no-untyped-call]


def num_parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
