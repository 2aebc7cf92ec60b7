"""verl's FSDP engine for packed rows, on CPUs and NVIDIA cards (verl's own extension point, ``EngineRegistry``)."""

import copy
import inspect
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import torch
from torch.distributed.fsdp import FSDPModule
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from verl.models.transformers.dense_common import CausalLMOutputForPPO
from verl.utils import tensordict_utils
from verl.utils.device import get_device_name
from verl.utils.experimental.torch_functional import FusedLinearForPPO
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
from verl.workers.utils.losses import ppo_loss

from . import own_log_probs
from .cpu.environment import PLATFORM_NAME, TRAINING_THREADS_VARIABLE, give_back_freed_memory, logits_chunk


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cuda", vendor="nvidia")
@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cpu")
class PackedFSDPEngineWithLMHead(FSDPEngineWithLMHead):
    """verl's language-model engine for groups of responses to one prompt.

    With ``model.use_fused_kernels`` and ``model.use_remove_padding`` a group's prompt is computed once for all of its
    responses, and logits exist for responses only, some of them at a time (``logits_chunk``). On one rank, rows whose
    advantages are all zero, as those of a group whose rewards are equal, cost an update nothing. Rows split over ranks
    (``ulysses_sequence_parallel_size`` above 1) go verl's way.
    """

    def _build_fsdp_module(self, module: Any) -> Any:
        if not _on_cpu():
            return super()._build_fsdp_module(module)
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
        is_packed = self.model_config.use_fused_kernels and self.use_remove_padding
        return bool(is_packed and self.engine_config.ulysses_sequence_parallel_size == 1)

    def _build_module(self) -> Any:
        if _on_cpu():
            torch.set_num_threads(int(os.environ.get(TRAINING_THREADS_VARIABLE, "1")))
        # With determinism torch fills all memory that it takes, a tenth of an update. All of it is written before
        # it is read.
        torch.utils.deterministic.fill_uninitialized_memory = False
        module = super()._build_module()
        if self._keeps_responses_only:
            type(module).forward = forward_with_log_probs  # where verl puts its own, which takes every position
            module.config._attn_implementation = attend_to_segments.__name__
        return module

    @contextmanager
    def disable_adapter(self) -> Iterator[None]:
        trained = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        with super().disable_adapter():
            # FSDP looks in the first pass at what is trained. PEFT hides it in a pass of the reference, and gradients
            # would stay in bfloat16, summed over ranks in it.
            for parameter in trained:
                parameter.requires_grad_()
            yield

    def forward_backward_batch(self, data: Any, loss_function: Any, forward_only: bool = False) -> Any:
        if self._keeps_responses_only and tensordict_utils.get_non_tensor_data(data, "use_dynamic_bsz", default=True):
            rows = zip(data["input_ids"].unbind(), data["response_mask"].unbind(), strict=True)
            prompts = [ids[: len(ids) - len(mask)].tolist() for ids, mask in rows]
            size = math.gcd(*(len(list(same)) for _, same in groupby(prompts)))
            tokens = data["input_ids"].offsets().diff().view(-1, size).sum(dim=1).float()
            repeated = tokens.new_tensor([(size - 1) * len(prompt) for prompt in prompts[::size]])
            # verl counts each prompt every time, so its budget grows: no part computes more tokens than the user's.
            bounds = torch.stack((-(tokens / (tokens - repeated)).min(), tokens.max()))
            if self.get_data_parallel_size() > 1:  # the number of parts must be the same on all ranks
                torch.distributed.all_reduce(bounds, torch.distributed.ReduceOp.MAX, self.get_data_parallel_group())
            growth, longest = bounds.tolist()
            budget = max(int(-growth * data["max_token_len_per_gpu"]), int(longest))
            tensordict_utils.assign_non_tensor(data, force_group_size=size, max_token_len_per_gpu=budget)
        results = super().forward_backward_batch(data, loss_function, forward_only)
        if _on_cpu():
            give_back_freed_memory()
        return results

    @contextmanager
    def _gradient_sync_context(self, *, is_last_micro_batch: bool) -> Iterator[None]:
        # verl puts the sum off to the last micro-batch, which may have no gradient, and holds gradients twice. Between
        # cards that spares traffic, and there every micro-batch has one.
        if _on_cpu() or self.get_data_parallel_size() == 1:
            yield
            return
        with super()._gradient_sync_context(is_last_micro_batch=is_last_micro_batch):
            yield

    def forward_step(self, micro_batch: Any, loss_function: Any, forward_only: bool) -> Any:
        if forward_only:
            return super().forward_step(micro_batch, loss_function, forward_only)
        learns = self.get_data_parallel_size() > 1 or not has_no_gradient(loss_function, micro_batch)
        if takes_own := tensordict_utils.get_non_tensor_data(micro_batch, own_log_probs.FLAG, default=False):
            keeps_entropy = tensordict_utils.get_non_tensor_data(micro_batch, "calculate_entropy", default=False)
            tensordict_utils.assign_non_tensor(micro_batch, calculate_entropy=True)
            loss_function = partial(own_log_probs.loss_with_own_log_probs, loss_function, keeps_entropy=keeps_entropy)
        if learns:
            return super().forward_step(micro_batch, loss_function, forward_only)
        metrics = {}
        if takes_own:  # the entropy is of all rows, whether there is something to learn from them or not
            with torch.no_grad():
                found = super().forward_step(micro_batch, loss_function, forward_only)[1]["metrics"]
            metrics = {name: value for name, value in found.items() if name.startswith(own_log_probs.PREFIX)}
        return torch.zeros((), requires_grad=True), {"loss": 0.0, "metrics": metrics}

    def optimizer_step(self) -> Any:
        for parameter in self.module.parameters():
            if parameter.requires_grad and parameter.grad is None:  # AdamW leaves such a one as it is, momentum and all
                parameter.grad = torch.zeros_like(parameter)
        norm = super().optimizer_step()
        self.optimizer.zero_grad()  # verl does so before the next update; until then the other policy needs the memory
        if _on_cpu():
            give_back_freed_memory()
        return norm

    def prepare_model_inputs(self, micro_batch: Any) -> Any:
        inputs, output_args = super().prepare_model_inputs(micro_batch)
        if self._keeps_responses_only:
            ids = inputs["input_ids"]
            offsets = micro_batch["input_ids"].offsets().cpu()
            lengths = micro_batch["response_mask"].offsets().diff().cpu()
            kept, places, seen = share_prompts(ids[0].cpu(), offsets, lengths)
            log_probs_at = response_positions(offsets, lengths)
            inputs["segments"] = Segments.of(seen, device=ids.device)
            inputs["attention_mask"] = None
            kept = kept.to(ids.device)
            inputs["input_ids"], inputs["position_ids"] = ids[:, kept], inputs["position_ids"][:, kept]
            inputs["log_probs_at"] = log_probs_at.to(ids.device)
            inputs["hidden_at"] = places[log_probs_at].to(ids.device)
        return inputs, output_args


