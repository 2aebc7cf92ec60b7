"""Log-probabilities of the packed engine: those of whole logits, at the positions of responses."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import pytest
import torch
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from peft import LoraConfig, get_peft_model
from tensordict import TensorDict
from transformers import LlamaConfig, LlamaForCausalLM
from verl.workers.config.actor import ActorConfig, PolicyLossConfig
from verl.workers.utils.losses import ppo_loss, sft_loss

from code_a1_recipe.verl_plugin.engine import PackedFSDPEngineWithLMHead, has_no_gradient
from code_a1_recipe.verl_plugin.packed_rows import (
    Segments,
    attend_to_segments,
    forward_with_log_probs,
    response_positions,
    share_prompts,
)

PROMPTS, RESPONSES = (5, 3, 5, 7), (4, 1, 6, 2)


def llama(*, layers: int, tied: bool) -> LlamaForCausalLM:
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": layers, "num_attention_heads": 2}
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(vocab_size=50, num_key_value_heads=1, tie_word_embeddings=tied, **sizes))


@pytest.fixture
def engine_of(monkeypatch):
    """``engine_of(method, replacement, **attributes)``: an engine with a replaced method of verl's engine."""

    def make(method=None, replacement=None, **attributes):
        if method:
            monkeypatch.setattr(PackedFSDPEngineWithLMHead.__mro__[1], method, replacement)
        engine = object.__new__(PackedFSDPEngineWithLMHead)
        vars(engine).update({"get_data_parallel_size": lambda: 1} | attributes)
        return engine

    return make


def packed():
    """Four sequences in one row; the first and the third have the same prompt."""
    lengths = [prompt + response for prompt, response in zip(PROMPTS, RESPONSES, strict=True)]
    ids = torch.randint(0, 50, (1, sum(lengths)), generator=torch.Generator().manual_seed(1))
    positions = torch.cat([torch.arange(length) for length in lengths])[None]
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    ids[0, offsets[2] : offsets[2] + PROMPTS[2]] = ids[0, : PROMPTS[0]]
    return ids, positions, offsets, lengths


def test_positions_are_those_before_each_token_of_a_response():
    offsets = packed()[2]
    found = response_positions(offsets, torch.tensor(RESPONSES)).tolist()
    assert found == [*range(4, 8), 11, *range(17, 23), 30, 31]


def test_a_prompt_that_two_sequences_share_is_kept_once():
    ids, _, offsets, _ = packed()
    kept, places, seen = share_prompts(ids[0], offsets, torch.tensor(RESPONSES))
    assert kept.tolist() == [*range(13), *range(18, 33)]
    assert places.tolist() == [*range(13), *range(5), *range(13, 28)]
    first, second, last = slice(0, 5), slice(9, 12), slice(19, 26)
    assert seen == [
        *([first], [first, slice(5, 9)]),
        *([second], [second, slice(12, 13)], [first, slice(13, 19)]),
        *([last], [last, slice(26, 28)]),
    ]


@pytest.mark.parametrize("logits_mib", [64, 0])
def test_log_probs_and_gradients_are_those_of_each_sequence_alone(monkeypatch, logits_mib):
    """Packing, the shared prompt, the chunks of the head and the positions left out change nothing."""
    model = llama(layers=2, tied=True)
    monkeypatch.setattr("code_a1_recipe.verl_plugin.cpu.environment.LOGITS_MIB", logits_mib)
    ids, positions, offsets, lengths = packed()
    log_probs_at = response_positions(offsets, torch.tensor(RESPONSES))
    kept, places, seen = share_prompts(ids[0], offsets, torch.tensor(RESPONSES))
    monkeypatch.setattr(model.config, "_attn_implementation", "attend_to_segments")
    temperature = 0.7
    output = forward_with_log_probs(
        model,
        hidden_at=places[log_probs_at],
        log_probs_at=log_probs_at,
        shift_labels=ids.roll(-1, dims=1),
        temperature=temperature,
        input_ids=ids[:, kept],
        attention_mask=None,
        segments=Segments.of(seen, device=torch.device("cpu")),
        position_ids=positions[:, kept],
        use_cache=False,
    )
    (output.log_probs.sum() + output.entropy.sum()).backward()
    weights = model.lm_head.weight, model.model.layers[0].mlp.up_proj.weight
    gradients = [weight.grad.clone() for weight in weights]

    monkeypatch.setattr(model.config, "_attn_implementation", "sdpa")
    model.zero_grad()
    total, alone = 0.0, []
    for sequence, response in zip(ids[0].split(lengths), RESPONSES, strict=True):
        table = (model(sequence[None]).logits[0] / temperature).log_softmax(-1)[-response - 1 : -1]
        chosen = table.gather(1, sequence[-response:, None])[:, 0]
        alone.append(chosen)
        total = total + chosen.sum() - (table.exp() * table).sum()
    total.backward()
    torch.testing.assert_close(output.log_probs[0, log_probs_at], torch.cat(alone))
    assert output.log_probs.count_nonzero() == len(log_probs_at)
    torch.testing.assert_close(gradients, [weight.grad for weight in weights])


