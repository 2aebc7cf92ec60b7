"""Sampling of vLLM on a CPU: the right distribution, one draw a token, no word that cannot come."""

import pytest
import torch
from hypothesis import given, strategies as st

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.verl_plugin.cpu.sampling import keep_nucleus, sample_by_inversion


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
    p=st.lists(st.sampled_from([1e-6, 0.3, 0.8, 0.95, 1.0]), min_size=1, max_size=4),
    among=st.sampled_from([1, 4, 100]),
)
def test_the_nucleus_is_the_one_that_sorting_everything_finds(seed, words, spread, p, among):
    torch.manual_seed(seed)
    logits, p = torch.randn(len(p), words) * spread + torch.arange(words) * 1e-3, torch.tensor(p)
    kept = keep_nucleus(logits, p, among=among)
    order = logits.argsort(dim=-1, descending=True)
    probabilities = logits.double().softmax(-1).gather(-1, order)
    before = probabilities.cumsum(-1) - probabilities
    for row in range(len(p)):
        expected = order[row][(before[row] < p[row] - 1e-5) | (p[row] == 1)].tolist() or [int(order[row][0])]
        # Within float32's rounding of the sum either side of the border is right.
        allowed = order[row][(before[row] < p[row] + 1e-5) | (p[row] == 1)].tolist()
        found = kept[row].isfinite().nonzero().flatten().tolist()
        assert set(expected) <= set(found) <= set(allowed)
        assert torch.equal(kept[row][found], logits[row][found])


def test_rows_are_sampled_by_themselves():
    probabilities = torch.eye(5)
    assert sample_by_inversion(probabilities, torch.rand(5)).tolist() == [0, 1, 2, 3, 4]


def test_vllm_uses_it_for_seeded_requests_of_real_vocabularies():
    pytest.importorskip("vllm", reason="vLLM is not installed: bash run_codea1.sh setup --cpu")
    from vllm.v1.sample.ops import topk_topp_sampler as sampler

    from code_a1_recipe.verl_plugin.cpu.sampling import MIN_VOCABULARY, use_sampling_by_inversion

    original = sampler.TopKTopPSampler.forward_cpu
    try:
        use_sampling_by_inversion()
        ours = sampler.TopKTopPSampler.forward_cpu

        class Stub:
            logprobs_mode = "processed_logprobs"

        logits = torch.full((2, MIN_VOCABULARY), -1e9)
        logits[0, 7] = logits[1, 9] = 0.0
        generators = {row: torch.Generator().manual_seed(row) for row in range(2)}
        words, log_probs = ours(Stub(), logits, generators, None, None)
        assert words.tolist() == [7, 9]
        assert log_probs[0, 7] == 0
    finally:
        sampler.TopKTopPSampler.forward_cpu = original