def _on_cpu() -> bool:
    return bool(get_device_name() == PLATFORM_NAME)


def has_no_gradient(loss_function: Any, micro_batch: Any) -> bool:
    """Whether the loss of these rows is constant: verl's clipped PPO loss alone, and no row has an advantage."""
    if getattr(loss_function, "func", None) is not ppo_loss:
        return False
    actor = loss_function.keywords["config"]
    if actor.use_kl_loss or actor.entropy_coeff or actor.policy_loss.get("loss_mode", "vanilla") != "vanilla":
        return False
    return not micro_batch["advantages"].values().any()


class Segments(NamedTuple):
    """Prompts and responses of a packed row that holds each prompt once, in its order."""

    seen: list[list[slice]]
    """What each segment sees: for a response its prompt and itself. The last part is the segment's own."""
    query_ends: torch.Tensor
    """0 and the end of each segment in the row; int32, (segments + 1,)."""
    key_ends: torch.Tensor
    """0 and the end of what each segment sees in ``keys_at``; the same."""
    keys_at: torch.Tensor
    """Places in the row of all that is seen, one segment after the other."""
    longest: tuple[int, int]
    """Tokens of the longest segment, and of the most that one sees."""

    @classmethod
    def of(cls, seen: list[list[slice]], *, device: torch.device) -> "Segments":
        """Segments whose tensors are on ``device``."""
        queries = [parts[-1].stop - parts[-1].start for parts in seen]
        keys = [sum(part.stop - part.start for part in parts) for parts in seen]
        ends = [torch.tensor([0, *accumulate(sizes)], dtype=torch.int32) for sizes in (queries, keys)]
        keys_at = torch.cat([torch.arange(part.start, part.stop) for parts in seen for part in parts])
        query_ends, key_ends, keys_at = (one.to(device) for one in (*ends, keys_at))
        return cls(seen, query_ends, key_ends, keys_at, (max(queries), max(keys)))


