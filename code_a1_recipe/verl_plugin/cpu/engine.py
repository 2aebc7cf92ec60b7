"""verl's FSDP2 engine on the device "cpu" (verl's own extension point, ``EngineRegistry``)."""

from __future__ import annotations

import copy
import os
from typing import Any

import torch
from verl.models.transformers.dense_common import CausalLMOutputForPPO, forward_base_model
from verl.utils.experimental.torch_functional import FusedLinearForPPO
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

from .environment import TRAINING_THREADS_VARIABLE, logits_chunk


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device=["cpu"])
class CpuFSDPEngineWithLMHead(FSDPEngineWithLMHead):
    """verl's language-model engine without the pinned CPU offload of forward-only (reference) models.

    With ``model.use_fused_kernels`` and ``model.use_remove_padding`` logits exist for responses only, and for no more
    than ``LOGITS_MIB`` at a time.
    """

    def _build_fsdp_module(self, module: Any) -> Any:
        # For a forward-only engine verl asks for CPUOffloadPolicy(pin_memory=True). Pinning needs an
        # accelerator, and parameters that already live on the CPU have nowhere to be offloaded to.
        engine_config = self.engine_config
        self.engine_config = copy.copy(engine_config)
        object.__setattr__(self.engine_config, "forward_only", False)  # verl freezes its configs
        try:
            return super()._build_fsdp_module(module)
        finally:
            self.engine_config = engine_config

    @property
    def _keeps_responses_only(self) -> bool:
        return bool(self.model_config.use_fused_kernels and self.use_remove_padding)

    def _build_module(self) -> Any:
        torch.set_num_threads(int(os.environ.get(TRAINING_THREADS_VARIABLE, "1")))
        module = super()._build_module()
        if self._keeps_responses_only:
            type(module).forward = forward_with_log_probs  # where verl puts its own, which takes every position
        return module

    def prepare_model_inputs(self, micro_batch: Any) -> Any:
        inputs, output_args = super().prepare_model_inputs(micro_batch)
        if self._keeps_responses_only:
            lengths = micro_batch["response_mask"].offsets().diff()
            inputs["logits_to_keep"] = response_positions(micro_batch["input_ids"].offsets(), lengths)
        return inputs, output_args


def response_positions(offsets: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Positions in a packed row whose next token is one of a response: those that verl reads log-probabilities from.

    Args:
        offsets: where sequences begin, and where the last one ends; (sequences + 1,).
        lengths: tokens of the response that ends each sequence; (sequences,).
    """
    ends = offsets[1:].tolist()
    spans = [torch.arange(end - n - 1, end - 1) for end, n in zip(ends, lengths.tolist(), strict=True)]
    return torch.cat(spans)


def forward_with_log_probs(
    self: Any,
    *,
    logits_to_keep: torch.Tensor,
    shift_labels: torch.Tensor,
    temperature: float = 1.0,
    return_dict: bool = True,
    **inputs: Any,
) -> CausalLMOutputForPPO:
    """A causal language model's forward that returns log-probabilities and entropies in place of logits.

    Args:
        logits_to_keep: positions to compute, (kept,); all others are 0.
        shift_labels: the token after each position, (1, tokens).
        temperature: that logits are divided by.
        inputs: of the model below the head.

    Returns:
        ``log_probs`` and ``entropy`` in float32, each (1, tokens).
    """
    hidden = forward_base_model(self, return_dict=return_dict, **inputs)[0]
    weight = self.lm_head.weight
    head = FusedLinearForPPO(chunk_size=logits_chunk(weight.shape[0]))
    kept = head(hidden[:, logits_to_keep], weight, shift_labels[:, logits_to_keep], temperature)
    empty = hidden.new_zeros(shift_labels.shape, dtype=torch.float32)
    log_probs, entropy = (empty.index_copy(1, logits_to_keep, values.float()) for values in kept)
    return CausalLMOutputForPPO(log_probs=log_probs, entropy=entropy)
