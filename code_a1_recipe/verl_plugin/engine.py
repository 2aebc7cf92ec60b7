"""verl's FSDP engine with packed rows, for CPUs and NVIDIA cards (through verl's ``EngineRegistry``)."""

import copy
import inspect
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed
from torch.distributed.fsdp import FSDPModule
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from verl.models.transformers.dense_common import CausalLMOutputForPPO
from verl.utils.device import get_device_name
from verl.utils.experimental.torch_functional import FusedLinearForPPO
from verl.utils.tensordict_utils import assign_non_tensor, get_non_tensor_data
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
    responses. Logits exist for responses alone, and only some at a time (``logits_chunk``). On one rank an update does
    not compute rows whose advantages are all zero: groups in which all rewards are equal. Rows that are split over
    ranks (``ulysses_sequence_parallel_size`` above 1) are computed by verl.
    """

    def _build_fsdp_module(self, module: Any) -> Any:
        if not _on_cpu():
            return super()._build_fsdp_module(module)
        # For a forward-only engine verl asks for CPUOffloadPolicy(pin_memory=True). Pinning needs an accelerator, and
        # the parameters are on the CPU already.
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
        # With determinism torch fills new memory with a value, which takes a tenth of an update. That is not needed:
        # all memory is written before it is read.
        torch.utils.deterministic.fill_uninitialized_memory = False
        module = super()._build_module()
        if self._keeps_responses_only:
            type(module).forward = forward_with_log_probs  # in place of verl's, which computes logits of all positions
            module.config._attn_implementation = attend_to_segments.__name__
        return module

    @contextmanager
    def disable_adapter(self) -> Iterator[None]:
        trained = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        with super().disable_adapter():
            # FSDP finds out in the first pass which parameters are trained. If that is a pass of the reference, PEFT
            # has marked the adapter as not trained. Its gradients would then stay in bfloat16, and be summed in it.
            for parameter in trained:
                parameter.requires_grad_()
            yield

    def forward_backward_batch(self, data: Any, loss_function: Any, forward_only: bool = False) -> Any:
        if self._keeps_responses_only and get_non_tensor_data(data, "use_dynamic_bsz", default=True):
            self._keep_groups_together(data)
        results = super().forward_backward_batch(data, loss_function, forward_only)
        if _on_cpu():
            give_back_freed_memory()
        return results

    def _keep_groups_together(self, data: Any) -> None:
        """Let verl cut a batch into micro-batches of whole groups, with a token budget that counts a prompt once.

        verl counts the prompt of a group for each response, so the budget must grow for it. It grows so far that no
        micro-batch computes more tokens than the user's budget.
        """
        rows = zip(data["input_ids"].unbind(), data["response_mask"].unbind(), strict=True)
        prompts = [ids[: len(ids) - len(mask)].tolist() for ids, mask in rows]
        size = math.gcd(*(len(list(same)) for _, same in groupby(prompts)))
        tokens = data["input_ids"].offsets().diff().view(-1, size).sum(dim=1).float()
        repeated = tokens.new_tensor([(size - 1) * len(prompt) for prompt in prompts[::size]])
        smallest_growth = (tokens / (tokens - repeated)).min()
        bounds = torch.stack((-smallest_growth, tokens.max()))
        if self.get_data_parallel_size() > 1:  # all ranks must have the same number of micro-batches
            distributed.all_reduce(bounds, distributed.ReduceOp.MAX, self.get_data_parallel_group())
        growth, longest = bounds.tolist()
        budget = max(int(-growth * data["max_token_len_per_gpu"]), int(longest))
        assign_non_tensor(data, force_group_size=size, max_token_len_per_gpu=budget)

    @contextmanager
    def _gradient_sync_context(self, *, is_last_micro_batch: bool) -> Iterator[None]:
        # verl sums gradients over ranks in the last micro-batch alone. That saves traffic between cards, but holds
        # gradients twice, and on a CPU the last micro-batch may have none.
        if _on_cpu() or self.get_data_parallel_size() == 1:
            yield
            return
        with super()._gradient_sync_context(is_last_micro_batch=is_last_micro_batch):
            yield

    def forward_step(self, micro_batch: Any, loss_function: Any, forward_only: bool) -> Any:
        if forward_only:
            return super().forward_step(micro_batch, loss_function, forward_only)
        learns = self.get_data_parallel_size() > 1 or not has_no_gradient(loss_function, micro_batch)
        if takes_own := get_non_tensor_data(micro_batch, own_log_probs.FLAG, default=False):
            keeps_entropy = get_non_tensor_data(micro_batch, "calculate_entropy", default=False)
            assign_non_tensor(micro_batch, calculate_entropy=True)
            loss_function = partial(own_log_probs.loss_with_own_log_probs, loss_function, keeps_entropy=keeps_entropy)
        if learns:
            return super().forward_step(micro_batch, loss_function, forward_only)
        metrics = {}
        if takes_own:  # metrics like the entropy count all rows, also those that train nothing
            with torch.no_grad():
                _, output = super().forward_step(micro_batch, loss_function, forward_only)
            sums = output["metrics"].items()
            metrics = {name: value for name, value in sums if name.startswith(own_log_probs.PREFIX)}
        return torch.zeros((), requires_grad=True), {"loss": 0.0, "metrics": metrics}

    def optimizer_step(self) -> Any:
        for parameter in self.module.parameters():
            if parameter.requires_grad and parameter.grad is None:
                # AdamW skips a parameter without a gradient, while its momentum should still move it.
                parameter.grad = torch.zeros_like(parameter)
        norm = super().optimizer_step()
        self.optimizer.zero_grad()  # verl does so only before its next update, and the other policy needs the memory
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
    """Whether the loss of these rows is constant: it is verl's clipped PPO loss alone, and all advantages are 0."""
    if getattr(loss_function, "func", None) is not ppo_loss:
        return False
    actor = loss_function.keywords["config"]
    if actor.use_kl_loss or actor.entropy_coeff or actor.policy_loss.get("loss_mode", "vanilla") != "vanilla":
        return False
    return not micro_batch["advantages"].values().any()


