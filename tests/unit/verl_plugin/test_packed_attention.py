"""Attention without flash-attn: right for packed rows where there is no mask, as verl calls a model; wrong with one."""

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

LENGTHS = (7, 5)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    config = Qwen2Config(
        vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, attn_implementation="sdpa",
    )  # fmt: skip
    return Qwen2ForCausalLM(config).eval()


def differences(model, mask):
    """Largest difference between each sequence's logits in one packed row and alone."""
    rows = [torch.randint(0, 50, (1, length), generator=torch.Generator().manual_seed(length)) for length in LENGTHS]
    positions = torch.cat([torch.arange(length) for length in LENGTHS])[None]
    with torch.no_grad():
        packed = model(input_ids=torch.cat(rows, dim=1), position_ids=positions, attention_mask=mask, use_cache=False)
        alone = [model(input_ids=row, use_cache=False).logits for row in rows]
    parts = packed.logits.split(LENGTHS, dim=1)
    return [float((part - one).abs().max()) for part, one in zip(parts, alone, strict=True)]


def test_packed_sequences_do_not_see_one_another_without_a_mask(model):
    assert max(differences(model, None)) < 1e-5


def test_with_a_mask_of_ones_the_second_sees_the_first(model):
    """The reason why ``attn_implementation=sdpa`` is safe for verl's calls alone: they pass None."""
    first, second = differences(model, torch.ones(1, sum(LENGTHS), dtype=torch.long))
    assert first < 1e-5
    assert second > 1e-3


def test_verl_passes_no_mask_with_packed_rows():
    import inspect

    from verl.workers.engine.fsdp import transformer_impl

    assert '"attention_mask": None' in inspect.getsource(transformer_impl)
