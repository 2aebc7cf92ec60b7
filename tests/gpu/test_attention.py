"""The packed engine's attention on a card: equal to the plain way within bfloat16's rounding, and how much faster."""

import pytest
import torch

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.verl_plugin.engine import (
    Segments,
    attend_to_segments,
    share_prompts,
    takes_flash_attention,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no NVIDIA GPU here"),
]

HEADS = [(14, 2, 64), (12, 2, 128), (28, 4, 128)]
"""Of queries and keys, and their size: Qwen2.5-Coder 0.5B, 1.5B and 7B."""
GROUPS, RESPONSES, PROMPT, LENGTH = 4, 8, 200, 160


def packed_groups():
    """Segments of groups of responses, each a bit longer than the one before."""
    lengths = [LENGTH + 7 * number for _ in range(GROUPS) for number in range(RESPONSES)]
    prompts = [torch.full((PROMPT + 3 * group,), group) for group in range(GROUPS) for _ in range(RESPONSES)]
    rows = [torch.cat((prompt, torch.full((n,), 9))) for prompt, n in zip(prompts, lengths, strict=True)]
    offsets = torch.tensor([0, *map(len, rows)]).cumsum(0)
    kept, _, seen = share_prompts(torch.cat(rows), offsets, torch.tensor(lengths))
    return len(kept), int(offsets[-1]), Segments.of(seen, device=torch.device("cuda"))


def states_of(tokens, heads, key_heads, size):
    generator = torch.Generator("cuda").manual_seed(0)
    shapes = [(1, number, tokens, size) for number in (heads, key_heads, key_heads)]
    return [torch.randn(shape, device="cuda", generator=generator).bfloat16().requires_grad_() for shape in shapes]


@pytest.mark.parametrize(("heads", "key_heads", "size"), HEADS)
def test_values_and_gradients_are_those_of_each_sequence_in_float32(heads, key_heads, size):
    tokens, _, segments = packed_groups()
    states = states_of(tokens, heads, key_heads, size)
    weights = torch.randn(1, tokens, heads, size, device="cuda").bfloat16()
    plain = [one.detach().float().requires_grad_() for one in states]
    assert [takes_flash_attention(one[0]) for one in (states, plain)] == [True, False]
    exact, found = (
        attend_to_segments(None, *one, None, segments=segments, scaling=size**-0.5)[0] for one in (plain, states)
    )
    exact_gradients = torch.autograd.grad((exact * weights.float()).sum(), plain)
    gradients = torch.autograd.grad((found * weights).float().sum(), states)
    pairs = [(found, exact), *zip(gradients, exact_gradients, strict=True)]
    errors = [error_of(*pair) for pair in pairs]
    print(f"{heads}/{key_heads} heads of {size}: values, gradients of q, k, v:", *errors)
    assert max(errors) < 0.02


def error_of(found, exact):
    """Norm of the difference as a part of the norm."""
    found, exact = found.detach().float(), exact.detach()
    return round(float((found - exact).norm() / exact.norm()), 5)


def test_speed_beside_one_mask_over_the_whole_row():
    """Prints milliseconds of a layer's attention, forward and backward; nothing is asked of them."""
    tokens, whole, segments = packed_groups()
    shared, unshared = states_of(tokens, *HEADS[0]), states_of(whole, *HEADS[0])
    mask = torch.ones(whole, whole, dtype=torch.bool, device="cuda").tril()

    def dense():
        query, key, value = unshared
        wide = [one.repeat_interleave(HEADS[0][0] // HEADS[0][1], dim=1) for one in (key, value)]
        return torch.nn.functional.scaled_dot_product_attention(query, *wide, attn_mask=mask)

    def packed():
        return attend_to_segments(None, *shared, None, segments=segments, scaling=0.125)[0]

    ways = {f"prompts once, {tokens} tokens": packed, f"one mask, {whole} tokens": dense}
    for name, attend in ways.items():
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for repeat in range(6):
            if repeat == 1:  # the first is a warm-up
                start.record()
            attend().float().sum().backward()
        end.record()
        torch.cuda.synchronize()
        print(f"{name}: {start.elapsed_time(end) / 5:.2f} ms")
