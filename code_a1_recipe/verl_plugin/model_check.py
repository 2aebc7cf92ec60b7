"""Whether the log-probabilities that train a model are those of the model: measured, not known by its name.

Packed rows are computed in one of several ways (``WAYS``). A way may be wrong for a model without an error: the packed
engine computes no soft caps, for example. :func:`differences` tries the ways on a small copy of a model before a run
starts, which chooses the engine. The engine of each worker repeats the comparison with the real weights.
"""

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PretrainedConfig

from .packed_rows import (
    Segments,
    attend_to_segments,
    forward_with_log_probs,
    response_positions,
    share_prompts,
)

_AutoModel: Any = AutoModelForCausalLM

MOST = 2e-4
"""Largest difference of log-probabilities in float32 that rounding may make, as a part of their standard deviation if
that is below 1. Right ways stay below 5e-5, and each wrong way that was tried exceeds 1e-3."""
_MOST_IN_HALF = 0.5
"""In half precision, where only gross errors can be seen: five times the mean difference of Qwen2.5-Coder-0.5B on the
tokens of :func:`sample_sequences`."""
_WIDTH, _FFN, _EXPERTS, _LAYERS, _VOCABULARY, _WINDOW, _CHUNK = 1024, 2048, 16, (2, 4), 256, 8, 16
_PROMPTS, _RESPONSES = (14, 9, 14), (11, 7, 9)
"""Tokens of three sequences. The first and the last one share a prompt, and each is longer than a window."""


class Way(NamedTuple):
    """A way to compute log-probabilities."""

    engine: str
    """``PACKED``: the recipe's engine, which computes a prompt once for all of its responses; ``ROWS``: verl's engine
    with packed rows; ``PADDED``: verl's engine with a padded row for each sequence."""
    attention: str
    """Value of ``attn_implementation``."""

    def __str__(self) -> str:
        return f"{self.engine} ({self.attention} attention)"


PACKED, ROWS, PADDED = "the recipe's engine", "verl's engine", "verl's engine with padded rows"
WAYS = tuple(Way(engine, kind) for engine in (PACKED, ROWS, PADDED) for kind in ("sdpa", "eager"))
WAYS = tuple(way for way in WAYS if way != Way(PACKED, "eager"))
"""All ways, the fastest first."""


