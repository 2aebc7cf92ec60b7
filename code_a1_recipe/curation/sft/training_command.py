"""The command that trains on demonstrations with verl 0.9.1's SFT trainer."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from ...config.compose import quoted

TRAINER = "verl.trainer.sft_trainer"
CPU_TRAINER = "code_a1_recipe.verl_plugin.cpu.sft"
DEFAULT_MODEL = "Qwen/Qwen2.5-Coder-1.5B-Instruct"
"""The Test LLM of the smallest GPU preset."""
GPU_RATE, CPU_RATE = 1e-5, 3e-4
"""Learning rates: for an instruction-tuned model, and for one of half a million parameters."""

_LARGEST_BATCH = 64
_LEAST_VALIDATION_BATCH = 4
_TEMPLATE_TOKENS = 256
"""Room for what a chat template adds: role marks, a default system message."""
_TOKENS_PER_DEVICE = 8192


def training_overrides(
    *,
    train_file: Path,
    val_file: Path,
    num_train: int,
    num_val: int,
    longest_bytes: int,
    model: str,
    folder: Path,
    rate: float = GPU_RATE,
) -> list[str]:
    """verl's keys, each as ``key=value`` with hydra's quotes, with sizes that fit the demonstrations.

    A batch has at most 64 rows, which both parts can fill, for verl drops incomplete ones; validation is left out where
    it has fewer than 4 rows. No row can have more tokens than its bytes: one of a byte-level tokenizer is at least one.

    Where the keys differ from verl's defaults: its learning rate (1e-3) would undo an instruction-tuned model;
    ``hf_model`` writes a folder that vLLM and `code-a1` load; the default of ``enable_thinking_default`` is the text
    "none", which verl takes for true.

    Args:
        train_file: parquet with ``num_train`` rows, at least 1.
        val_file: parquet with ``num_val`` rows.
        longest_bytes: UTF-8 bytes of the longest row's messages.
        model: to be trained.
        folder: gets the trained model.
        rate: of learning.
    """
    has_validation = num_val >= _LEAST_VALIDATION_BATCH
    most = min(_LARGEST_BATCH, num_train, num_val if has_validation else num_train)
    max_tokens = -(-(longest_bytes + _TEMPLATE_TOKENS) // 1024) * 1024
    return [
        f"data.train_files={quoted(train_file.absolute())}",
        f"data.val_files={quoted(val_file.absolute()) if has_validation else 'null'}",
        "data.messages_key=messages",
        f"data.train_batch_size={1 << (most.bit_length() - 1)}",
        f"data.max_length={max_tokens}",
        f"data.max_token_len_per_gpu={max(_TOKENS_PER_DEVICE, max_tokens)}",
        "data.truncation=error",
        "data.enable_thinking_default=null",
        f"model.path={quoted(model)}",
        f"optim.lr={rate:g}",
        "optim.lr_warmup_steps_ratio=0.05",
        "optim.lr_scheduler_type=cosine",
        "checkpoint.save_contents=[model,optimizer,extra,hf_model]",
        "trainer.total_epochs=2",
        "trainer.logger=[console]",
        "trainer.project_name=code-a1",
        "trainer.experiment_name=test-llm-sft",
        f"trainer.default_local_dir={quoted(folder.absolute())}",
        f"hydra.run.dir={quoted(folder.absolute() / 'hydra')}",
        *(["trainer.test_freq=after_each_epoch"] if has_validation else []),
    ]


def training_command(overrides: Sequence[str], *, on_cpu: bool = False) -> str:
    """One line for a shell: on one GPU, or on the processor (tiny models only)."""
    if on_cpu:
        return shlex.join(["python", "-m", CPU_TRAINER, *overrides])
    launch = ["torchrun", "--standalone", "--nnodes=1", "--nproc_per_node=1"]
    return shlex.join([*launch, "-m", TRAINER, *overrides])
