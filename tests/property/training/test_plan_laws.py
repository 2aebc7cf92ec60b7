"""Laws of the plan: more is never worse, and what is proposed fits."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.config.compose import preset_names, read_config
from code_a1_recipe.training.plan import memory
from code_a1_recipe.training.plan.check import Plan, plan_of, settings_that_fit
from code_a1_recipe.training.plan.machine import Machine
from code_a1_recipe.training.plan.memory import GIB, ModelSize
from code_a1_recipe.training.plan.needs import Place, State, needs_of
from code_a1_recipe.training.plan.sizes import KNOWN, with_sizes

MACHINE = Machine(cores=64, memory=512 * GIB, shared_memory=256 * GIB, disk=4096 * GIB, num_gpus=8, gpu_memory=79 * GIB)
GPU_PRESETS = [name for name in preset_names() if name != "smollm2-135m" and not name.endswith("cpu")]

sizes = st.builds(
    lambda layers, hidden, ffn, heads, vocabulary, tied: ModelSize(
        parameters=layers * hidden * (4 * hidden + 3 * ffn) + vocabulary * hidden * (1 if tied else 2),
        layers=layers, hidden=hidden, ffn=ffn, heads=heads, kv_heads=max(1, heads // 4), head_size=64,
        vocabulary=vocabulary, positions=4096, tied=tied,
    ),
    st.integers(1, 64), st.integers(64, 8192), st.integers(64, 32_768), st.integers(1, 64),
    st.integers(100, 260_000), st.booleans(),
)  # fmt: skip


@cache
def config(preset, *overrides):
    return with_sizes(read_config(preset, ["run_dir=/nowhere/x", *overrides]))


def on_a_card(config, size):
    """Most bytes on one card, the same size for both policies."""
    needs = needs_of(config, {"code": size, "test": size}, gpu_memory=79 * GIB)
    both = {name: [one for one in needs if one.place == Place.CARD and one.policy == name] for name in ("code", "test")}
    return max(sum(one.amount for one in both["code"] if state in one.states) for state in State)


@given(size=sizes, tokens=st.integers(1, 10**6), more=st.integers(0, 10**6), width=st.sampled_from([2, 4]))
def test_more_tokens_never_need_less(size, tokens, more, width):
    for checkpointing in (False, True):
        few, many = (
            memory.activation_bytes(size, tokens=count, width=width, checkpointing=checkpointing)
            for count in (tokens, tokens + more)
        )
        assert few <= many
    for chunk in (None, 512):
        few, many = (
            memory.logit_bytes(size, tokens=count, width=width, chunk=chunk) for count in (tokens, tokens + more)
        )
        assert few <= many


@given(size=sizes)
def test_more_devices_never_need_more_of_each(size):
    needed = [on_a_card(config("qwen2.5-coder-1.5b", f"trainer.n_gpus_per_node={n}"), size) for n in (1, 2, 4, 8)]
    assert needed == sorted(needed, reverse=True)


@given(size=sizes, rank=st.sampled_from([1, 8, 32]))
def test_an_adapter_needs_less_than_its_model_where_it_is_smaller(size, rank):
    if size.adapter(rank) * 4 > size.parameters:
        return
    resident = [f"actor_rollout_ref.actor.fsdp_config.{part}_offload=false" for part in ("param", "optimizer")]
    full = config("qwen2.5-coder-1.5b", *resident)
    adapted = config("qwen2.5-coder-1.5b", *resident, f"actor_rollout_ref.model.lora_rank={rank}")
    assert on_a_card(adapted, size) < on_a_card(full, size)


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
    assert plan_of(chosen, large).bad_places() <= plan_of(chosen, small).bad_places()


def with_settings(preset: str, given: dict, machine: Machine) -> Plan:
    return plan_of(config(preset).with_values(given), machine)


@pytest.mark.parametrize("preset", preset_names())
@pytest.mark.parametrize(
    "changes",
    [{"memory": 8 * GIB}, {"cores": 1}, {"disk": 100 * GIB}, {"gpu_memory": 30 * GIB}, {"shared_memory": 200 << 20}],
    ids=lambda changes: next(iter(changes)),
)
def test_every_proposal_fits(preset, changes):
    machine = replace(MACHINE, **changes)
    plan = plan_of(config(preset), machine)
    for place in plan.bad_places():
        given = settings_that_fit(config(preset), machine, plan, place)
        if given:
            assert with_settings(preset, given, machine).bad_places() <= plan.bad_places() - {place}


def test_the_known_sizes_are_plausible():
    for size in KNOWN.values():
        assert size.parameters > size.layer * size.layers > 0
        assert size.heads % size.kv_heads == 0
