"""Sampling of vLLM on a CPU that is not the most of its work."""

from typing import Any

import torch

MIN_VOCABULARY = 4096
"""Of the models that sample by :func:`sample_by_inversion`. With the tiny models' words vLLM's way costs nothing."""

_NUCLEUS = 1024
"""Words among which top-p is looked for first."""


class InversionSampling:
    """Worker extension of vLLM (``worker_extension_cls``) that uses it in the process of the engine."""

    def __new__(cls, **kwargs: Any) -> "InversionSampling":
        use_sampling_by_inversion()
        return super().__new__(cls)


def use_sampling_by_inversion() -> None:
    """Let vLLM draw one random number a token of a seeded request, not one a word: those take a third of its time."""
    from vllm.v1.sample.ops import topk_topp_sampler as sampler

    original = sampler.TopKTopPSampler.forward_cpu

    def forward(self: Any, logits: torch.Tensor, generators: dict[int, torch.Generator], k: Any, p: Any) -> Any:
        if len(generators) != logits.shape[0] or logits.shape[1] < MIN_VOCABULARY:
            return original(self, logits, generators, k, p)
        logits = keep_nucleus(logits, p) if p is not None and k is None else sampler.apply_top_k_top_p(logits, k, p)
        log_probs = logits.log_softmax(dim=-1, dtype=torch.float32)
        returned = {"processed_logits": logits, "processed_logprobs": log_probs}.get(self.logprobs_mode)
        draws = torch.stack([torch.rand((), generator=generators[row]) for row in range(len(generators))])
        return sample_by_inversion(log_probs.exp(), draws), returned

    sampler.TopKTopPSampler.forward_cpu = forward  # type: ignore[method-assign]


def keep_nucleus(logits: torch.Tensor, p: torch.Tensor, *, among: int = _NUCLEUS) -> torch.Tensor:
    """Top-p (nucleus) sampling of Holtzman et al., arXiv 1904.09751: the fewest likeliest words that reach ``p`` stay.

    vLLM sorts the whole vocabulary for each token, which takes longer than a pass of a model of half a billion
    parameters. Here a row is sorted only where its ``among`` likeliest words do not reach ``p``.

    Args:
        logits: (rows, words).
        p: (rows,), above 0 and at most 1; 1 keeps all words.

    Returns:
        (rows, words): the others are -inf. At least one word of a row stays.
    """
    cut = torch.where(p.unsqueeze(-1) < 1, -torch.inf, logits)
    sums = logits.logsumexp(dim=-1, keepdim=True)
    rows = (p < 1).nonzero().squeeze(-1)
    for count in dict.fromkeys((min(among, logits.shape[1]), logits.shape[1])):
        values, words = logits[rows].topk(count, dim=-1)
        probabilities = (values - sums[rows]).exp()
        reached = probabilities.cumsum(dim=-1)
        wanted = p[rows].unsqueeze(-1)
        values = values.masked_fill(reached - probabilities >= wanted, -torch.inf)
        is_found = (reached[:, -1:] >= wanted).squeeze(-1) | (count == logits.shape[1])
        cut[rows[is_found]] = cut[rows[is_found]].scatter(-1, words[is_found], values[is_found])
        rows = rows[~is_found]
    return cut


def sample_by_inversion(probabilities: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """The word at which each row's cumulated probabilities pass its draw (inverse transform sampling).

    Args:
        probabilities: (rows, words), at least 0; each row's sum is taken as 1.
        draws: (rows,), uniform in [0, 1).

    Returns:
        (rows,) indices of words; never one whose probability is 0.
    """
    cumulated = probabilities.cumsum(dim=-1, dtype=torch.float64)
    targets = draws.double().unsqueeze(-1) * cumulated[:, -1:]
    return torch.searchsorted(cumulated, targets, right=True).squeeze(-1).clamp(max=probabilities.shape[1] - 1)
