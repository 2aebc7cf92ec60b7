"""Updates of the real engine on one rank. ``test_updates`` runs this file in a process with verl's CPU platform."""

import math
from functools import partial

import pytest
import torch

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from tensordict import TensorDict
from transformers import AutoModelForCausalLM, Gemma2Config, LlamaConfig
from verl.trainer.config import CheckpointConfig
from verl.utils.tensordict_utils import assign_non_tensor
from verl.workers.config import FSDPEngineConfig, FSDPOptimizerConfig, HFModelConfig
from verl.workers.config.actor import ActorConfig
from verl.workers.engine import EngineRegistry
from verl.workers.utils.losses import ppo_loss

from code_a1_recipe.errors import SettingsError
from code_a1_recipe.verl_plugin.engine import PackedFSDPEngineWithLMHead
from code_a1_recipe.verl_plugin.model_check import MOST

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
}
RATE, BUDGET, MEMBERS = 1e-2, 120, 4


@pytest.fixture
def engine_of(tmp_path, monkeypatch):
    """``engine_of(config)``: the model with random weights, and the engine of a worker that has loaded it."""
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    classes = []

    def make(config, *, is_packed=True):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.data.normal_(0, 0.2)
        model.config.architectures = [type(model).__name__]
        model.save_pretrained(tmp_path)
        classes.append((type(model), type(model).forward))
        precision = {f"{kind}_dtype": "fp32" for kind in ("param", "reduce", "buffer")}
        engine = EngineRegistry.new(
            model_type="language_model",
            backend="fsdp2",
            model_config=HFModelConfig(
                path=str(tmp_path),
                load_tokenizer=False,
                use_remove_padding=True,
                use_fused_kernels=is_packed,
                enable_gradient_checkpointing=False,
                override_config={"attn_implementation": "sdpa" if is_packed else "eager"},
            ),
            engine_config=FSDPEngineConfig(
                strategy="fsdp2", model_dtype="fp32", mixed_precision=precision, use_torch_compile=False
            ),
            optimizer_config=FSDPOptimizerConfig(
                lr=RATE, lr_warmup_steps=0, lr_scheduler_type="constant", weight_decay=0.1, total_training_steps=5
            ),
            checkpoint_config=CheckpointConfig(),
        )
        assert isinstance(engine, PackedFSDPEngineWithLMHead)
        engine.initialize()
        return model, engine

    yield make
    torch.distributed.destroy_process_group()
    for model_class, forward in classes:
        model_class.forward = forward


def nested(values):
    return torch.nested.as_nested_tensor(list(values), layout=torch.jagged)


def drawn_rows():
    """Eight groups of four responses to prompts of unequal lengths, with their advantages."""
    generator = torch.Generator().manual_seed(3)
    rows = []
    for group in range(8):
        prompt = torch.randint(3, 64, (5 + 3 * group,), generator=generator)
        advantages = torch.randn(MEMBERS, generator=generator)
        advantages = (advantages - advantages.mean()) / advantages.std()
        advantages[group % MEMBERS] *= float(group % 3 > 0)  # some rows train nothing
        for advantage in advantages.tolist():
            length = int(torch.randint(3, 20, (1,), generator=generator))
            rows.append((prompt, torch.randint(3, 64, (length,), generator=generator), advantage))
    return rows


def batch_of(rows, old=None):
    masks = [torch.ones_like(response) for _, response, _ in rows]
    columns = {
        "input_ids": [torch.cat([prompt, response]) for prompt, response, _ in rows],
        "position_ids": [torch.arange(len(prompt) + len(response)) for prompt, response, _ in rows],
        "prompts": [prompt for prompt, _, _ in rows],
        "responses": [response for _, response, _ in rows],
        "response_mask": masks,
        "loss_mask": masks,
        "advantages": [torch.full(mask.shape, row[2]) for mask, row in zip(masks, rows, strict=True)],
    }
    if old is not None:
        columns["old_log_probs"] = old
    data = TensorDict({name: nested(values) for name, values in columns.items()}, batch_size=[len(rows)])
    assign_non_tensor(
        data,
        temperature=1.0,
        use_dynamic_bsz=True,
        max_token_len_per_gpu=BUDGET,
        use_remove_padding=True,
        use_fused_kernels=True,
        global_batch_size=len(rows),
        calculate_entropy=False,
        compute_loss=False,
    )
    return data


