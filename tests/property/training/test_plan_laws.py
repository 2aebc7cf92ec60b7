"""Laws of the plan: more is never worse."""

from dataclasses import replace
from functools import cache, partial

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.config.compose import preset_names, read_config
from code_a1_recipe.training.plan import memory
from code_a1_recipe.training.plan.check import plan_of
from code_a1_recipe.training.plan.machine import Machine
from code_a1_recipe.training.plan.memory import GIB, ModelSize
from code_a1_recipe.training.plan.needs import Place, needs_of
from code_a1_recipe.training.plan.sizes import with_sizes

MACHINE = Machine(cores=64, memory=512 * GIB, shared_memory=256 * GIB, disk=4096 * GIB, num_gpus=8, gpu_memory=79 * GIB)
GPU_PRESETS = [name for name in preset_names() if name != "smollm2-135m" and not name.endswith("cpu")]

sizes = st.builds(
    lambda layers, hidden, ffn, vocabulary, tied: ModelSize(
        parameters=layers * hidden * (4 * hidden + 3 * ffn) + vocabulary * hidden * (1 if tied else 2),
        layers=layers, hidden=hidden, ffn=ffn, vocabulary=vocabulary,
    ),
    st.integers(1, 64), st.integers(64, 8192), st.integers(64, 32_768),
    st.integers(100, 260_000), st.booleans(),
)  # fmt: skip


@cache
def config(preset, *overrides):
    return with_sizes(read_config(preset, ["run_dir=/nowhere/x", *overrides]))


def on_a_card(config, size):
    """Most bytes on one card, the same size for both policies."""
    needs = needs_of(config, {"code": size, "test": size}, gpu_memory=79 * GIB)
    own = [need for need in needs if need.place == Place.CARD and need.process.startswith("code ")]
    return max(sum(need.amount for need in own if need.is_taken(updating)) for updating in ((), ("code",)))


@given(size=sizes, tokens=st.integers(1, 10**6), more=st.integers(0, 10**6), width=st.sampled_from([2, 4]))
def test_more_tokens_never_need_less(size, tokens, more, width):
    needs = [partial(memory.activation_bytes, checkpointing=checkpointing) for checkpointing in (False, True)]
    needs += [partial(memory.logit_bytes, chunk=chunk) for chunk in (None, 512)]
    for need in needs:
        assert need(size, tokens=tokens, width=width) <= need(size, tokens=tokens + more, width=width)


@given(size=sizes)
def test_more_devices_never_need_more_of_each(size):
    needed = [on_a_card(config("qwen2.5-coder-1.5b", f"trainer.n_gpus_per_node={n}"), size) for n in (1, 2, 4, 8)]
    assert needed == sorted(needed, reverse=True)


@pytest.mark.nightly
@given(
    preset=st.sampled_from(GPU_PRESETS),
    factors=st.tuples(*[st.floats(1, 4)] * 5),
    gpus=st.sampled_from([1, 2, 4, 8]),
    card=st.sampled_from([24, 40, 80, 141]),
)
def test_what_fits_a_machine_fits_a_larger_one(preset, factors, gpus, card):
    names = ("cores", "memory", "shared_memory", "disk", "gpu_memory")
    chosen = config(preset, f"trainer.n_gpus_per_node={gpus}", "actor_rollout_ref.model.lora_rank=16")
    small = replace(MACHINE, gpu_memory=card * GIB)
    large = replace(small, **{name: int(getattr(small, name) * by) for name, by in zip(names, factors, strict=True)})
    # A server takes a share of its card, so a larger card has more taken, never a larger share of it.
    too_small = [{row.place for row in plan_of(chosen, machine).rows if not row.fits} for machine in (large, small)]
    assert too_small[0] <= too_small[1]
