"""Log-probabilities of the packed engine: those of whole logits, at the positions of responses."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from peft import LoraConfig, get_peft_model
from tensordict import TensorDict
from transformers import LlamaConfig, LlamaForCausalLM
from verl import DataProto
from verl.utils import tensordict_utils
from verl.utils.debug.metrics import calculate_debug_metrics
from verl.utils.metric import Metric
from verl.workers.config.actor import ActorConfig, PolicyLossConfig
from verl.workers.utils.losses import ppo_loss, sft_loss

from code_a1_recipe.verl_plugin import own_log_probs
from code_a1_recipe.verl_plugin.engine import PackedFSDPEngineWithLMHead, forward_with_log_probs, has_no_gradient
from code_a1_recipe.verl_plugin.packed_rows import Segments, attend_to_segments, response_positions, share_prompts

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
    assert options.get("window_size") == (-1, 0)
    attended = []
    for (start, end), (first, last) in zip(pairwise(query_ends.tolist()), pairwise(key_ends.tolist()), strict=True):
        times = query.shape[1] // key.shape[1]
        queries = query[start:end].transpose(0, 1)
        keys, values = (states[first:last].repeat_interleave(times, dim=1).transpose(0, 1) for states in (key, value))
        scores = queries @ keys.transpose(1, 2) * scale
        is_seen = torch.ones(scores.shape[1:], dtype=torch.bool).tril(scores.shape[2] - scores.shape[1])
        attended.append((scores.masked_fill(~is_seen, -torch.inf).softmax(-1) @ values).transpose(0, 1))
    assert (longest_query, longest_key) == (query_ends.diff().max(), key_ends.diff().max())
    assert query_ends.dtype == key_ends.dtype == torch.int32
    return torch.cat(attended)


def test_one_call_on_a_card_is_what_each_segment_sees(monkeypatch):
    """The same values and gradients in float64; ``tests/gpu`` has flash attention itself."""
    monkeypatch.setattr("code_a1_recipe.verl_plugin.packed_rows.varlen_attn", causal_in_segments)
    ids, _, offsets, _ = packed()
    kept, _, seen = share_prompts(ids[0], offsets, torch.tensor(RESPONSES))
    segments = Segments.of(seen, device=torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    states = [
        torch.randn(1, heads, len(kept), 8, dtype=torch.float64, generator=generator, requires_grad=True)
        for heads in (4, 2, 2)
    ]
    weights = torch.randn(1, len(kept), 4, 8, dtype=torch.float64, generator=generator)

    def attend():
        attended = attend_to_segments(None, *states, None, segments=segments, scaling=0.3)[0]
        return attended, *torch.autograd.grad((attended * weights).sum(), states)

    expected = attend()
    monkeypatch.setattr("code_a1_recipe.verl_plugin.packed_rows.takes_flash_attention", lambda query: True)
    torch.testing.assert_close(attend(), expected)


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


@pytest.mark.parametrize(
    ("prompts", "size", "named", "budget"),
    [
        # Four rows of 11 tokens are computed as 5 + 4 * 6, so a budget of 100 takes what verl counts as 151.
        ((1, 1, 1, 1, 2, 2, 2, 2), 4, 100, 151),
        ((1, 1, 1, 1, 2, 2, 2, 2), 4, 20, 44),
        ((1, 1, 1, 2, 2, 3, 3, 3), 1, 20, 20),
        ((1, 1, 1, 1, 2, 2), 2, 20, 25),
    ],
)
def test_sequences_of_one_prompt_go_through_the_model_together(engine_of, prompts, size, named, budget):
    engine = engine_of(
        "forward_backward_batch",
        lambda self, data, loss_function, forward_only: data,
        model_config=SimpleNamespace(use_fused_kernels=True),
        use_remove_padding=True,
        engine_config=SimpleNamespace(ulysses_sequence_parallel_size=1),
    )
    rows = [torch.tensor([prompt] * 5 + [9] * 6) for prompt in prompts]
    masks = [torch.ones(6, dtype=torch.long) for _ in prompts]
    data = rows_of(input_ids=rows, response_mask=masks)
    tensordict_utils.assign_non_tensor(data, max_token_len_per_gpu=named)
    sent = engine.forward_backward_batch(data, None)
    assert tensordict_utils.get(sent, "force_group_size") == size
    assert tensordict_utils.get(sent, "max_token_len_per_gpu") == budget


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


def test_an_update_takes_its_own_log_probs_as_old_ones_and_reports_what_a_pass_of_its_own_would():
    """Loss, gradient and metrics: verl's, given the values of this very pass. Two micro-batches on one rank."""
    generator = torch.Generator().manual_seed(3)
    prompts, responses = (2, 4, 3, 1), (3, 1, 5, 4)

    def drawn(sizes):
        return [-torch.rand(size, generator=generator) for size in sizes]

    totals = [prompt + response for prompt, response in zip(prompts, responses, strict=True)]
    log_probs, entropy = [one.requires_grad_() for one in drawn(totals)], drawn(totals)
    of_responses = [
        [values.detach()[prompt - 1 : -1] for values, prompt in zip(column, prompts, strict=True)]
        for column in (log_probs, entropy)
    ]
    table = {
        "prompts": drawn(prompts),
        "responses": drawn(responses),
        "response_mask": [torch.tensor([1.0] * (size - 1) + [float(size < 5)]) for size in responses],
        "rollout_log_probs": drawn(responses),
        "advantages": drawn(responses),
        "old_log_probs": of_responses[0],
    }

    def arguments_of(*rows, without=()):
        data = rows_of(**{name: [table[name][row] for row in rows] for name in table if name not in without})
        tensordict_utils.assign_non_tensor(data, dp_size=1, batch_num_tokens=12, global_batch_size=4)
        columns = {"log_probs": log_probs, "entropy": entropy}
        output = {name: nested([column[row] for row in rows]) for name, column in columns.items()}
        return {"data": data, "model_output": output}

    def gradients(losses):
        sum(losses).backward()
        found = [values.grad for values in log_probs]
        for values in log_probs:
            values.grad = None
        return found

    parts, together = ((0, 1), (2, 3)), {}
    own = [
        own_log_probs.loss_with_own_log_probs(
            verls_loss(), **arguments_of(*part, without=["old_log_probs"]), keeps_entropy=False
        )
        for part in parts
    ]
    plain = []
    for part, (_, metrics) in zip(parts, own, strict=True):
        given = arguments_of(*part)
        del given["model_output"]["entropy"]
        plain.append(verls_loss()(**given)[0])
        for name, metric in metrics.items():
            if isinstance(metric, Metric):
                together.setdefault(f"actor/{name}", metric.init_list()).append(metric)
    losses = [loss for loss, _ in own]
    assert losses == plain
    torch.testing.assert_close(gradients(losses), gradients(plain), rtol=0, atol=0)
    metrics = {name: metric.aggregate() for name, metric in together.items()}
    expected = calculate_debug_metrics(DataProto(batch=arguments_of(0, 1, 2, 3)["data"].to_padded_tensor()))
    counted = torch.cat(table["response_mask"]).bool()
    expected["actor/entropy"] = torch.cat(of_responses[1])[counted].mean().item()
    assert own_log_probs.finalize(metrics, ranks=1) == pytest.approx(expected, rel=1e-5)
    assert not [name for name in metrics if own_log_probs.PREFIX in name]


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


def test_such_rows_are_still_reported_where_an_update_takes_its_own_log_probs(engine_of):
    sums = {f"{own_log_probs.PREFIX}tokens": 3}

    def computed(self, rows, loss_function, forward_only):
        assert not torch.is_grad_enabled()
        assert tensordict_utils.get_non_tensor_data(rows, "calculate_entropy", default=False)
        return None, {"loss": 1.0, "metrics": sums | {"pg_clipfrac": 0.0}}

    rows = NONE.clone()
    tensordict_utils.assign_non_tensor(rows, **{own_log_probs.FLAG: True})
    output = engine_of("forward_step", computed).forward_step(rows, verls_loss(), False)[1]
    assert output == {"loss": 0.0, "metrics": sums}


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