def plain_log_probs(model, prompt, response):
    table = model(torch.cat([prompt, response])[None], use_cache=False).logits[0].log_softmax(-1)
    return table[len(prompt) - 1 : -1].gather(1, response[:, None])[:, 0]


def test_two_optimizer_steps_of_a_batch_are_those_of_plain_pytorch(engine_of):
    """Old log-probabilities, packed groups, micro-batches, clipping and AdamW; the second step's ratios are not 1."""
    model, engine = engine_of(LlamaConfig(**SIZES, tie_word_embeddings=True))
    plain_forward = partial(type(model).plain_forward, model)
    rows = drawn_rows()
    with engine.eval_mode():
        found = engine.infer_batch(batch_of(rows), loss_function=None)["model_output"]["log_probs"].unbind()
    old = [values[len(row[0]) - 1 : -1].detach() for values, row in zip(found, rows, strict=True)]
    with torch.no_grad():
        expected = [plain_log_probs(plain_forward, *row[:2]) for row in rows]
    torch.testing.assert_close(old, expected, atol=1e-5, rtol=1e-5)
    clip = {"clip_ratio": 0.2, "clip_ratio_low": 0.2, "clip_ratio_high": 0.28, "clip_ratio_c": 10.0}
    actor = ActorConfig(
        strategy="fsdp2",
        rollout_n=MEMBERS,
        use_dynamic_bsz=True,
        loss_agg_mode="token-mean",
        ppo_mini_batch_size=4,
        **clip,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.1, betas=(0.9, 0.999))
    for chosen in (slice(0, 16), slice(16, 32)):
        with engine.train_mode():
            output = engine.train_batch(
                batch_of(rows[chosen], old[chosen]), loss_function=partial(ppo_loss, config=actor)
            )
        optimizer.zero_grad()
        total = torch.zeros(())
        for (prompt, response, advantage), before in zip(rows[chosen], expected[chosen], strict=True):
            ratio = (plain_log_probs(plain_forward, prompt, response) - before).exp()
            loss = torch.maximum(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.28))
            total = total + (loss.clamp(max=-advantage * 10.0) if advantage < 0 else loss).sum()
        (total / sum(len(row[1]) for row in rows[chosen])).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        assert output["metrics"]["grad_norm"] == pytest.approx(float(norm), rel=1e-5)
        assert len(output["loss"]) > 2  # micro-batches
        assert output["loss"][0] == 0.0  # of the rows that train nothing, which come first and are skipped
        trained = engine.module.state_dict()
        for name, weight in model.state_dict().items():
            torch.testing.assert_close(trained[name].full_tensor(), weight, atol=2e-5, rtol=0)


def test_a_model_that_the_engine_computes_wrongly_ends_the_start_of_its_worker(engine_of):
    """Soft caps; the check of the command line would have chosen verl's engine."""
    config = Gemma2Config(**SIZES, head_dim=8, query_pre_attn_scalar=8, final_logit_softcapping=1.0)
    with pytest.raises(SettingsError) as caught:
        engine_of(config)
    (words,) = caught.value.args
    assert "the engine's log-probabilities differ from the model's own by " in words
    assert f"above {MOST:g}, so" in words
    assert "use_fused_kernels=false" in words


def test_verls_engine_is_checked_as_well_and_right_for_that_model(engine_of):
    config = Gemma2Config(**SIZES, head_dim=8, query_pre_attn_scalar=8, final_logit_softcapping=1.0)
    _, engine = engine_of(config, is_packed=False)
    assert math.isfinite(sum(float(weight.sum()) for weight in engine.module.parameters()))