def cut_down(config: PretrainedConfig) -> PretrainedConfig:
    """Make the configuration of a small model with the same kinds of layers, and windows of 8 tokens."""
    small = copy.deepcopy(config.get_text_config())
    number = small.num_hidden_layers
    types = getattr(small, "layer_types", None) or [None] * number
    chosen = {types.index(kind) for kind in set(types)}
    least, most = _LAYERS
    for layer in range(number):
        if len(chosen) < least:
            chosen.add(layer)
    layers = sorted(chosen)[:most]
    for name, value in vars(small).copy().items():
        if isinstance(value, list) and len(value) == number:
            setattr(small, name, [value[layer] for layer in layers])
    small.num_hidden_layers = len(layers)
    factor = -(-small.hidden_size // _WIDTH)
    if factor > 1:
        heads, keys = small.num_attention_heads, getattr(small, "num_key_value_heads", None)
        size = getattr(small, "head_dim", None) or small.hidden_size // heads
        groups = keys or heads
        small.num_attention_heads = max(1, groups // factor) * (heads // groups)
        if keys:
            small.num_key_value_heads = max(1, groups // factor)
        small.hidden_size = small.num_attention_heads * size
    most_of = {"vocab_size": _VOCABULARY, "sliding_window": _WINDOW, "attention_chunk_size": _WINDOW}
    most_of |= dict.fromkeys(("intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size"), _FFN)
    experts = max(_EXPERTS, getattr(small, "num_experts_per_tok", None) or 0)
    most_of |= dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), experts)
    most_of |= dict.fromkeys(("mamba_chunk_size", "chunk_size"), _CHUNK)
    most_of |= dict.fromkeys(("pad_token_id", "bos_token_id", "first_k_dense_replace"), 1)
    for name, most in most_of.items():
        value = getattr(small, name, None)
        if isinstance(value, int) and value > most:
            setattr(small, name, most)
    return small


def differences(
    config: PretrainedConfig, ways: tuple[Way, ...] = WAYS, *, trust_remote_code: bool = False
) -> Iterator[tuple[Way, float | str]]:
    """Compare the ways with a small model's own forward on each sequence alone, until one is right.

    Args:
        config: the model's.
        ways: are tried in this order.
        trust_remote_code: the model has Python code of its own, which may run.

    Yields:
        A way with its largest difference of log-probabilities, which is right up to ``MOST``, or with the reason why
        it cannot compute the model.

    Raises:
        Exception: any error of transformers, if the model cannot be cut down or has no forward in plain attention.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        options: dict[str, Any] = {"trust_remote_code": True} if trust_remote_code else {}
        model = _AutoModel.from_config(cut_down(config), attn_implementation="eager", **options).float().eval()
        for name, weight in model.named_parameters():
            if weight.dim() > 1:  # scores and logits of about 4 make caps and scales visible
                weight.normal_(0, 2 / weight.shape[-1] ** 0.5)
            elif name.endswith("bias"):
                weight.normal_(0, 0.3)
        sequences = sample_sequences(model.config.vocab_size)
        expected = plain_log_probs(model, sequences)
        unit = min(1.0, float(expected.std()))
    for way in ways:
        try:
            with torch.no_grad():
                found = _computed(model, sequences, way)
        except Exception as error:  # noqa: BLE001  # models may raise any error for inputs that they do not know
            yield way, f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
            continue
        difference = float((found - expected).abs().max()) / unit
        yield way, difference
        if difference <= MOST:
            return


def sample_sequences(vocabulary: int) -> list[tuple[Tensor, Tensor]]:
    """Return prompts and responses of random tokens, 64 in all, always the same."""
    generator = torch.Generator().manual_seed(1)
    prompts = [torch.randint(3, min(vocabulary, 256), (size,), generator=generator) for size in _PROMPTS]
    prompts[-1] = prompts[0]
    return [
        (prompt, torch.randint(3, min(vocabulary, 256), (size,), generator=generator))
        for prompt, size in zip(prompts, _RESPONSES, strict=True)
    ]


def plain_log_probs(model: Any, sequences: list[tuple[Tensor, Tensor]], *, device: Any = "cpu") -> Tensor:
    """Return the log-probabilities of all responses' tokens by the model's own forward on each sequence; (tokens,)."""
    found = []
    for prompt, response in sequences:
        ids = torch.cat([prompt, response]).to(device)
        logits = model(input_ids=ids[None], use_cache=False).logits[0, len(prompt) - 1 : -1]
        found.append(logits.float().log_softmax(-1).gather(1, ids[len(prompt) :, None])[:, 0])
    return torch.cat(found)


def most_difference(precision: torch.dtype) -> float:
    """Return the largest mean difference of log-probabilities of a right engine after loading."""
    return MOST if precision == torch.float32 else _MOST_IN_HALF


def _computed(model: Any, sequences: list[tuple[Tensor, Tensor]], way: Way) -> Tensor:
    """Return the log-probabilities of all responses' tokens, computed in one pass; (tokens,)."""
    lengths = torch.tensor([len(response) for _, response in sequences])
    totals = [len(prompt) + len(response) for prompt, response in sequences]
    ids = torch.cat([torch.cat(pair) for pair in sequences])[None]
    positions = torch.cat([torch.arange(total) for total in totals])[None]
    offsets = torch.tensor([0, *totals]).cumsum(0)
    at = response_positions(offsets, lengths)
    labels = ids.roll(-1, dims=1)
    model.config._attn_implementation = attend_to_segments.__name__ if way.engine == PACKED else way.attention
    if way.engine != PACKED:
        inputs = {"input_ids": ids, "position_ids": positions, "attention_mask": None}
        if way.engine == PADDED:
            rows = [[*torch.split(column[0], totals)] for column in (ids, positions, torch.ones_like(ids))]
            padded = [torch.nn.utils.rnn.pad_sequence(column, batch_first=True) for column in rows]
            inputs = dict(zip(("input_ids", "position_ids", "attention_mask"), padded, strict=True))
        logits = model(**inputs, use_cache=False).logits
        if way.engine == PADDED:
            logits = torch.cat([row[:total] for row, total in zip(logits, totals, strict=True)])[None]
        found: Tensor = logits[0, at].float().log_softmax(-1).gather(1, labels[0, at, None])[:, 0]
        return found
    kept, places, seen = share_prompts(ids[0], offsets, lengths)
    log_probs: Tensor = forward_with_log_probs(
        model,
        hidden_at=places[at],
        log_probs_at=at,
        shift_labels=labels,
        input_ids=ids[:, kept],
        attention_mask=None,
        segments=Segments.of(seen, device=ids.device),
        position_ids=positions[:, kept],
        use_cache=False,
    ).log_probs[0]
    return log_probs[at]