Seen = list[list[slice]]
"""For each segment the parts of a row that it attends to: its prompt if it is a response, and then itself."""


class Segments(NamedTuple):
    """The segments of a packed row that holds each prompt once: its prompts and responses, in their order."""

    seen: Seen
    query_ends: Tensor
    """0 and the end of each segment in the row; int32, (segments + 1,)."""
    key_ends: Tensor
    """0 and the end of each segment's keys in ``keys_at``; int32, (segments + 1,)."""
    keys_at: Tensor
    """Positions in the row of the keys of all segments, one segment after the other."""
    longest: tuple[int, int]
    """Largest number of tokens of a segment, and of keys of a segment."""

    @classmethod
    def of(cls, seen: Seen, *, device: torch.device) -> "Segments":
        """Make segments whose tensors are on ``device``."""
        spans = [[torch.arange(part.start, part.stop) for part in parts] for parts in seen]
        queries = [len(parts[-1]) for parts in spans]
        keys = [sum(map(len, parts)) for parts in spans]
        query_ends, key_ends = (
            torch.tensor([0, *accumulate(sizes)], dtype=torch.int32, device=device) for sizes in (queries, keys)
        )
        keys_at = torch.cat([span for parts in spans for span in parts]).to(device)
        return cls(seen, query_ends, key_ends, keys_at, (max(queries), max(keys)))


def share_prompts(ids: Tensor, offsets: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Seen]:
    """Drop every repeated prompt from a packed row.

    Args:
        ids: tokens of all sequences; (tokens,).
        offsets: the start of each sequence, and the end of the last one; (sequences + 1,).
        lengths: the number of tokens of each sequence's response, which ends the sequence; (sequences,).

    Returns:
        Positions of the row that are kept, (kept,); for each position of the row its index among the kept positions,
        (tokens,); the parts that each segment attends to, as in ``Segments``.
    """
    prompts: dict[tuple[int, ...], slice] = {}
    kept, places, size = [], [], 0
    seen: Seen = []
    for (start, end), response in zip(pairwise(offsets.tolist()), lengths.tolist(), strict=True):
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


# Keys may have fewer heads than queries. torch 2.11 accepts that, while later releases need an argument for it.
_FEWER_KEY_HEADS = {"enable_gqa": True} if "enable_gqa" in inspect.signature(varlen_attn).parameters else {}


def takes_flash_attention(query: Tensor) -> bool:
    """Whether flash attention can compute this: it takes half precision on a card alone."""
    return query.is_cuda and query.dtype in (torch.bfloat16, torch.float16)


