"""The command that trains on demonstrations with verl 0.9.1's SFT trainer."""

import shlex
from collections.abc import Sequence

from ..config.compose import quoted
from ..jobs.jsonl_store import Row
from .options import SftOptions

CPU_TRAINER = ["python", "-m", "code_a1_recipe.verl_plugin.cpu.sft"]
GPU_TRAINER = ["torchrun", "--standalone", "--nnodes=1", "--nproc_per_node=1", "-m", "verl.trainer.sft_trainer"]
DEFAULT_MODEL = "Qwen/Qwen2.5-Coder-1.5B-Instruct"
"""The Test LLM of the smallest GPU preset."""
GPU_RATE, CPU_RATE = 1e-5, 3e-4
"""Learning rates: for an instruction-tuned model, and for one of half a million parameters."""

_MAX_BATCH = 64
_MIN_VALIDATION_BATCH = 4
_TEMPLATE_TOKENS = 256
"""Room for what a chat template adds: role marks, a default system message."""
_TOKENS_PER_DEVICE = 8192


def training_command(options: SftOptions, train: Sequence[Row], val: Sequence[Row]) -> str:
    """One line for a shell: on one GPU, or with ``--cpu`` on the processor (tiny models only).

    Where verl's keys differ from its defaults: its learning rate (1e-3) would undo an instruction-tuned model;
    ``hf_model`` writes a folder that vLLM and `code-a1` load; the default of ``enable_thinking_default`` is the text
    "none", which verl takes for true.

    Args:
        options: name the files and the model.
        train: rows of ``options.output``, at least 1.
        val: rows of ``options.val_output``.
    """
    has_validation = len(val) >= _MIN_VALIDATION_BATCH
    # A batch must be one that both parts can fill, for verl drops incomplete ones.
    most = min(_MAX_BATCH, len(train), len(val) if has_validation else len(train))
    # No row can have more tokens than its bytes: one of a byte-level tokenizer is at least one.
    longest = max(map(_num_bytes, (*train, *val)))
    max_tokens = -(-(longest + _TEMPLATE_TOKENS) // 1024) * 1024
    folder = options.output.with_name(f"{options.output.stem}_model").absolute()
    model = options.model or ("MODEL" if options.cpu else DEFAULT_MODEL)
    keys = {
        "data.train_files": quoted(options.output.absolute()),
        "data.val_files": quoted(options.val_output.absolute()) if has_validation else "null",
        "data.messages_key": "messages",
        "data.train_batch_size": 1 << (most.bit_length() - 1),
        "data.max_length": max_tokens,
        "data.max_token_len_per_gpu": max(_TOKENS_PER_DEVICE, max_tokens),
        "data.truncation": "error",
        "data.enable_thinking_default": "null",
        "model.path": quoted(model),
        "optim.lr": f"{CPU_RATE if options.cpu else GPU_RATE:g}",
        "optim.lr_warmup_steps_ratio": 0.05,
        "optim.lr_scheduler_type": "cosine",
        "checkpoint.save_contents": "[model,optimizer,extra,hf_model]",
        "trainer.total_epochs": 2,
        "trainer.logger": "[console]",
        "trainer.project_name": "code-a1",
        "trainer.experiment_name": "test-llm-sft",
        "trainer.default_local_dir": quoted(folder),
        "hydra.run.dir": quoted(folder / "hydra"),
    }
    if has_validation:
        keys["trainer.test_freq"] = "after_each_epoch"
    trainer = CPU_TRAINER if options.cpu else GPU_TRAINER
    return shlex.join([*trainer, *(f"{key}={value}" for key, value in keys.items())])


def _num_bytes(row: Row) -> int:
    return sum(len(message["content"].encode("utf-8", "surrogatepass")) for message in row["messages"])
