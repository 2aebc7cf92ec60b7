"""Packed rows that hold each prompt once: their segments, positions, attention and log-probabilities."""

import inspect
from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from verl.models.transformers.dense_common import CausalLMOutputForPPO
from verl.utils.experimental.torch_functional import FusedLinearForPPO

from .cpu.environment import logits_chunk

Seen = list[list[slice]]
"""For each segment, the parts of a row to which the segment attends. A response attends first to its prompt and then to
itself. A prompt attends only to itself."""


class Segments(NamedTuple):
    """The prompts and responses of a packed row, in their order. The row holds each prompt once."""

    seen: Seen
    """Empty where flash attention computes all segments in one call and needs no parts (on a card, in half precision).
    FSDP walks through all arguments at each layer, which takes milliseconds for many segments."""
    query_ends: Tensor
    """0, and then the end of each segment in the row; int32, (segments + 1,)."""
    key_ends: Tensor
    """0, and then the end of each segment's keys in ``keys_at``; int32, (segments + 1,)."""
    keys_at: Tensor
    """Positions of each segment's keys in the row, one segment after the other; (keys,)."""
    longest: tuple[int, int]
    """Largest numbers of tokens and of keys in a segment."""

    @classmethod
    def of(cls, seen: Seen, *, device: torch.device, at_once: bool = False) -> "Segments":
        """Make segments whose tensors are on ``device``; with ``at_once`` for flash attention."""

        def ends(sizes: list[int]) -> Tensor:
            return torch.tensor([0, *accumulate(sizes)], dtype=torch.int32, device=device)

        num_queries = []
        num_keys = []
        keys_at = []
        for parts in seen:
            positions = [_positions(part) for part in parts]
            num_queries.append(len(positions[-1]))
            num_keys.append(sum(map(len, positions)))
            keys_at += positions
        return cls(
            seen=[] if at_once else seen,
            query_ends=ends(num_queries),
            key_ends=ends(num_keys),
            keys_at=torch.cat(keys_at).to(device),
            longest=(max(num_queries), max(num_keys)),
        )


def _positions(part: slice) -> Tensor:
    return torch.arange(part.start, part.stop)


def share_prompts(ids: Tensor, offsets: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Seen]:
    """Drop every repeated prompt from a packed row.

    Args:
        ids: tokens of all sequences; (tokens,).
        offsets: the start of each sequence, and the end of the last one; (sequences + 1,).
        lengths: the number of tokens in the response at the end of each sequence; (sequences,).

    Returns:
        The kept positions of the row, (kept,); for each position of the row, its index among the kept positions,
        (tokens,); for each segment, the parts to which it attends, as in ``Segments``.
    """
    prompts: dict[tuple[int, ...], slice] = {}  # the place of each prompt among the kept positions
    kept = []
    places = []
    seen: Seen = []
    size = 0

    def keep(start: int, end: int) -> slice:
        """Keep positions of the row, and return their place among all kept positions."""
        nonlocal size
        kept.append(torch.arange(start, end))
        place = slice(size, size + end - start)
        size = place.stop
        return place

    bounds = pairwise(offsets.tolist())
    for (start, end), response in zip(bounds, lengths.tolist(), strict=True):
        middle = end - response
        prompt = tuple(ids[start:middle].tolist())
        if prompt not in prompts:
            prompts[prompt] = keep(start, middle)
            seen.append([prompts[prompt]])
        parts = [prompts[prompt], keep(middle, end)]
        seen.append(parts)
        places += [_positions(part) for part in parts]
    return torch.cat(kept), torch.cat(places), seen


# Keys may have fewer heads than queries. torch 2.11 accepts fewer heads, and later releases need an argument for them.
_FEWER_KEY_HEADS: dict[str, bool] = {}
if "enable_gqa" in inspect.signature(varlen_attn).parameters:
    _FEWER_KEY_HEADS["enable_gqa"] = True


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
    sliding_window: int | None = None,
    **ignored: Any,
) -> tuple[Tensor, None]:
    """Compute causal attention, with the interface of transformers. Each response sees its prompt and itself.

    The last query of a segment sees all keys of the segment, the query before it all keys except the last, and so on.
    Flash attention does the same in a causal call with more keys than queries.

    Args:
        module: the layer.
        query: (1, heads, kept, size).
        key: (1, heads of keys, kept, size).
        value: has the shape of ``key``.
        attention_mask: None, since the segments take its place.
        segments: the parts that each segment sees.
        scaling: factor of the scores.
        dropout: rate, in [0, 1).
        sliding_window: number of keys that a query sees, its own included; None: all.
        ignored: further arguments of transformers' interface. A model whose result depends on one of them, such as a
            soft cap, fails the check of :mod:`.model_check`.

    Returns:
        (1, kept, heads, size), and None in place of attention weights.
    """
    if not segments.seen:
        window = sliding_window or 0
        return _attend_at_once(query, key, value, segments=segments, scaling=scaling, window=window), None
    times = query.shape[1] // key.shape[1]
    key = key.repeat_interleave(times, dim=1)  # (1, heads, kept, size)
    value = value.repeat_interleave(times, dim=1)
    attend: Callable[..., Tensor] = partial(
        scaled_dot_product_attention,
        dropout_p=dropout,
        scale=scaling,
    )
    results = []
    for parts in segments.seen:
        queries = query[:, :, parts[-1]]
        keys = torch.cat([key[:, :, part] for part in parts], dim=2)
        values = torch.cat([value[:, :, part] for part in parts], dim=2)
        num_queries, num_keys = queries.shape[2], keys.shape[2]
        first = num_keys - num_queries  # position of the first query among the keys
        window = sliding_window or num_keys
        if not first and num_keys <= window:
            result = attend(queries, keys, values, is_causal=True)
        else:
            all_pairs = query.new_ones(num_queries, num_keys, dtype=torch.bool)
            mask = all_pairs.tril(first).triu(first - window + 1)
            result = attend(queries, keys, values, attn_mask=mask)
        results.append(result)
    attended = torch.cat(results, dim=2)  # (1, heads, kept, size)
    return attended.transpose(1, 2).contiguous(), None


