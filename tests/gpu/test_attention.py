"""The packed engine's attention on a card: equal to the plain way within bfloat16's rounding, and how much faster."""

import pytest
import torch

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.verl_plugin.packed_rows import Segments, attend_to_segments, share_prompts

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no NVIDIA GPU here"),
]

HEADS = [(14, 2, 64), (12, 2, 128), (28, 4, 128), (3, 3, 32)]
"""Of queries and keys, and their size: Qwen2.5-Coder 0.5B, 1.5B and 7B, and the tiny models."""
GROUPS, RESPONSES, PROMPT, LENGTH = 4, 8, 200, 160


def packed_groups():
    """Segments of groups of responses, each a bit longer than the one before; for a loop and for one call."""
    lengths = [LENGTH + 7 * number for _ in range(GROUPS) for number in range(RESPONSES)]
    prompts = [torch.full((PROMPT + 3 * group,), group) for group in range(GROUPS) for _ in range(RESPONSES)]
    rows = [torch.cat((prompt, torch.full((n,), 9))) for prompt, n in zip(prompts, lengths, strict=True)]
    offsets = torch.tensor([0, *map(len, rows)]).cumsum(0)
    kept, _, seen = share_prompts(torch.cat(rows), offsets, torch.tensor(lengths))
    both = [Segments.of(seen, device=torch.device("cuda"), at_once=at_once) for at_once in (False, True)]
    return len(kept), int(offsets[-1]), both


def states_of(tokens, heads, key_heads, size):
    generator = torch.Generator("cuda").manual_seed(0)
    shapes = [(1, number, tokens, size) for number in (heads, key_heads, key_heads)]
    return [torch.randn(shape, device="cuda", generator=generator).bfloat16().requires_grad_() for shape in shapes]


@pytest.mark.parametrize("window", [None, 64])
@pytest.mark.parametrize(("heads", "key_heads", "size"), HEADS)
def test_values_and_gradients_are_those_of_each_sequence_in_float32(heads, key_heads, size, window):
    tokens, whole, both = packed_groups()
    states = states_of(tokens, heads, key_heads, size)
    weights = torch.randn(1, tokens, heads, size, device="cuda").bfloat16()
    plain = [one.detach().float().requires_grad_() for one in states]
    exact, found = (
        attend_to_segments(None, *one, None, segments=segments, scaling=size**-0.5, sliding_window=window)[0]
        for one, segments in zip((plain, states), both, strict=True)
    )
    exact_gradients = torch.autograd.grad((exact * weights.float()).sum(), plain)
    gradients = torch.autograd.grad((found * weights).float().sum(), states)
    pairs = [(found, exact), *zip(gradients, exact_gradients, strict=True)]
    errors = [error_of(*pair) for pair in pairs]
    print(f"{heads}/{key_heads} heads of {size}: values, gradients of q, k, v:", *errors)
    assert max(errors) < 0.02
    unshared = states_of(whole, heads, heads, size)
    mask = torch.ones(whole, whole, dtype=torch.bool, device="cuda").tril()
    packed = milliseconds(lambda: attend_to_segments(None, *states, None, segments=both[1], scaling=1.0)[0])
    dense = milliseconds(lambda: torch.nn.functional.scaled_dot_product_attention(*unshared, attn_mask=mask))
    print(f"forward and backward: {packed:.2f} ms of {tokens} tokens, one mask {dense:.2f} ms of {whole}")


def error_of(found, exact):
    """Norm of the difference as a part of the norm."""
    found, exact = found.detach().float(), exact.detach()
    return round(float((found - exact).norm() / exact.norm()), 5)


def milliseconds(attend):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for repeat in range(6):
        if repeat == 1:  # the first is a warm-up
            start.record()
        attend().float().sum().backward()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 5