def causal_in_segments(query, key, value, query_ends, key_ends, longest_query, longest_key, *, scale, **options):
    """What flash attention computes of packed segments, slowly: (tokens, heads, size), causal from the end."""
    before, after = options["window_size"]
    assert after == 0
    attended = []
    for (start, end), (first, last) in zip(pairwise(query_ends.tolist()), pairwise(key_ends.tolist()), strict=True):
        times = query.shape[1] // key.shape[1]
        queries = query[start:end].transpose(0, 1)
        keys, values = (states[first:last].repeat_interleave(times, dim=1).transpose(0, 1) for states in (key, value))
        scores = queries @ keys.transpose(1, 2) * scale
        first = scores.shape[2] - scores.shape[1]
        is_seen = torch.ones(scores.shape[1:], dtype=torch.bool).tril(first)
        is_seen = is_seen if before < 0 else is_seen.triu(first - before)
        attended.append((scores.masked_fill(~is_seen, -torch.inf).softmax(-1) @ values).transpose(0, 1))
    assert (longest_query, longest_key) == (query_ends.diff().max(), key_ends.diff().max())
    assert query_ends.dtype == key_ends.dtype == torch.int32
    return torch.cat(attended)


@pytest.mark.parametrize("window", [None, 1, 4, 100])
def test_one_call_on_a_card_is_what_each_segment_sees(monkeypatch, window):
    """The same values and gradients in float64; ``tests/gpu`` has flash attention itself."""
    monkeypatch.setattr("code_a1_recipe.verl_plugin.packed_rows.varlen_attn", causal_in_segments)
    ids, _, offsets, _ = packed()
    kept, _, seen = share_prompts(ids[0], offsets, torch.tensor(RESPONSES))
    generator = torch.Generator().manual_seed(0)
    states = [
        torch.randn(1, heads, len(kept), 8, dtype=torch.float64, generator=generator, requires_grad=True)
        for heads in (4, 2, 2)
    ]
    weights = torch.randn(1, len(kept), 4, 8, dtype=torch.float64, generator=generator)

    def attend(*, at_once):
        segments = Segments.of(seen, device=torch.device("cpu"), at_once=at_once)
        attended = attend_to_segments(None, *states, None, segments=segments, scaling=0.3, sliding_window=window)[0]
        return attended, *torch.autograd.grad((attended * weights).sum(), states)

    torch.testing.assert_close(attend(at_once=True), attend(at_once=False))