def _attend_at_once(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    segments: Segments,
    scaling: float,
    window: int,
) -> Tensor:
    """Compute the attention of all segments in one call of flash attention.

    Args and result are those of :func:`attend_to_segments`.
    """
    # Positions are applied to queries and keys, which may have made them float32. Flash attention refuses float32.
    queries = query[0].transpose(0, 1).to(value.dtype)  # (kept, heads, size)
    keys = key[0].transpose(0, 1).to(value.dtype)  # (kept, heads of keys, size)
    values = value[0].transpose(0, 1)
    attend: Callable[..., Any] = partial(varlen_attn, scale=scaling, window_size=(window - 1, 0))
    attended: Tensor = attend(
        queries,
        keys[segments.keys_at],
        values[segments.keys_at],
        segments.query_ends,
        segments.key_ends,
        *segments.longest,
        **_FEWER_KEY_HEADS,
    )
    return attended[None]


ALL_ATTENTION_FUNCTIONS.register(attend_to_segments.__name__, attend_to_segments)


def response_positions(offsets: Tensor, lengths: Tensor) -> Tensor:
    """Return the position before each token of a response in a packed row. verl reads the log-probabilities there.

    Args:
        offsets, lengths: as in :func:`share_prompts`.

    Returns:
        (responses' tokens,).
    """
    positions = []
    ends = offsets[1:].tolist()
    for end, length in zip(ends, lengths.tolist(), strict=True):
        start = end - length
        positions.append(torch.arange(start - 1, end - 1))
    return torch.cat(positions)


def forward_with_log_probs(
    self: Any,
    *,
    hidden_at: Tensor,
    log_probs_at: Tensor,
    shift_labels: Tensor,
    temperature: float = 1.0,
    return_dict: bool = True,
    **inputs: Any,
) -> Any:
    """Compute log-probabilities and entropies of a causal language model, not logits.

    Args:
        self: the model.
        hidden_at: among the computed tokens, the position before each token of a response; (responses' tokens,).
        log_probs_at: in the result, the position before each token of a response; (responses' tokens,). All other
            positions get 0.
        shift_labels: the token after each position, (1, tokens).
        temperature: divides the logits.
        return_dict: is passed on to the model below the head, like all further ``inputs``.

    Returns:
        verl's output, with ``log_probs`` and ``entropy`` in float32, each (1, tokens).
    """
    hidden = self.get_decoder()(return_dict=return_dict, **inputs)[0]  # (1, computed tokens, hidden size)
    # FSDP shards the head separately if the head shares no weight with the embedding.
    is_sharded = isinstance(self.lm_head, FSDPModule)
    if is_sharded:
        self.lm_head.unshard()
    weight = self.lm_head.weight  # (vocabulary, hidden size)
    chunk_size = logits_chunk(weight.shape[0], on_card=weight.is_cuda)
    head = FusedLinearForPPO(chunk_size=chunk_size)
    hidden_before = hidden[:, hidden_at]  # (1, responses' tokens, hidden size)
    labels = shift_labels[:, log_probs_at]  # (1, responses' tokens)
    log_probs, entropy = head(hidden_before, weight, labels, temperature)
    if is_sharded and not torch.is_grad_enabled():
        self.lm_head.reshard()  # with gradients the backward pass reshards the head
    empty = hidden.new_zeros(shift_labels.shape, dtype=torch.float32)  # (1, tokens)
    return CausalLMOutputForPPO(
        log_probs=empty.index_copy(1, log_probs_at, log_probs.float()),
        entropy=empty.index_copy(1, log_probs_at, entropy.float()),
    )
