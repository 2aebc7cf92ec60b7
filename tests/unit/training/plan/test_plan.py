"""The plan's arithmetic against real models and torch, what it refuses, and what the command prints."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from code_a1_recipe.cli.app import main
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import SettingsError
from code_a1_recipe.training.plan import memory
from code_a1_recipe.training.plan.check import Plan, plan_of
from code_a1_recipe.training.plan.machine import Machine
from code_a1_recipe.training.plan.memory import GIB, MIB, ModelSize
from code_a1_recipe.training.plan.needs import Place, needs_of
from code_a1_recipe.training.plan.sizes import KNOWN, model_size, with_sizes

LARGE = Machine(
    cores=128, memory=2048 * GIB, shared_memory=1024 * GIB, disk=8192 * GIB, num_gpus=8, gpu_memory=79 * GIB
)
SMOLLM2 = KNOWN["HuggingFaceTB/SmolLM2-135M-Instruct"]


def plan(preset: str, *overrides: str, **other: int) -> Plan:
    config = with_sizes(read_config(preset, ["run_dir=/nowhere/x", *overrides]))
    return plan_of(config, replace(LARGE, **other))


def needed(found: Plan, place: str) -> int:
    return next(row.needed for row in found.rows if row.place == place)


def llama(folder: Path, **changes: object) -> Path:
    values = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 160,
        "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 300,
        "tie_word_embeddings": True, "max_position_embeddings": 512,
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(values | changes))
    return folder


def sizes_of(size: ModelSize) -> dict[str, int]:
    return {
        "hidden_size": size.hidden,
        "intermediate_size": size.ffn,
        "num_hidden_layers": size.layers,
        "vocab_size": size.vocabulary,
    }


HEADS = {"0.5B": (14, 2), "1.5B": (12, 2), "3B": (16, 2), "7B": (28, 4), "135M": (9, 3)}


@pytest.mark.parametrize("name", [name for name in KNOWN if "/" in name])
def test_the_table_of_sizes_is_what_transformers_counts(name, tmp_path):
    from transformers import LlamaConfig, Qwen2Config

    size = KNOWN[name]
    heads, kv_heads = HEADS[name.split("-")[-2]]
    config_class = Qwen2Config if "Qwen" in name else LlamaConfig
    config = config_class(**sizes_of(size), num_attention_heads=heads, num_key_value_heads=kv_heads)
    config.tie_word_embeddings = "7B" not in name
    config.save_pretrained(tmp_path)
    assert model_size(str(tmp_path)) == size


def test_a_folder_needs_no_weights(tmp_path):
    size = model_size(str(llama(tmp_path / "tied")))
    untied = model_size(str(llama(tmp_path / "untied", tie_word_embeddings=False)))
    assert (size.layers, size.hidden, size.vocabulary) == (3, 64, 300)
    assert untied.parameters - size.parameters == 300 * 64


@pytest.mark.parametrize("folder", ["nothing/here", "broken"])
def test_a_model_that_cannot_be_looked_up_is_named(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text('{"model_type": "no_such_type"}')
    path = str(tmp_path / folder) if folder == "broken" else folder
    with pytest.raises(SettingsError, match=r"give a folder with its config\.json"):
        plan("qwen2.5-coder-1.5b", f"policies.code.model.path={path}")


def autograd_bytes(size: ModelSize, *, checkpointing: bool, tokens: int) -> int:
    """Bytes that torch keeps for the backward pass, parameters left out."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    config = LlamaConfig(**sizes_of(size), num_attention_heads=3, num_key_value_heads=1, tie_word_embeddings=True)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").train()
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    kept = {}
    own = {weight.untyped_storage().data_ptr() for weight in model.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    ids = torch.zeros(2, tokens // 2, dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[0, :10] = 0  # rows of a CPU run are padded
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = model(input_ids=ids, attention_mask=mask, use_cache=False)
    del output
    return sum(size for place, size in kept.items() if place not in own)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_activations_are_what_autograd_keeps(checkpointing):
    """Two more layers keep what the formula says, within 5 %; the rest of the model is the same."""
    few, many = (
        ModelSize(parameters=1, layers=layers, hidden=192, ffn=512, vocabulary=64)
        for layers in (2, 4)
    )  # fmt: skip
    measured = [autograd_bytes(size, checkpointing=checkpointing, tokens=512) for size in (few, many)]
    planned = [memory.activation_bytes(size, tokens=512, width=4, checkpointing=checkpointing) for size in (few, many)]
    assert planned[1] - planned[0] == pytest.approx(measured[1] - measured[0], rel=0.05)


def test_logits_exist_for_a_chunk_only():
    whole = memory.logit_bytes(SMOLLM2, tokens=8192, width=4, chunk=None)
    assert whole == 5 * 4 * 8192 * 49_152
    assert memory.logit_bytes(SMOLLM2, tokens=8192, width=4, chunk=512) < whole / 15
    few, fewer = (memory.logit_bytes(SMOLLM2, tokens=100, width=4, chunk=chunk) for chunk in (None, 512))
    assert fewer < few


def test_the_numbers_of_a_policy_on_a_cpu():
    config = read_config("cpu", ["run_dir=x"])
    parts = {
        (one.process, one.part): one.amount
        for one in needs_of(config, {"code": SMOLLM2, "test": SMOLLM2}, gpu_memory=0)
        if one.place == Place.MEMORY
    }
    parameters = SMOLLM2.parameters
    assert parts["code worker", "weights"] == parts["code worker", "reference"] == 4 * parameters
    assert parts["code worker", "optimizer"] == 8 * parameters
    assert parts["test server", "weights and KV cache"] == 4 * parameters + GIB


def test_engines_under_an_adapter_keep_their_weights_in_memory_while_policies_train():
    given = "actor_rollout_ref.model.lora_rank=32", "actor_rollout_ref.rollout.tensor_model_parallel_size=1"
    rows = plan("qwen2.5-coder-7b", *given).process_table()
    servers = {row["process"]: row.get("weights asleep") for row in rows if "weights asleep" in row}
    assert servers == {"code server": "14.2 GiB", "test server": "14.2 GiB"}
    assert not any("weights asleep" in row for row in plan("qwen2.5-coder-7b").process_table())


@pytest.mark.parametrize("override", ["actor.use_kl_loss=false", "model.lora_rank=8"])
def test_a_reference_costs_nothing_without_its_loss_and_with_lora(override):
    rows = plan("cpu", f"actor_rollout_ref.{override}").process_table()
    assert not any("reference" in row for row in rows)


def test_checkpoints_that_are_kept_and_the_best_and_one_being_written_need_disk():
    base = needed(plan("qwen2.5-coder-1.5b"), Place.DISK)
    assert base == 2 * 12 * KNOWN["Qwen/Qwen2.5-Coder-1.5B-Instruct"].parameters * 4
    best = plan("qwen2.5-coder-1.5b", "checkpoint.keep_best=val/code/pass@1")
    assert needed(best, Place.DISK) == base * 5 // 4
    assert needed(plan("qwen2.5-coder-1.5b", "trainer.save_freq=-1"), Place.DISK) == base // 4


@pytest.mark.parametrize(
    ("overrides", "cpus"),
    [
        ((), 8 * 3 + 1 + 2 + 8 * 2 + 4),
        (("transfer_queue.backend.SimpleStorage.num_data_storage_units=8",), 8 * 3 + 1 + 8 + 8 * 2 + 4),
    ],
)
def test_logical_cpus(overrides, cpus):
    assert needed(plan("qwen2.5-coder-1.5b", *overrides), Place.CPUS) == cpus


RESIDENT = [f"actor_rollout_ref.actor.fsdp_config.{part}_offload=false" for part in ("param", "optimizer")]
REFUSED = [
    (
        "qwen2.5-coder-7b", ["trainer.n_gpus_per_node=2", *RESIDENT], {"num_gpus": 2},
        ["GPU memory: ", " needed (", "79.0 GiB there; a smaller actor_rollout_ref.rollout.gpu_memory_utilization"],
    ),
    (
        "qwen2.5-coder-1.5b", [], {"cores": 46},
        ["logical CPUs: 47 needed (always), 46 there; ", "set ray_kwargs.ray_init.num_cpus=47"],
    ),
    ("qwen2.5-coder-1.5b", [], {"num_gpus": 4}, ["GPUs: 8 needed (always), 4 there; set trainer.n_gpus_per_node=4"]),
    ("qwen2.5-coder-7b", [], {"disk": 500 * GIB}, ["disk: 680.9 GiB needed", "trainer.max_actor_ckpt_to_keep=1"]),
    (
        "cpu", ["ray_kwargs.ray_init.num_cpus=7"], {},
        ["logical CPUs: 8 needed (always), 7 there; ", "set ray_kwargs.ray_init.num_cpus=8"],
    ),
    (
        "cpu", [f"policies.{name}.model.path=HuggingFaceTB/SmolLM2-135M-Instruct" for name in ("code", "test")],
        {"memory": 20 * GIB},
        ["memory: ", " (update of code), 20.0 GiB there", "enable_gradient_checkpointing=true"],
    ),
    ("cpu", [], {"shared_memory": 64 * MIB}, ["/dev/shm: 528 MiB needed", "take a larger /dev/shm (docker run"]),
]  # fmt: skip


@pytest.mark.parametrize(("preset", "overrides", "machine", "parts"), REFUSED)
def test_what_cannot_fit_is_refused_with_the_numbers_and_a_way_out(preset, overrides, machine, parts):
    found = " | ".join(plan(preset, *overrides, **machine).problems())
    assert [part for part in parts if part not in found] == [], found


def test_each_policy_has_cards_of_its_own_with_separate_pools():
    same = "actor_rollout_ref.rollout.gpu_memory_utilization=0.4"
    together, apart = plan("qwen2.5-coder-3b", same), plan("qwen2.5-coder-3b", same, "layout=separate")
    assert needed(apart, "GPU memory of the code policy") < needed(together, Place.CARD)
    assert needed(apart, Place.GPUS) == 8
    assert needed(apart, Place.CPUS) == needed(together, Place.CPUS)


@pytest.mark.parametrize(("text", "is_limited"), [("max", False), (f"{GIB}", True)])
def test_a_limit_of_a_container_is_heeded(monkeypatch, tmp_path, text, is_limited):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr("code_a1_recipe.training.plan.machine._LIMITS", (limit,))
    limit.write_text(f"{text}\n")
    assert (Machine.here(str(tmp_path), device="cpu").memory == GIB) is is_limited


def test_what_a_run_saved_before_counts_as_room(tmp_path):
    before = Machine.here(str(tmp_path / "none"), device="cpu").disk
    (tmp_path / "global_step_1").mkdir()
    for saved in (tmp_path / "global_step_1" / "saved.pt", tmp_path / "data_of_the_user.bin"):
        with saved.open("wb") as file:
            file.truncate(50 * GIB)  # sparse: it takes nothing
    assert Machine.here(str(tmp_path), device="cpu").disk - before == pytest.approx(50 * GIB, abs=GIB)


def test_the_command_prints_tables_and_a_verdict(capsys):
    assert main(["plan", "cpu", "--memory", "16", "--cores", "4"]) == 0
    text = capsys.readouterr().out
    assert "| code worker " in text
    assert "\nmemory: " in text
    assert text.endswith("the machine has room for the least that a run needs\n")
    assert main(["plan", "qwen2.5-coder-3b", *RESIDENT, "--gpus", "2", "--gpu-memory", "80", "--memory", "512"]) == 2
    output = capsys.readouterr()
    assert "| code worker " in output.out
    assert "GiB needed (episodes), 79.4 GiB there; a smaller actor_rollout_ref.rollout" in output.err


def test_the_command_asks_for_gpus_that_are_not_here(capsys, monkeypatch):
    monkeypatch.setattr("code_a1_recipe.training.plan.machine._gpus", list)
    assert main(["plan", "qwen2.5-coder-3b"]) == 2
    assert "describe the GPUs to plan for: --gpus 8 --gpu-memory 80" in capsys.readouterr().err


def test_the_command_reads_a_yaml_file(tmp_path, capsys):
    file = tmp_path / "mine.yaml"
    file.write_text("defaults: [cpu, _self_]\nepisode: {num_workers: 3}\n")
    assert main(["plan", str(file)]) == 0
    assert "| episode worker   | 3 " in capsys.readouterr().out
