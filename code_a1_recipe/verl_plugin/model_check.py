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

MOST = 1e-3
"""Largest difference of log-probabilities in float32 that rounding may make. Right ways stay below 1e-4, and each wrong
way that was tried exceeds 1e-2."""
_MOST_IN_HALF = 0.5
"""In half precision: five times the difference of Qwen2.5-Coder-0.5B on the tokens of :func:`sample_sequences`, 0.1."""
_WIDTH, _FFN, _EXPERTS, _LAYERS, _VOCABULARY, _WINDOW = 1024, 2048, 16, (2, 4), 256, 8
_PROMPTS, _RESPONSES = (14, 9, 14), (11, 7, 9)
"""Tokens of three sequences. The first and the last one share a prompt, and each is longer than a window."""


class Way(NamedTuple):
    """A way to compute log-probabilities."""

    is_packed: bool
    """The recipe's engine, which computes a prompt once for all of its responses; False: verl's engine."""
    attention: str
    """Value of ``attn_implementation``."""

    @property
    def engine(self) -> str:
        """Name for a user."""
        return "the recipe's engine" if self.is_packed else f"verl's engine with {self.attention} attention"


PACKED = Way(True, "sdpa")
WAYS = (PACKED, Way(False, "sdpa"), Way(False, "eager"))
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
    most_of |= dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), _EXPERTS)
    most_of |= dict.fromkeys(("pad_token_id", "bos_token_id", "first_k_dense_replace"), 1)
    for name, most in most_of.items():
        value = getattr(small, name, None)
        if isinstance(value, int) and value > most:
            setattr(small, name, most)
    return small


def differences(config: PretrainedConfig, ways: tuple[Way, ...] = WAYS) -> Iterator[tuple[Way, float | str]]:
    """Compare the ways with a small model's own forward on each sequence alone, until one is right.

    Args:
        config: the model's.
        ways: are tried in this order.

    Yields:
        A way with its largest difference of log-probabilities, which is right up to ``MOST``, or with the reason why
        it cannot compute the model.

    Raises:
        Exception: any error of transformers, if the model cannot be cut down or has no forward in plain attention.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = _AutoModel.from_config(cut_down(config), attn_implementation="eager").float().eval()
        for weight in model.parameters():
            if weight.dim() > 1:  # scores and logits of about 4 make caps and scales visible
                weight.normal_(0, 2 / weight.shape[-1] ** 0.5)
        sequences = sample_sequences(model.config.vocab_size)
        expected = plain_log_probs(model, sequences)
    for way in ways:
        try:
            with torch.no_grad():
                found = _computed(model, sequences, way)
        except Exception as error:  # noqa: BLE001  # models may raise any error for inputs that they do not know
            yield way, f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
            continue
        difference = float((found - expected).abs().max())
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
    """Return the log-probabilities of all responses' tokens, computed from one packed row; (tokens,)."""
    lengths = torch.tensor([len(response) for _, response in sequences])
    totals = [len(prompt) + len(response) for prompt, response in sequences]
    ids = torch.cat([torch.cat(pair) for pair in sequences])[None]
    positions = torch.cat([torch.arange(total) for total in totals])[None]
    offsets = torch.tensor([0, *totals]).cumsum(0)
    at = response_positions(offsets, lengths)
    labels = ids.roll(-1, dims=1)
    model.config._attn_implementation = attend_to_segments.__name__ if way.is_packed else way.attention
    if not way.is_packed:
        logits = model(ids, position_ids=positions, attention_mask=None, use_cache=False).logits[0, at]
        found: Tensor = logits.float().log_softmax(-1).gather(1, labels[0, at, None])[:, 0]
        return found
    kept, places, seen = share_prompts(ids[0], offsets, lengths)
    output: Any = forward_with_log_probs(
        model,
        hidden_at=places[at],
        log_probs_at=at,
        shift_labels=labels,
        input_ids=ids[:, kept],
        attention_mask=None,
        segments=Segments.of(seen, device=ids.device),
        position_ids=positions[:, kept],
        use_cache=False,
    )
    return output.log_probs[0, at]  # type: ignore[no-any-return]
