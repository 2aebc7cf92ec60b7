"""verl's FSDP2 engine on the device "cpu" (verl's own extension point, ``EngineRegistry``)."""

from __future__ import annotations

import copy
import ctypes
import math
import os
from itertools import groupby
from typing import Any

import torch
from verl.models.transformers.dense_common import CausalLMOutputForPPO, forward_base_model
from verl.utils import tensordict_utils
from verl.utils.experimental.torch_functional import FusedLinearForPPO
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

from .environment import TRAINING_THREADS_VARIABLE, logits_chunk


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device=["cpu"])
class CpuFSDPEngineWithLMHead(FSDPEngineWithLMHead):
    """verl's language-model engine without the pinned CPU offload of forward-only (reference) models.

    With ``model.use_fused_kernels`` and ``model.use_remove_padding`` a group's prompt is computed once for all of its
    responses, and logits exist for responses only, for no more than ``LOGITS_MIB`` at a time.
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
        # With determinism torch fills all memory that it takes, a tenth of an update. All of it is written before
        # it is read.
        torch.utils.deterministic.fill_uninitialized_memory = False
        module = super()._build_module()
        if self._keeps_responses_only:
            type(module).forward = forward_with_log_probs  # where verl puts its own, which takes every position
        return module

    def forward_backward_batch(self, data: Any, loss_function: Any, forward_only: bool = False) -> Any:
        if self._keeps_responses_only and tensordict_utils.get_non_tensor_data(data, "use_dynamic_bsz", default=True):
            rows = zip(data["input_ids"].unbind(), data["response_mask"].unbind(), strict=True)
            prompts = [ids[: len(ids) - len(mask)].tolist() for ids, mask in rows]
            size = math.gcd(*(len(list(same)) for _, same in groupby(prompts)))
            tokens = data["input_ids"].offsets().diff().view(-1, size).sum(dim=1)
            budget = max(data["max_token_len_per_gpu"], int(tokens.max()))  # which counts each prompt every time
            tensordict_utils.assign_non_tensor(data, force_group_size=size, max_token_len_per_gpu=budget)
        results = super().forward_backward_batch(data, loss_function, forward_only)
        give_back_freed_memory()
        return results

    def optimizer_step(self) -> Any:
        norm = super().optimizer_step()
        self.optimizer.zero_grad()  # verl does so before the next update; until then the other policy needs the memory
        give_back_freed_memory()
        return norm

    def prepare_model_inputs(self, micro_batch: Any) -> Any:
        inputs, output_args = super().prepare_model_inputs(micro_batch)
        if self._keeps_responses_only:
            offsets = micro_batch["input_ids"].offsets()
            lengths = micro_batch["response_mask"].offsets().diff()
            kept, places, inputs["attention_mask"] = share_prompts(inputs["input_ids"][0], offsets, lengths)
            inputs["input_ids"], inputs["position_ids"] = inputs["input_ids"][:, kept], inputs["position_ids"][:, kept]
            inputs["log_probs_at"] = response_positions(offsets, lengths)
            inputs["hidden_at"] = places[inputs["log_probs_at"]]
        return inputs, output_args


def give_back_freed_memory() -> None:
    """Hand what tensors took back to the system: glibc keeps freed pieces, while another process has its turn."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def share_prompts(
    ids: torch.Tensor, offsets: torch.Tensor, lengths: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A packed row in which sequences with the same prompt hold it once: as a tree, whose branches are responses.

    Args:
        ids: tokens of all sequences; (tokens,).
        offsets: where sequences begin, and where the last one ends; (sequences + 1,).
        lengths: tokens of the response that ends each sequence; (sequences,).

    Returns:
        Positions of the row that are kept, (kept,); for each position of the row the place among the kept ones that
        stands for it, (tokens,); which of the kept ones each sees, bool, (1, 1, kept, kept).
    """
    stands_for = torch.arange(len(ids))
    tree, branch = torch.zeros_like(stands_for), torch.zeros_like(stands_for)
    first: dict[tuple[int, ...], int] = {}
    for row, (start, end, response) in enumerate(
        zip(offsets[:-1].tolist(), offsets[1:].tolist(), lengths.tolist(), strict=True)
    ):
        middle = end - response
        root = first.setdefault(tuple(ids[start:middle].tolist()), start)
        stands_for[start:middle] = torch.arange(root, root + middle - start)
        tree[start:end] = root
        branch[middle:end] = row + 1
    kept, places = stands_for.unique(return_inverse=True)
    tree, branch = tree[kept], branch[kept]
    seen = (tree[:, None] == tree) & ((branch == 0) | (branch[:, None] == branch))
    return kept, places, seen.tril()[None, None]


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
    hidden_at: torch.Tensor,
    log_probs_at: torch.Tensor,
    shift_labels: torch.Tensor,
    temperature: float = 1.0,
    return_dict: bool = True,
    **inputs: Any,
) -> CausalLMOutputForPPO:
    """A causal language model's forward that returns log-probabilities and entropies in place of logits.

    Args:
        hidden_at: of the tokens computed, those whose next token is one of a response; (responses' tokens,).
        log_probs_at: where their values go; (responses' tokens,). All others are 0.
        shift_labels: the token after each position, (1, tokens).
        temperature: that logits are divided by.
        inputs: of the model below the head.

    Returns:
        ``log_probs`` and ``entropy`` in float32, each (1, tokens).
    """
    hidden = forward_base_model(self, return_dict=return_dict, **inputs)[0]
    weight = self.lm_head.weight
    head = FusedLinearForPPO(chunk_size=logits_chunk(weight.shape[0]))
    kept = head(hidden[:, hidden_at], weight, shift_labels[:, log_probs_at], temperature)
    empty = hidden.new_zeros(shift_labels.shape, dtype=torch.float32)
    log_probs, entropy = (empty.index_copy(1, log_probs_at, values.float()) for values in kept)
    return CausalLMOutputForPPO(log_probs=log_probs, entropy=entropy)
