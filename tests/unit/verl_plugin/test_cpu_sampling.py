"""Sampling of vLLM on a CPU: the right distribution, one draw a token, no word that cannot come."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, strategies as st

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.verl_plugin.cpu.sampling import (
    MIN_VOCABULARY,
    keep_likeliest,
    sample_by_inversion,
    use_sampling_by_inversion,
)


def test_a_grid_of_draws_meets_each_word_as_often_as_its_probability_says():
    probabilities = torch.tensor([0.0, 0.125, 0.5, 0.0, 0.25, 0.125, 0.0])
    draws = torch.arange(8000) / 8000
    words = sample_by_inversion(probabilities.expand(8000, -1), draws)
    assert (words.bincount(minlength=7) / 8000).tolist() == probabilities.tolist()


@given(
    weights=st.lists(st.floats(0, 1), min_size=1, max_size=40).filter(lambda row: sum(row) > 1e-6),
    draw=st.floats(0, 1, exclude_max=True, width=32),
)
def test_a_word_without_probability_never_comes(weights, draw):
    probabilities = torch.tensor([weights], dtype=torch.float32)
    word = sample_by_inversion(probabilities / probabilities.sum(), torch.tensor([draw]))
    assert probabilities[0, word] > 0


@given(
    seed=st.integers(0, 1000),
    words=st.integers(1, 60),
    spread=st.sampled_from([0.0, 0.5, 3.0, 30.0]),
    asked=st.lists(
        st.tuples(st.sampled_from([1, 3, 60]), st.sampled_from([1e-6, 0.3, 0.8, 0.95, 1.0])), min_size=1, max_size=4
    ),
    among=st.sampled_from([1, 4, 100]),
)
def test_the_words_that_stay_are_those_that_sorting_everything_finds(seed, words, spread, asked, among):
    torch.manual_seed(seed)
    logits = torch.randn(len(asked), words) * spread + torch.arange(words) * 1e-3
    limits = torch.tensor([min(k, words) for k, _ in asked])
    masses = torch.tensor([p for _, p in asked])
    kept = keep_likeliest(logits, limits, masses, among=among)
    for row, (k, p) in enumerate(asked):
        order = logits[row].argsort(descending=True)[:k]
        probabilities = logits[row][order].double().softmax(-1)
        before = probabilities.cumsum(-1) - probabilities
        # Within float32's rounding of the sum either side of the border is right.
        least, most = (set(order[(before < p + slack) | (p == 1)].tolist()) for slack in (-1e-5, 1e-5))
        found = kept[row].isfinite().nonzero().flatten().tolist()
        assert (least or {int(order[0])}) <= set(found) <= most
        assert torch.equal(kept[row][found], logits[row][found])


def test_without_limits_all_words_stay():
    logits = torch.randn(3, 9)
    assert torch.equal(keep_likeliest(logits, None, None), logits)


def test_rows_are_sampled_by_themselves():
    probabilities = torch.eye(5)
    assert sample_by_inversion(probabilities, torch.rand(5)).tolist() == [0, 1, 2, 3, 4]


def test_vllm_uses_it_for_seeded_requests_of_real_vocabularies(monkeypatch):
    pytest.importorskip("vllm", reason="vLLM is not installed: bash run_codea1.sh setup --cpu")
    from vllm.v1.sample.ops.topk_topp_sampler import TopKTopPSampler

    monkeypatch.setattr(TopKTopPSampler, "forward_cpu", TopKTopPSampler.forward_cpu)  # the call below replaces it
    use_sampling_by_inversion()
    logits = torch.full((2, MIN_VOCABULARY), -1e9)
    logits[0, 7] = logits[1, 9] = 0.0
    generators = {row: torch.Generator().manual_seed(row) for row in range(2)}
    sampler = SimpleNamespace(logprobs_mode="processed_logprobs")
    words, log_probs = TopKTopPSampler.forward_cpu(sampler, logits, generators, None, None)
    assert words.tolist() == [7, 9]
    assert log_probs[0, 7] == 0