def share_prompts(
    ids: torch.Tensor, offsets: torch.Tensor, lengths: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, list[list[slice]]]:
    """Leave out of a packed row every prompt that stands in it before.

    Args:
        ids: tokens of all sequences; (tokens,).
        offsets: where sequences begin, and where the last one ends; (sequences + 1,).
        lengths: tokens of the response that ends each sequence; (sequences,).

    Returns:
        Positions of the row that are kept, (kept,); for each position of the row the place among the kept ones that
        stands for it, (tokens,); what each segment of the kept ones sees, as in ``Segments``.
    """
    prompts: dict[tuple[int, ...], slice] = {}
    kept, places, size = [], [], 0
    seen: list[list[slice]] = []
    for start, end, response in zip(offsets[:-1].tolist(), offsets[1:].tolist(), lengths.tolist(), strict=True):
        middle = end - response
        prompt = tuple(ids[start:middle].tolist())
        if prompt not in prompts:
            prompts[prompt] = slice(size, size := size + len(prompt))
            seen.append([prompts[prompt]])
            kept.append(torch.arange(start, middle))
        seen.append([prompts[prompt], slice(size, size := size + response)])
        kept.append(torch.arange(middle, end))
        places += [torch.arange(part.start, part.stop) for part in seen[-1]]
    return torch.cat(kept), torch.cat(places), seen


# torch 2.11 takes fewer heads of keys than of queries as they are, later ones want to be told.
_FEWER_KEY_HEADS = {"enable_gqa": True} if "enable_gqa" in inspect.signature(varlen_attn).parameters else {}


def takes_flash_attention(query: torch.Tensor) -> bool:
    """It computes in half precision alone, on a card."""
    return query.is_cuda and query.dtype in (torch.bfloat16, torch.float16)


def attend_to_segments(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: None,
    *,
    segments: Segments,
    scaling: float,
    dropout: float = 0.0,
    **ignored: Any,
) -> tuple[torch.Tensor, None]:
    """Causal attention of transformers' interface: each response sees its prompt and itself.

    A segment's last query sees all of its keys, the one before it all but one, and so on: what flash attention makes of
    a causal call with more keys than queries.

    Args:
        module: the layer.
        query: (1, heads, kept, size).
        key: (1, heads of keys, kept, size), as is the value.
        attention_mask: none; the segments say what is seen.

    Returns:
        (1, kept, heads, size).
    """
    if takes_flash_attention(query):
        query, key, value = (states[0].transpose(0, 1) for states in (query, key, value))
        key, value = key[segments.keys_at], value[segments.keys_at]
        attend_all: Callable[..., Any] = partial(varlen_attn, scale=scaling, window_size=(-1, 0))
        ends = segments.query_ends, segments.key_ends
        return attend_all(query, key, value, *ends, *segments.longest, **_FEWER_KEY_HEADS)[None], None
    times = query.shape[1] // key.shape[1]
    key, value = (states.repeat_interleave(times, dim=1) for states in (key, value))
    attend: Callable[..., torch.Tensor] = partial(scaled_dot_product_attention, dropout_p=dropout, scale=scaling)
    results = []
    for *before, own in segments.seen:
        queries = query[:, :, own]
        keys, values = (torch.cat([states[:, :, part] for part in (*before, own)], dim=2) for states in (key, value))
        if before:
            mask = query.new_ones(queries.shape[2], keys.shape[2], dtype=torch.bool).tril(
                keys.shape[2] - queries.shape[2]
            )
            results.append(attend(queries, keys, values, attn_mask=mask))
        else:
            results.append(attend(queries, keys, values, is_causal=True))
    return torch.cat(results, dim=2).transpose(1, 2).contiguous(), None


ALL_ATTENTION_FUNCTIONS.register(attend_to_segments.__name__, attend_to_segments)


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
    head = FusedLinearForPPO(chunk_size=logits_chunk(weight.shape[0], on_card=weight.is_cuda))
    kept = head(hidden[:, hidden_at], weight, shift_labels[:, log_probs_at], temperature)
    if isinstance(self.lm_head, FSDPModule) and not torch.is_grad_enabled():
        self.lm_head.reshard()  # no backward pass will
    empty = hidden.new_zeros(shift_labels.shape, dtype=torch.float32)
    log_probs, entropy = (empty.index_copy(1, log_probs_at, values.float()) for values in kept)
    return CausalLMOutputForPPO(log_probs=log_probs, entropy=entropy)
