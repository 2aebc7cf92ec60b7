"""Fast sampling for vLLM on a CPU, where vLLM's own sampling can take most of the time."""

from typing import Any

import torch
from torch import Tensor

MIN_VOCABULARY = 4096
"""Smallest vocabulary for :func:`sample_by_inversion`. With a smaller vocabulary, vLLM's own sampling costs almost
nothing."""

_AMONG = 1024
"""Number of likeliest words that top-k and top-p look at first."""


class InversionSampling:
    """Worker extension of vLLM (``worker_extension_cls``) that turns fast sampling on in the engine's process."""

    def __new__(cls, **kwargs: Any) -> "InversionSampling":
        use_sampling_by_inversion()
        return super().__new__(cls)


def use_sampling_by_inversion() -> None:
    """Let vLLM draw one random number for each token of a seeded request.

    By default vLLM draws a number for each word of the vocabulary, which takes a third of vLLM's time.
    """
    from vllm.v1.sample.ops import topk_topp_sampler as sampler

    original = sampler.TopKTopPSampler.forward_cpu

    def forward(
        self: Any,
        logits: Tensor,
        generators: dict[int, torch.Generator],
        k: Tensor | None,
        p: Tensor | None,
    ) -> Any:
        num_rows, num_words = logits.shape
        if len(generators) != num_rows or num_words < MIN_VOCABULARY:
            return original(self, logits, generators, k, p)
        logits = keep_likeliest(logits, k, p)
        log_probs = logits.log_softmax(dim=-1, dtype=torch.float32)
        results = {"processed_logits": logits, "processed_logprobs": log_probs}
        # Each request has its own generator, so its token does not depend on the other requests of the batch.
        draws = [torch.rand((), generator=generators[row]) for row in range(num_rows)]
        probabilities = log_probs.exp()  # (rows, words)
        words = sample_by_inversion(probabilities, torch.stack(draws))
        return words, results.get(self.logprobs_mode)

    sampler.TopKTopPSampler.forward_cpu = forward  # type: ignore[method-assign]


def keep_likeliest(
    logits: Tensor,
    k: Tensor | None,
    p: Tensor | None,
    *,
    among: int = _AMONG,
) -> Tensor:
    """Keep the top-k words, and of these the nucleus (top-p): the fewest likely words that together reach ``p``.

    vLLM sorts the whole vocabulary for each token, which takes longer than a pass of a model of half a billion
    parameters. This function sorts a row only if the ``among`` likeliest words do not decide which words are kept.
    Source: arXiv 1904.09751.

    Args:
        logits: (rows, words).
        k: (rows,), at least 1. If ``k`` is the number of all words, the row keeps all words. With None all rows keep
            all words.
        p: (rows,), above 0 and at most 1. A row with 1 keeps all words. With None all rows keep all words.
        among: number of likeliest words that are looked at first.

    Returns:
        (rows, words): logits of the kept words, and -inf for the others. A row keeps at least one word.
    """
    num_rows, num_words = logits.shape
    k = torch.full((num_rows,), num_words) if k is None else k.long()
    p = torch.ones(num_rows) if p is None else p
    limit = k.unsqueeze(-1)  # (rows, 1)
    mass = p.unsqueeze(-1)  # (rows, 1)
    is_cut = (limit < num_words) | (mass < 1)
    kept = torch.where(is_cut, -torch.inf, logits)  # (rows, words)
    undecided = is_cut.nonzero()[:, 0]
    # The first round looks at the likeliest words only. The second round sorts the rows that are still undecided.
    few = min(among, num_words)
    for count in dict.fromkeys((few, num_words)):
        if not len(undecided):
            break
        row_logits = logits[undecided]  # (undecided, words)
        row_limit = limit[undecided]
        row_mass = mass[undecided]
        has_nucleus = row_mass < 1
        values, words = row_logits.topk(count, dim=-1)  # (undecided, count)
        is_beyond_k = torch.arange(count) >= row_limit
        values = values.masked_fill(is_beyond_k, -torch.inf)
        # The nucleus is a share of the total probability of the top-k words. If k is above ``count``, the total of the
        # top-k words is unknown, and the total of all words is an upper bound.
        has_limit = row_limit <= count
        total_of_k = values.logsumexp(-1, keepdim=True)
        total_of_all = row_logits.logsumexp(-1, keepdim=True)
        total = torch.where(has_limit, total_of_k, total_of_all)
        probabilities = (values - total).exp()
        reached = probabilities.cumsum(dim=-1)
        is_beyond_p = reached - probabilities >= row_mass
        values = values.masked_fill(is_beyond_p & has_nucleus, -torch.inf)
        reached_in_all = reached[:, -1:]
        reaches_p = (reached_in_all >= row_mass) & has_nucleus
        is_whole = count == num_words
        is_decided = (has_limit | reaches_p | is_whole).squeeze(-1)
        rows = undecided[is_decided]
        decided_words, decided_values = words[is_decided], values[is_decided]
        kept[rows] = kept[rows].scatter(-1, decided_words, decided_values)
        undecided = undecided[~is_decided]
    return kept


def sample_by_inversion(probabilities: Tensor, draws: Tensor) -> Tensor:
    """Sample for each row the word at which the cumulated probabilities pass the draw (inverse transform sampling).

    Args:
        probabilities: (rows, words), at least 0. A row need not sum to 1.
        draws: (rows,), uniform in [0, 1).

    Returns:
        (rows,): indices of words. A word with probability 0 is never sampled.
    """
    cumulated = probabilities.cumsum(dim=-1, dtype=torch.float64)
    totals = cumulated[:, -1:]
    targets = draws.double().unsqueeze(-1) * totals
    words = torch.searchsorted(cumulated, targets, right=True)  # (rows, 1)
    last_word = probabilities.shape[1] - 1
    return words.squeeze(-1).clamp(max=last_word)
