"""verl's FSDP2 engine on the device "cpu" (verl's own extension point, ``EngineRegistry``)."""

import copy
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch.distributed.fsdp import FSDPModule
from torch.nn.functional import scaled_dot_product_attention
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from verl.models.transformers.dense_common import CausalLMOutputForPPO
from verl.utils import tensordict_utils
from verl.utils.experimental.torch_functional import FusedLinearForPPO
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
from verl.workers.utils.losses import ppo_loss

from .environment import TRAINING_THREADS_VARIABLE, give_back_freed_memory, logits_chunk


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device=["cpu"])
class CpuFSDPEngineWithLMHead(FSDPEngineWithLMHead):
    """verl's language-model engine without the pinned CPU offload of forward-only (reference) models.

    With ``model.use_fused_kernels`` and ``model.use_remove_padding`` a group's prompt is computed once for all of its
    responses, and logits exist for responses only, for no more than ``LOGITS_MIB`` at a time. On one rank, rows whose
    advantages are all zero, as those of a group whose rewards are equal, cost an update nothing.
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
            module.config._attn_implementation = attend_in_trees.__name__
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

    @contextmanager
    def _gradient_sync_context(self, *, is_last_micro_batch: bool) -> Iterator[None]:
        yield  # verl puts the sum off to the last micro-batch, which may have no gradient, and holds gradients twice

    def forward_step(self, micro_batch: Any, loss_function: Any, forward_only: bool) -> Any:
        if not forward_only and self.get_data_parallel_size() == 1 and has_no_gradient(loss_function, micro_batch):
            return torch.zeros((), requires_grad=True), {"loss": 0.0, "metrics": {}}
        return super().forward_step(micro_batch, loss_function, forward_only)

    def optimizer_step(self) -> Any:
        for parameter in self.module.parameters():
            if parameter.requires_grad and parameter.grad is None:  # AdamW leaves such a one as it is, momentum and all
                parameter.grad = torch.zeros_like(parameter)
        norm = super().optimizer_step()
        self.optimizer.zero_grad()  # verl does so before the next update; until then the other policy needs the memory
        give_back_freed_memory()
        return norm

    def prepare_model_inputs(self, micro_batch: Any) -> Any:
        inputs, output_args = super().prepare_model_inputs(micro_batch)
        if self._keeps_responses_only:
            offsets = micro_batch["input_ids"].offsets()
            lengths = micro_batch["response_mask"].offsets().diff()
            kept, places, inputs["trees"] = share_prompts(inputs["input_ids"][0], offsets, lengths)
            inputs["attention_mask"] = None
            inputs["input_ids"], inputs["position_ids"] = inputs["input_ids"][:, kept], inputs["position_ids"][:, kept]
            inputs["log_probs_at"] = response_positions(offsets, lengths)
            inputs["hidden_at"] = places[inputs["log_probs_at"]]
        return inputs, output_args


def has_no_gradient(loss_function: Any, micro_batch: Any) -> bool:
    """Whether the loss of these rows is constant: verl's clipped PPO loss alone, and no row has an advantage."""
    if getattr(loss_function, "func", None) is not ppo_loss:
        return False
    actor = loss_function.keywords["config"]
    if actor.use_kl_loss or actor.entropy_coeff or actor.policy_loss.get("loss_mode", "vanilla") != "vanilla":
        return False
    return not micro_batch["advantages"].values().any()


class Tree(NamedTuple):
    """Sequences with the same prompt, in a packed row that holds it once."""

    prompt: slice
    branches: list[slice]
    """Of each response."""


def share_prompts(
    ids: torch.Tensor, offsets: torch.Tensor, lengths: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, list[Tree]]:
    """Leave out of a packed row every prompt that stands in it before.

    Args:
        ids: tokens of all sequences; (tokens,).
        offsets: where sequences begin, and where the last one ends; (sequences + 1,).
        lengths: tokens of the response that ends each sequence; (sequences,).

    Returns:
        Positions of the row that are kept, (kept,); for each position of the row the place among the kept ones that
        stands for it, (tokens,); the trees, whose slices are of the kept ones.
    """
    trees: dict[tuple[int, ...], Tree] = {}
    kept, places, size = [], [], 0
    for start, end, response in zip(offsets[:-1].tolist(), offsets[1:].tolist(), lengths.tolist(), strict=True):
        middle = end - response
        prompt = tuple(ids[start:middle].tolist())
        if prompt not in trees:
            trees[prompt] = Tree(slice(size, size := size + len(prompt)), [])
            kept.append(torch.arange(start, middle))
        tree = trees[prompt]
        tree.branches.append(slice(size, size := size + response))
        kept.append(torch.arange(middle, end))
        places += [torch.arange(part.start, part.stop) for part in (tree.prompt, tree.branches[-1])]
    return torch.cat(kept), torch.cat(places), list(trees.values())


def attend_in_trees(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: None,
    *,
    trees: list[Tree],
    scaling: float,
    dropout: float = 0.0,
    **ignored: Any,
) -> tuple[torch.Tensor, None]:
    """Causal attention of transformers' interface: each response sees its prompt and itself.

    Args:
        module: the layer.
        query: (1, heads, kept, size).
        key: (1, heads of keys, kept, size), as is the value.
        attention_mask: none; the trees say what is seen.

    Returns:
        (1, kept, heads, size).
    """
    times = query.shape[1] // key.shape[1]
    key, value = (states.repeat_interleave(times, dim=1) for states in (key, value))
    attend: Callable[..., torch.Tensor] = partial(scaled_dot_product_attention, dropout_p=dropout, scale=scaling)
    results: dict[int, torch.Tensor] = {}
    for prompt, branches in trees:
        before = [states[:, :, prompt] for states in (query, key, value)]
        results[prompt.start] = attend(*before, is_causal=True)
        for branch in branches:
            seen = [torch.cat((states[:, :, prompt], states[:, :, branch]), dim=2) for states in (key, value)]
            mask = query.new_ones(branch.stop - branch.start, seen[0].shape[2], dtype=torch.bool)
            mask = mask.tril(prompt.stop - prompt.start)
            results[branch.start] = attend(query[:, :, branch], *seen, attn_mask=mask)
    in_order = [results[start] for start in sorted(results)]
    return torch.cat(in_order, dim=2).transpose(1, 2).contiguous(), None


ALL_ATTENTION_FUNCTIONS.register(attend_in_trees.__name__, attend_in_trees)


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
    hidden = self.get_decoder()(return_dict=return_dict, **inputs)[0]
    if isinstance(self.lm_head, FSDPModule):  # of its own where its weight is not the embedding's too
        self.lm_head.unshard()
    weight = self.lm_head.weight
    head = FusedLinearForPPO(chunk_size=logits_chunk(weight.shape[0]))
    kept = head(hidden[:, hidden_at], weight, shift_labels[:, log_probs_at], temperature)
    if isinstance(self.lm_head, FSDPModule) and not torch.is_grad_enabled():
        self.lm_head.reshard()  # no backward pass will
    empty = hidden.new_zeros(shift_labels.shape, dtype=torch.float32)
    log_probs, entropy = (empty.index_copy(1, log_probs_at, values.float()) for values in kept)
    return CausalLMOutputForPPO(log_probs=log_probs, entropy=entropy)