@pytest.fixture
def mesh():
    """Of one rank, on the CPU."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
    torch.distributed.destroy_process_group()


def test_a_head_with_a_weight_of_its_own_is_gathered_before_it_is_read(mesh, monkeypatch):
    """FSDP2 shards such a head by itself, and nothing calls its forward."""
    untied = llama(layers=1, tied=False)
    ids = torch.randint(0, 50, (1, 9))
    at = torch.arange(4, 8)
    arguments = {"hidden_at": at, "log_probs_at": at, "shift_labels": ids.roll(-1, dims=1), "input_ids": ids}
    expected = forward_with_log_probs(untied, **arguments).log_probs.detach()
    fully_shard(untied.lm_head, mesh=mesh)
    fully_shard(untied, mesh=mesh)
    monkeypatch.setattr(type(untied), "forward", forward_with_log_probs)
    output = untied(**arguments)
    output.log_probs.sum().backward()
    with torch.no_grad():
        untied(**arguments)
    assert isinstance(untied.lm_head.weight, torch.distributed.tensor.DTensor)  # as the optimizer knows it
    torch.testing.assert_close(output.log_probs, expected)
    assert untied.lm_head.weight.grad.to_local().any()


def test_gradients_of_an_adapter_are_float32_also_where_the_reference_had_the_first_pass(mesh, engine_of):
    """FSDP looks once what is trained; gradients that it does not know of it leaves in the dtype of the computation."""
    adapter = LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
    module = get_peft_model(llama(layers=1, tied=False), adapter)
    fully_shard(module, mesh=mesh, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
    ids = torch.arange(9)[None]
    with engine_of(module=module).disable_adapter(), torch.no_grad():
        of_reference = module(input_ids=ids).logits
    logits = module(input_ids=ids).logits
    assert not torch.equal(logits, of_reference)
    logits.sum().backward()
    trained = {name: weight for name, weight in module.named_parameters() if weight.grad is not None}
    assert [name.split(".")[-3] for name in trained] == ["lora_A", "lora_B"]
    assert {weight.grad.dtype for weight in trained.values()} == {torch.float32}


def nested(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.nested.as_nested_tensor(list(rows), layout=torch.jagged)


def rows_of(**columns: Sequence[torch.Tensor]) -> TensorDict:
    number = len(next(iter(columns.values())))
    return TensorDict({name: nested(rows) for name, rows in columns.items()}, batch_size=[number])


def advantages(*rows: list[float]) -> TensorDict:
    return rows_of(advantages=[torch.tensor(row) for row in rows])


def verls_loss(function: Callable = ppo_loss, **settings: object) -> partial:
    return partial(function, config=ActorConfig(strategy="fsdp2", rollout_n=2, use_dynamic_bsz=True, **settings))


NONE = advantages([0.0, 0.0], [0.0])


@pytest.mark.parametrize(
    ("loss_function", "rows", "expected"),
    [
        (verls_loss(), NONE, True),
        (verls_loss(), advantages([0.0, 0.0], [-0.5]), False),
        (verls_loss(entropy_coeff=0.01), NONE, False),
        (verls_loss(use_kl_loss=True), NONE, False),
        (verls_loss(policy_loss=PolicyLossConfig(loss_mode="kl_cov")), NONE, False),
        (verls_loss(sft_loss), NONE, False),
        (None, NONE, False),
    ],
)
def test_rows_without_advantage_have_no_gradient_unless_the_loss_has_another_term(loss_function, rows, expected):
    assert has_no_gradient(loss_function, rows) is expected


@pytest.mark.parametrize(("ranks", "forward_only", "skipped"), [(1, False, True), (2, False, False), (1, True, False)])
def test_such_rows_are_left_out_of_an_update_on_one_rank(engine_of, ranks, forward_only, skipped):
    engine = engine_of("forward_step", lambda *_: "computed", get_data_parallel_size=lambda: ranks)
    result = engine.forward_step(NONE, verls_loss(), forward_only)
    if not skipped:
        assert result == "computed"
        return
    loss, output = result
    loss.backward()  # as verl does of each
    assert output == {"loss": 0.0, "metrics": {}}


def test_an_update_without_any_gradient_moves_weights_by_the_momentum_they_have(engine_of):
    """As if zeros had been computed: AdamW would leave parameters without a gradient where they are."""
    modules = [torch.nn.Linear(2, 1, bias=False) for _ in range(2)]
    modules[1].load_state_dict(modules[0].state_dict())
    for module, skips in zip(modules, (True, False), strict=True):
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.1)
        engine = engine_of("optimizer_step", lambda self: self.optimizer.step(), module=module, optimizer=optimizer)
        module(torch.ones(1, 2)).sum().backward()
        engine.optimizer_step()
        if not skips:
            (0.0 * module(torch.ones(1, 2)).sum()).backward()
        engine.optimizer_step()
    assert torch.equal(modules[0].weight, modules[1].weight)
