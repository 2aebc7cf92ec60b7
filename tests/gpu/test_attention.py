"""The packed engine's attention on a card: equal to the plain way within bfloat16's rounding, and how much faster."""

import pytest
import torch

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.verl_plugin.engine import attend_in_trees, attend_to_segments, segments_of, share_prompts

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no NVIDIA GPU here"),
]

HEADS = [(14, 2, 64), (12, 2, 128), (28, 4, 128)]
"""Of queries and keys, and their size: Qwen2.5-Coder 0.5B, 1.5B and 7B."""
GROUPS, RESPONSES, PROMPT, LENGTH = 4, 8, 200, 160


def packed_groups():
    """Trees of groups of responses, each a bit longer than the one before."""
    lengths = [LENGTH + 7 * number for _ in range(GROUPS) for number in range(RESPONSES)]
    prompts = [torch.full((PROMPT + 3 * group,), group) for group in range(GROUPS) for _ in range(RESPONSES)]
    rows = [torch.cat((prompt, torch.full((n,), 9))) for prompt, n in zip(prompts, lengths, strict=True)]
    offsets = torch.tensor([0, *map(len, rows)]).cumsum(0)
    kept, _, trees = share_prompts(torch.cat(rows), offsets, torch.tensor(lengths))
    return len(kept), int(offsets[-1]), trees


def states_of(tokens, heads, key_heads, size):
    generator = torch.Generator("cuda").manual_seed(0)
    shapes = [(1, number, tokens, size) for number in (heads, key_heads, key_heads)]
    return [torch.randn(shape, device="cuda", generator=generator).bfloat16().requires_grad_() for shape in shapes]


@pytest.mark.parametrize(("heads", "key_heads", "size"), HEADS)
def test_values_and_gradients_are_those_of_float32(heads, key_heads, size):
    tokens, _, trees = packed_groups()
    states = states_of(tokens, heads, key_heads, size)
    weights = torch.randn(1, tokens, heads, size, device="cuda").bfloat16()
    segments = segments_of(trees, device=torch.device("cuda"))
    plain = [one.detach().float().requires_grad_() for one in states]
    exact = attend_in_trees(None, *plain, None, trees=trees, scaling=size**-0.5)[0]
    found = attend_to_segments(*states, segments, scaling=size**-0.5)
    other = attend_in_trees(None, *states, None, trees=trees, scaling=size**-0.5)[0]
    exact_gradients = torch.autograd.grad((exact * weights.float()).sum(), plain)
    for name, values in (("flash", found), ("torch's, in trees", other)):
        gradients = torch.autograd.grad((values * weights).float().sum(), states)
        errors = [error_of(values, exact)]
        errors += [error_of(*pair) for pair in zip(gradients, exact_gradients, strict=True)]
        print(f"{name}, {heads}/{key_heads} heads of {size}: values, gradients of q, k, v:", *errors)
        assert max(errors) < 0.02


def error_of(found, exact):
    """Norm of the difference as a part of the norm."""
    return round(float((found.float() - exact).norm() / exact.norm()), 5)


def test_speed_beside_one_mask_over_the_whole_row():
    """Prints milliseconds of a layer's attention, forward and backward; nothing is asked of them."""
    tokens, whole, trees = packed_groups()
    segments = segments_of(trees, device=torch.device("cuda"))
    shared, unshared = states_of(tokens, *HEADS[0]), states_of(whole, *HEADS[0])
    mask = torch.ones(whole, whole, dtype=torch.bool, device="cuda").tril()

    def dense():
        query, key, value = unshared
        wide = [one.repeat_interleave(HEADS[0][0] // HEADS[0][1], dim=1) for one in (key, value)]
        return torch.nn.functional.scaled_dot_product_attention(query, *wide, attn_mask=mask)

    ways = {
        f"flash, prompts once, {tokens} tokens": lambda: attend_to_segments(*shared, segments, scaling=0.125),
        f"trees, prompts once, {tokens} tokens": lambda: attend_in_trees(
            None, *shared, None, trees=trees, scaling=0.125
        )[0],
        f"one mask, {whole} tokens": dense,
    }
    for name, attend in ways.items():
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for repeat in range(6):
            if repeat == 1:  # the first is a warm-up
                start.record()
            attend().float().sum().backward()
        end.record()
        torch.cuda.synchronize()
        print(f"{name}: {start.elapsed_time(end) / 5:.2f} ms")
