"""The command that trains on demonstrations with verl 0.9.1's SFT trainer."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TRAINER = "verl.trainer.sft_trainer"
CPU_TRAINER = "code_a1_recipe.verl_plugin.cpu.sft"
DEFAULT_MODEL = "Qwen/Qwen2.5-Coder-1.5B-Instruct"
"""The Test LLM of the smallest GPU preset."""

_LARGEST_BATCH = 64
_LEAST_VALIDATION_BATCH = 4
_TEMPLATE_TOKENS = 256
"""Room for what a chat template adds: role marks, a default system message."""
_TOKENS_PER_DEVICE = 8192
_PLAIN = re.compile(r"[\w./~@-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """Sizes that fit the demonstrations."""

    train_file: Path
    val_file: Path | None
    """None where there are too few for a batch: verl drops incomplete ones."""
    batch_size: int
    max_tokens: int
    """No row can have more: a token of a byte-level tokenizer is at least one byte."""

    @classmethod
    def of(
        cls, *, train_file: Path, val_file: Path, num_train: int, num_val: int, longest_bytes: int
    ) -> "TrainingPlan":
        """A batch of at most 64 that both parts can fill; validation is left out where it has fewer than 4 rows.

        Args:
            train_file: parquet with ``num_train`` rows, at least 1.
            val_file: parquet with ``num_val`` rows.
            longest_bytes: UTF-8 bytes of the longest row's messages.
        """
        has_validation = num_val >= _LEAST_VALIDATION_BATCH
        most = min(_LARGEST_BATCH, num_train, num_val if has_validation else num_train)
        return cls(
            train_file=train_file.absolute(),
            val_file=val_file.absolute() if has_validation else None,
            batch_size=1 << (most.bit_length() - 1),
            max_tokens=-(-(longest_bytes + _TEMPLATE_TOKENS) // 1024) * 1024,
        )


def training_overrides(plan: TrainingPlan, *, model: str, folder: Path, rate: float = 1e-5) -> list[str]:
    """verl's keys, each as ``key=value`` with hydra's quotes.

    Where they differ from verl's defaults: its learning rate (1e-3) would undo an instruction-tuned model; ``hf_model``
    writes a folder that vLLM and `code-a1` load; the default of ``enable_thinking_default`` is the text "none", which
    verl takes for true.
    """
    validation = ["trainer.test_freq=after_each_epoch"] if plan.val_file else []
    return [
        f"data.train_files={_quoted(plan.train_file)}",
        f"data.val_files={_quoted(plan.val_file) if plan.val_file else 'null'}",
        "data.messages_key=messages",
        f"data.train_batch_size={plan.batch_size}",
        f"data.max_length={plan.max_tokens}",
        f"data.max_token_len_per_gpu={max(_TOKENS_PER_DEVICE, plan.max_tokens)}",
        "data.truncation=error",
        "data.enable_thinking_default=null",
        f"model.path={_quoted(model)}",
        f"optim.lr={rate:g}",
        "optim.lr_warmup_steps_ratio=0.05",
        "optim.lr_scheduler_type=cosine",
        "checkpoint.save_contents=[model,optimizer,extra,hf_model]",
        "trainer.total_epochs=2",
        "trainer.logger=[console]",
        "trainer.project_name=code-a1",
        "trainer.experiment_name=test-llm-sft",
        f"trainer.default_local_dir={_quoted(folder.absolute())}",
        f"hydra.run.dir={_quoted(folder.absolute() / 'hydra')}",
        *validation,
    ]


def training_command(overrides: Sequence[str], *, on_cpu: bool = False) -> str:
    """One line for a shell: on one GPU, or on the processor (tiny models only)."""
    if on_cpu:
        return shlex.join(["python", "-m", CPU_TRAINER, *overrides])
    launch = ["torchrun", "--standalone", "--nnodes=1", "--nproc_per_node=1"]
    return shlex.join([*launch, "-m", TRAINER, *overrides])


def _quoted(value: object) -> str:
    """A text as hydra's grammar takes it whatever it holds: a backslash counts only before a quote."""
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    escaped = re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text)
    return f"'{escaped}'"
