"""Sampling of vLLM on a CPU that is not the most of its work."""

from typing import Any

import torch

MIN_VOCABULARY = 4096
"""Of the models that sample by :func:`sample_by_inversion`. With the tiny models' words vLLM's way costs nothing."""

_AMONG = 1024
"""Likeliest words that top-k and top-p look at first."""


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
        logits = keep_likeliest(logits, k, p)
        log_probs = logits.log_softmax(dim=-1, dtype=torch.float32)
        returned = {"processed_logits": logits, "processed_logprobs": log_probs}.get(self.logprobs_mode)
        # Each request's own generator decides its token, whatever else is in the batch.
        draws = [torch.rand((), generator=generators[row]) for row in range(len(generators))]
        return sample_by_inversion(log_probs.exp(), torch.stack(draws)), returned

    sampler.TopKTopPSampler.forward_cpu = forward  # type: ignore[method-assign]


def keep_likeliest(
    logits: torch.Tensor,
    k: torch.Tensor | None,
    p: torch.Tensor | None,
    *,
    among: int = _AMONG,
) -> torch.Tensor:
    """Top-k, and of those the nucleus (top-p): the fewest likeliest words that reach ``p`` (arXiv 1904.09751).

    vLLM sorts the whole vocabulary for each token, which takes longer than a pass of a model of half a billion
    parameters. Here that is done only for a row whose ``among`` likeliest words do not decide it.

    Args:
        logits: (rows, words).
        k: (rows,), at least 1; the number of words keeps all. None: all.
        p: (rows,), above 0 and at most 1; 1 keeps all. None: all.

    Returns:
        (rows, words): the others are -inf. At least one word of a row stays.
    """
    num_words = logits.shape[1]
    limit = torch.full((len(logits), 1), num_words) if k is None else k.long().unsqueeze(-1)
    mass = torch.ones(len(logits), 1) if p is None else p.unsqueeze(-1)
    is_cut = (limit < num_words) | (mass < 1)
    kept = torch.where(is_cut, -torch.inf, logits)
    rows = is_cut.nonzero()[:, 0]
    # First among few words; a row that these do not decide is sorted whole.
    for count in dict.fromkeys((min(among, num_words), num_words)):
        if not len(rows):
            break
        row_logits, row_limit, row_mass = logits[rows], limit[rows], mass[rows]
        has_nucleus = row_mass < 1
        values, words = row_logits.topk(count, dim=-1)
        is_beyond_k = torch.arange(count) >= row_limit
        values = values.masked_fill(is_beyond_k, -torch.inf)
        # The nucleus is a share of what top-k has left, which is known here only where k is at most ``count``.
        has_limit = row_limit <= count
        total = torch.where(has_limit, values.logsumexp(-1, keepdim=True), row_logits.logsumexp(-1, keepdim=True))
        probabilities = (values - total).exp()
        reached = probabilities.cumsum(dim=-1)
        is_beyond_p = reached - probabilities >= row_mass
        values = values.masked_fill(is_beyond_p & has_nucleus, -torch.inf)
        reaches_p = (reached[:, -1:] >= row_mass) & has_nucleus
        is_found = (has_limit | reaches_p | (count == num_words)).squeeze(-1)
        decided = rows[is_found]
        kept[decided] = kept[decided].scatter(-1, words[is_found], values[is_found])
        rows = rows[~is_found]
    return kept


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
    return (
        torch.searchsorted(
            cumulated,
            targets,
            right=True,
        )
        .squeeze(-1)
        .clamp(max=probabilities.shape[1] - 1)
    )
