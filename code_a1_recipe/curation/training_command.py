"""The command that trains on demonstrations with verl 0.9.1's SFT trainer."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import jinja2

from ..config.compose import quoted
from ..jobs.jsonl_store import Row
from .options import SftOptions

_MAX_BATCH = 64
_MIN_VALIDATION_BATCH = 4
_TEMPLATE_TOKENS = 256
"""Room for what a chat template adds: role marks, a default system message."""


def training_command(
    options: SftOptions,
    train: Sequence[Row],
    val: Sequence[Row],
) -> str:
    """One line for a shell: on one GPU, or with ``--cpu`` on the processor (tiny models only).

    Args:
        options: name the files and the model.
        train: rows of ``options.output``, at least 1.
        val: rows of ``options.val_output``; too few are no validation.
    """
    has_validation = len(val) >= _MIN_VALIDATION_BATCH
    # A batch must be one that both parts can fill, for verl drops incomplete ones.
    most = min(_MAX_BATCH, len(train), len(val) if has_validation else len(train))
    # No row can have more tokens than its bytes: one of a byte-level tokenizer is at least one.
    longest = max(map(_num_bytes, (*train, *val))) + _TEMPLATE_TOKENS
    words = jinja2.Template(Path(__file__).with_name("training_command.jinja").read_text(encoding="utf-8")).render(
        options=options,
        quoted=quoted,
        has_validation=has_validation,
        batch_size=1 << (most.bit_length() - 1),
        max_tokens=-(-longest // 1024) * 1024,
        folder=options.output.with_name(f"{options.output.stem}_model").absolute(),
    )
    return shlex.join(filter(None, words.split("\n")))  # a block of the template that is left out is an empty line


def _num_bytes(row: Row) -> int:
    return sum(len(message["content"].encode("utf-8", "surrogatepass")) for message in row["messages"])