def attend_to_segments(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: None,
    *,
    segments: Segments,
    scaling: float,
    dropout: float = 0.0,
    **ignored: Any,
) -> tuple[Tensor, None]:
    """Compute causal attention, through transformers' interface: each response sees its prompt and itself.

    The last query of a segment sees all keys of the segment, the query before it all except the last, and so on. Flash
    attention does the same in a causal call with more keys than queries.

    Args:
        module: the layer.
        query: (1, heads, kept, size).
        key: (1, heads of keys, kept, size).
        value: has the shape of ``key``.
        attention_mask: None, since the segments take its place.
        segments: the parts that each segment sees.
        scaling: factor of the scores.
        dropout: rate, in [0, 1).
        ignored: further arguments of transformers' interface.

    Returns:
        (1, kept, heads, size), and None in place of attention weights.
    """
    if takes_flash_attention(query):
        query, key, value = (states[0].transpose(0, 1) for states in (query, key, value))
        key, value = key[segments.keys_at], value[segments.keys_at]
        attend_all: Callable[..., Any] = partial(varlen_attn, scale=scaling, window_size=(-1, 0))
        ends = segments.query_ends, segments.key_ends
        return attend_all(query, key, value, *ends, *segments.longest, **_FEWER_KEY_HEADS)[None], None
    times = query.shape[1] // key.shape[1]
    key, value = (states.repeat_interleave(times, dim=1) for states in (key, value))
    attend: Callable[..., Tensor] = partial(scaled_dot_product_attention, dropout_p=dropout, scale=scaling)
    results = []
    for parts in segments.seen:
        queries = query[:, :, parts[-1]]
        keys, values = (torch.cat([states[:, :, part] for part in parts], dim=2) for states in (key, value))
        num_queries, num_keys = queries.shape[2], keys.shape[2]
        if num_keys == num_queries:
            results.append(attend(queries, keys, values, is_causal=True))
        else:
            mask = query.new_ones(num_queries, num_keys, dtype=torch.bool).tril(num_keys - num_queries)
            results.append(attend(queries, keys, values, attn_mask=mask))
    return torch.cat(results, dim=2).transpose(1, 2).contiguous(), None


ALL_ATTENTION_FUNCTIONS.register(attend_to_segments.__name__, attend_to_segments)


def response_positions(offsets: Tensor, lengths: Tensor) -> Tensor:
    """Return the positions in a packed row before each token of a response. verl reads log-probabilities there.

    Args:
        offsets, lengths: as in :func:`share_prompts`.

    Returns:
        (responses' tokens,).
    """
    ends = zip(offsets[1:].tolist(), lengths.tolist(), strict=True)
    return torch.cat([torch.arange(end - length - 1, end - 1) for end, length in ends])


def forward_with_log_probs(
    self: Any,
    *,
    hidden_at: Tensor,
    log_probs_at: Tensor,
    shift_labels: Tensor,
    temperature: float = 1.0,
    return_dict: bool = True,
    **inputs: Any,
) -> CausalLMOutputForPPO:
    """Replace the forward of a causal language model: return log-probabilities and entropies, not logits.

    Args:
        self: the model.
        hidden_at: positions among the computed tokens whose next token is a response's; (responses' tokens,).
        log_probs_at: the same positions in the result; (responses' tokens,). All others get 0.
        shift_labels: the token after each position, (1, tokens).
        temperature: divides the logits.
        return_dict: for the model below the head, as all further ``inputs``.

    Returns:
        ``log_probs`` and ``entropy`` in float32, each (1, tokens).
    """
    hidden = self.get_decoder()(return_dict=return_dict, **inputs)[0]
    if isinstance(self.lm_head, FSDPModule):  # it is sharded by itself if it shares no weight with the embedding
        self.lm_head.unshard()
    weight = self.lm_head.weight
    head = FusedLinearForPPO(chunk_size=logits_chunk(weight.shape[0], on_card=weight.is_cuda))
    kept = head(hidden[:, hidden_at], weight, shift_labels[:, log_probs_at], temperature)
    if isinstance(self.lm_head, FSDPModule) and not torch.is_grad_enabled():
        self.lm_head.reshard()  # with gradients the backward pass does so
    empty = hidden.new_zeros(shift_labels.shape, dtype=torch.float32)
    log_probs, entropy = (empty.index_copy(1, log_probs_at, values.float()) for values in kept)
    return CausalLMOutputForPPO(log_probs=log_probs, entropy=entropy)
